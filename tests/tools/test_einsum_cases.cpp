// SPDX-License-Identifier: Apache-2.0
// Every checked example that has a text through `einkern eval`: files in, a file out.
#include <doctest/doctest.h>

#include "../support/cases.h"
#include "arrays_folder.h"

using namespace einkern;
using namespace einkern::test;

namespace {

double weighted_sum(const std::vector<double>& values) {
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    sum += static_cast<double>(i % 13 + 1) * values[i];
  return sum;
}

void check_example(const EinsumCase& example, const std::string& equation) {
  CAPTURE(example.id);
  CAPTURE(equation);
  const ScratchFolder scratch;
  std::vector<std::string> arguments = {"eval", "-e", equation, "-o", "out.npy"};
  for (std::size_t p = 0; p < example.shapes.size(); ++p) {
    const std::string file = "operand" + std::to_string(p) + ".npy";
    const std::vector<double> values = operand_values(example, p);
    save_npy(scratch / file, from_values<double>(values, Shape(example.shapes[p])));
    arguments.push_back(file);
  }
  const Finished done = einkern_in(scratch.path().string(), arguments);
  CAPTURE(done.err);
  CHECK(done.out == "");
  if (!example.ok) {
    CHECK((done.code == 2 || done.code == 3));
    CHECK(done.err.starts_with("einkern: e"));
    CHECK_FALSE(std::filesystem::exists(scratch / "out.npy"));
    return;
  }
  REQUIRE(done.code == 0);
  CHECK(done.err == "");
  const Tensor out = load_npy(scratch / "out.npy");
  CHECK(out.dtype() == f64);
  CHECK(out.shape() == Shape(example.out_shape));
  const std::vector<double> values = out.to_vector<double>();
  double sum = 0;
  for (const double value : values) sum += value;
  CHECK(sum == example.out_sum);
  CHECK(weighted_sum(values) == example.out_wsum);
}

}  // namespace

TEST_SUITE("tools") {
  TEST_CASE("eval gives the answer or the error of every example") {
    int answers = 0, errors = 0;
    for (const EinsumCase& example : read_einsum_cases()) {
      if (example.sublists) continue;  // no text: through the library only
      const bool bracketed = example.id == "er004";
      check_example(example, bracketed ? "[left bond],[bond right]->[left right]" : example.spec);
      ++(example.ok ? answers : errors);
    }
    CHECK(answers > 80);
    CHECK(errors > 15);
  }
}
