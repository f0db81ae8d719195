// SPDX-License-Identifier: Apache-2.0
// Every checked example of tests/data/einsum.json, as far as shapes tell: accepted or an error.
#include <doctest/doctest.h>

#include "../../../engine/base/error.h"
#include "../../../engine/spec/spec.h"
#include "../../support/cases.h"

namespace einkern {
namespace {

Spec spec_of(const test::EinsumCase& example) {
  const std::vector<Shape> shapes(example.shapes.begin(), example.shapes.end());
  if (!example.sublists) return make_spec(example.spec, shapes);
  return make_spec(example.sublists->inputs, example.sublists->output, shapes);
}

// The sum of the output from its definition: over all labels, with an index per label.
double sum_of_output(const Spec& spec, const std::vector<std::vector<double>>& operands) {
  double sum = 0;
  std::vector<std::int64_t> index(spec.sizes.size(), 0);
  for (const std::int64_t size : spec.sizes) {
    if (size == 0) return 0;
  }
  while (true) {
    double product = 1;
    for (std::size_t p = 0; p < operands.size(); ++p) {
      std::int64_t at = 0;
      for (std::size_t i = 0; i < spec.inputs[p].size(); ++i) {
        const std::int64_t size = spec.shapes[p][i];
        at = at * size + (size == 1 ? 0 : index[static_cast<std::size_t>(spec.inputs[p][i])]);
      }
      product *= operands[p][static_cast<std::size_t>(at)];
    }
    sum += product;
    std::size_t label = 0;
    while (label < index.size() && ++index[label] == spec.sizes[label]) index[label++] = 0;
    if (label == index.size()) return sum;
  }
}

double loop_length(const Spec& spec) {
  double length = 1;
  for (const std::int64_t size : spec.sizes) length *= static_cast<double>(size);
  return length;
}

}  // namespace

TEST_SUITE("spec") {
  TEST_CASE("every checked example gives its shape, its sum or an error") {
    std::size_t accepted = 0, rejected = 0, summed = 0;
    for (const test::EinsumCase& example : test::read_einsum_cases()) {
      CAPTURE(example.id);
      CAPTURE(example.spec);
      if (!example.ok) {
        CHECK_THROWS_AS(spec_of(example), Error);
        ++rejected;
        continue;
      }
      const Spec spec = spec_of(example);
      CHECK(spec.output_shape() == Shape(example.out_shape));
      ++accepted;
      if (loop_length(spec) > 1e6) continue;
      std::vector<std::vector<double>> operands;
      for (std::size_t p = 0; p < example.shapes.size(); ++p) {
        operands.push_back(test::operand_values(example, p));
      }
      CHECK(sum_of_output(spec, operands) == example.out_sum);
      ++summed;
    }
    CHECK(accepted + rejected == 142);
    CHECK(rejected >= 20);
    CHECK(summed >= 100);
  }

  TEST_CASE("the canonical text of every accepted example means the same") {
    for (const test::EinsumCase& example : test::read_einsum_cases()) {
      if (!example.ok) continue;
      CAPTURE(example.id);
      const Spec spec = spec_of(example);
      const Spec again = make_spec(spec.str(), spec.shapes);
      CHECK(again.str() == spec.str());
      CHECK(again.output_shape() == spec.output_shape());
    }
  }
}

}  // namespace einkern
