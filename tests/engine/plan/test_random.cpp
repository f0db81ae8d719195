// SPDX-License-Identifier: Apache-2.0
// Plans of random equations, run by scalar loops, against the oracle.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include "../../support/naive_execute.h"
#include "../../support/random_equation.h"
#include "../../support/sanitizer.h"
#include "plans.h"

namespace einkern::test {
namespace {

plan::Plan plan_of(const RandomEquation& equation, const Spec& spec, const PathChoice& path = {}) {
  plan::Builder builder(kTarget);
  std::vector<plan::Operand> operands;
  for (const RandomTensor& tensor : equation.operands) {
    operands.push_back(builder.add_input(tensor.dtype, tensor.layout()));
  }
  const plan::Operand out = builder.add_output(equation.out.dtype, equation.out.layout());
  plan::add_einsum(builder, spec, operands, out, path);
  return builder.finish();
}

/// Elements of a strided tensor in C order.
template <class Number>
std::vector<Number> elements(const RandomTensor& tensor) {
  std::vector<Number> result;
  std::vector<std::int64_t> index(tensor.shape.size(), 0);
  if (std::count(tensor.shape.begin(), tensor.shape.end(), 0) > 0) return result;
  while (true) {
    std::int64_t at = 0;
    for (std::size_t i = 0; i < index.size(); ++i) at += index[i] * tensor.strides[i];
    result.push_back(dispatch(tensor.dtype, [&]<class T>(std::type_identity<T>) {
      return static_cast<Number>(widen(static_cast<const T*>(tensor.data())[at]));
    }));
    std::size_t axis = index.size();
    while (axis > 0 && ++index[axis - 1] == tensor.shape[axis - 1]) index[--axis] = 0;
    if (axis == 0) return result;
  }
}

void check_against_oracle(RandomEquation& equation, const plan::Plan& plan) {
  std::vector<const void*> inputs;
  std::vector<RawView> views;
  for (const RandomTensor& tensor : equation.operands) {
    inputs.push_back(tensor.data());
    views.push_back(tensor.view());
  }
  naive_execute(plan, inputs, {equation.out.data()});
  if (!is_float(equation.out.dtype)) {
    CHECK(elements<std::int64_t>(equation.out) == oracle_einsum_exact(equation.spec, views));
    return;
  }
  const std::vector<double> got = elements<double>(equation.out);
  const std::vector<double> want = oracle_einsum(equation.spec, views);
  REQUIRE(got.size() == want.size());
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    // Sums of small integers: exact in f64, and in f32 up to the rounding of large ones.
    const double scale = equation.out.dtype == f32 ? std::max(1.0, std::abs(want[i])) : 1e-30;
    worst = std::max(worst, std::abs(got[i] - want[i]) / scale);
  }
  CHECK(worst <= (equation.out.dtype == f32 ? 1e-4 : 0));
}

/// Names of the kinds of steps of a plan, contractions by regime, with what is special about them.
void count_steps(const plan::Plan& plan, std::map<std::string, int>& counts) {
  if (plan.steps.empty()) ++counts["nothing"];
  for (const plan::Step& step : plan.steps) {
    if (const auto* s = std::get_if<plan::Contract>(&step)) {
      ++counts[std::string(name_of(s->regime))];
      if (s->a.value > s->b.value) ++counts["swapped"];
      if (!s->batch.empty()) ++counts["batch"];
      if (!s->batch.empty() && s->batch.back().c == 1) ++counts["unit_batch"];
    } else {
      ++counts[std::string(name_of(step))];
    }
  }
}

/// A Spec as text that does not depend on label ids: labels by first appearance, with sizes and
/// names.
std::string in_words(const Spec& spec) {
  std::map<LabelId, std::size_t> order;
  std::string text;
  const auto add = [&](const std::vector<LabelId>& labels) {
    for (const LabelId label : labels) {
      const std::size_t number = order.try_emplace(label, order.size()).first->second;
      const auto l = static_cast<std::size_t>(label);
      text += std::to_string(number) + spec.names[l] + ":" + std::to_string(spec.sizes[l]) + " ";
    }
    text += ",";
  };
  for (const std::vector<LabelId>& input : spec.inputs) add(input);
  text += ">";
  add(spec.output);
  return text;
}

}  // namespace

TEST_SUITE("plan") {
  TEST_CASE("the texts of random equations mean what their generator says") {
    RandomEquations equations(7);
    for (int i = 0; i < fewer_if_sanitized(2000); ++i) {
      const RandomEquation equation = equations.next();
      CAPTURE(equation.text);
      CHECK(in_words(make_spec(equation.text, equation.spec.shapes)) == in_words(equation.spec));
    }
  }

  TEST_CASE("plans of random equations compute what the oracle computes") {
    RandomEquations equations(1);
    std::map<std::string, int> steps = {
        {"nothing", 0}, {"matmul", 0},  {"small_batched", 0}, {"matvec", 0},     {"dot", 0},
        {"outer", 0},   {"swapped", 0}, {"batch", 0},         {"unit_batch", 0}, {"reduce", 0},
        {"map", 0},     {"copy", 0},    {"fill", 0}};
    for (int i = 0; i < fewer_if_sanitized(6000); ++i) {
      RandomEquation equation = equations.next();
      CAPTURE(i);
      CAPTURE(equation.text);
      const PathMethod method = i % 3 == 0 ? PathMethod::greedy : PathMethod::automatic;
      const plan::Plan plan = plan_of(equation, equation.spec, {method, {}});
      count_steps(plan, steps);
      CHECK(broken_rule(plan) == "");
      check_against_oracle(equation, plan);
    }
    for (const auto& step : steps) {
      CAPTURE(step.first);
      CHECK(step.second > 0);
    }
    CHECK(equations.missing() == "");
    MESSAGE(equations.coverage());
  }

  TEST_CASE("many batches of small matrices compute what the oracle computes") {
    RandomEquationOptions options;
    options.operands = 2;
    options.labels = 4;
    options.dtypes = {f64};
    RandomEquations equations(2, options);
    int small_batched = 0;
    for (int i = 0; i < 1500; ++i) {
      RandomEquation equation = equations.next();
      CAPTURE(equation.text);
      const plan::Plan plan = plan_of(equation, equation.spec);
      std::map<std::string, int> steps;
      count_steps(plan, steps);
      small_batched += steps["small_batched"];
      check_against_oracle(equation, plan);
    }
    CHECK(small_batched > 0);
  }

  TEST_CASE("a random path given by hand gives the same answer") {
    RandomEquationOptions options;
    options.dtypes = {i64, f64};
    RandomEquations equations(3, options);
    std::mt19937 random(3);
    int joined_three = 0;
    for (int i = 0; i < fewer_if_sanitized(1000); ++i) {
      RandomEquation equation = equations.next();
      PathChoice choice{PathMethod::given, {}};
      auto left = static_cast<std::int32_t>(equation.operands.size());
      while (left > 1 || choice.path.empty()) {
        std::vector<std::int32_t> positions(static_cast<std::size_t>(left));
        std::iota(positions.begin(), positions.end(), 0);
        std::shuffle(positions.begin(), positions.end(), random);
        positions.resize(std::min<std::size_t>(positions.size(), 1 + random() % 3));
        left -= static_cast<std::int32_t>(positions.size()) - 1;
        joined_three += positions.size() == 3 ? 1 : 0;
        choice.path.push_back(positions);
      }
      CAPTURE(equation.text);
      CAPTURE(to_string(choice.path));
      check_against_oracle(equation, plan_of(equation, equation.spec, choice));
    }
    CHECK(joined_three > 0);
  }

  TEST_CASE("plans do not change when labels are renamed") {
    RandomEquations equations(4);
    std::mt19937 random(4);
    for (int i = 0; i < fewer_if_sanitized(1000); ++i) {
      const RandomEquation equation = equations.next();
      Spec spec = equation.spec;
      std::vector<LabelId> renamed(spec.sizes.size());
      std::iota(renamed.begin(), renamed.end(), 0);
      std::shuffle(renamed.begin(), renamed.end(), random);
      for (std::size_t l = 0; l < renamed.size(); ++l) {
        const auto to = static_cast<std::size_t>(renamed[l]);
        spec.sizes[to] = equation.spec.sizes[l];
        spec.names[to].clear();
      }
      for (std::vector<LabelId>& input : spec.inputs) {
        for (LabelId& label : input) label = renamed[static_cast<std::size_t>(label)];
      }
      for (LabelId& label : spec.output) label = renamed[static_cast<std::size_t>(label)];
      Spec nameless = equation.spec;
      nameless.names.assign(nameless.names.size(), "");
      CAPTURE(equation.text);
      for (const PathMethod method : {PathMethod::automatic, PathMethod::greedy}) {
        const plan::Plan before = plan_of(equation, nameless, {method, {}});
        const plan::Plan after = plan_of(equation, spec, {method, {}});
        CHECK(explain_json(before, kTarget) == explain_json(after, kTarget));
        REQUIRE(before.steps.size() == after.steps.size());
        for (std::size_t s = 0; s < before.steps.size(); ++s) {
          const auto* x = std::get_if<plan::Contract>(&before.steps[s]);
          if (x == nullptr) continue;
          const auto& y = std::get<plan::Contract>(after.steps[s]);
          CHECK((x->batch == y.batch && x->m == y.m && x->n == y.n && x->k == y.k));
        }
      }
    }
  }
}

}  // namespace einkern::test
