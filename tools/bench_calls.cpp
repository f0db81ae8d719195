// SPDX-License-Identifier: Apache-2.0
// What a call costs beside its arithmetic.
#include "bench_calls.h"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "../engine/graph/collect.h"
#include "../engine/graph/compiled.h"
#include "../engine/graph/einsum_node.h"
#include "../engine/graph/prepare.h"
#include "../engine/program/program.h"
#include "../engine/tensor/create.h"
#include "bench_measure.h"
#include "bench_problems.h"
#include "stopwatch.h"
#include "table.h"

namespace einkern::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kEquation = "ij,jk->ik";
constexpr std::size_t kBatches = 21;

struct CallTime {
  std::string name;
  std::function<void()> call;
  int at_once = 64;  // calls to a reading of the clock, which takes as long as some of them
  std::vector<double> seconds = {};  // a call, by batch
};

/// From expressions to their plan, which is not looked up.
void prepare_anew(const std::vector<Expr>& values) {
  std::vector<graph::NodePtr> roots;
  std::vector<Layout> outs;
  for (const Expr& value : values) {
    roots.push_back(value.node());
    outs.push_back(contiguous(value.shape()));
  }
  const graph::Collected collected = graph::collect(roots);
  std::vector<Layout> leaves;
  for (const graph::NodePtr* leaf : collected.leaves) {
    leaves.push_back(std::get<graph::Leaf>((*leaf)->op).tensor.layout());
  }
  graph::prepare(roots, collected, {true, leaves, outs});
}

/// Everything between an equation that was never met and its plan.
void plan_anew(const Tensor& a, const Tensor& b) {
  const std::vector<Expr> operands{a, b};
  prepare_anew(
      {graph::einsum_node("einsum", resolve(parse_equation(kEquation), {2, 2}), operands, {})});
}

/// blocks.ein from its text to a plan over these inputs.
void compile_anew(const std::map<std::string, Expr>& inputs) {
  prepare_anew(Program::parse(program_text(), "blocks.ein").build(inputs));
}

std::map<std::string, Expr> program_inputs() {
  std::map<std::string, Expr> inputs{{"x", random({100, 64}, 1)}};
  const Program program = Program::parse(program_text(), "blocks.ein");
  for (const std::string& name : program.inputs()) {
    if (name != "x") inputs.emplace(name, random(program.declared(name)->shape, 2));
  }
  return inputs;
}

void time_batch(CallTime& row, double seconds) {
  const Stopwatch watch;
  std::int64_t calls = 0;
  do {
    for (int i = 0; i < row.at_once; ++i) row.call();
    calls += row.at_once;
  } while (watch.seconds() < seconds);
  row.seconds.push_back(watch.seconds() / static_cast<double>(calls));
}

std::string as_json(const std::vector<CallTime>& rows) {
  Json calls = Json::array();
  for (const CallTime& row : rows) {
    const Times times = summarise(row.seconds);
    calls.push_back(
        {{"name", row.name}, {"median_us", 1e6 * times.median}, {"spread", times.spread}});
  }
  return Json({{"calls", calls}}).dump(2) + "\n";
}

std::string as_table(const std::vector<CallTime>& rows, TableStyle style) {
  Table table({{"call", Table::Align::left}, {"median us"}, {"spread %"}});
  for (const CallTime& row : rows) {
    const Times times = summarise(row.seconds);
    table.add({row.name, fmt::format("{:.3f}", 1e6 * times.median),
               fmt::format("{:.1f}", 100 * times.spread)});
  }
  return table.str(style);
}

}  // namespace

std::string bench_calls(double min_seconds, ReportForm form) {
  const Tensor a = random({8, 8}, 1), b = random({8, 8}, 2), out = zeros({8, 8});
  const Expr x = input(f32, {8, 8}), y = input(f32, {8, 8});
  const Compiled compiled = compile({x, y}, {einsum(kEquation, x, y)});
  const std::vector<Tensor> inputs{a, b}, outs{out};
  const std::map<std::string, Expr> leaves = program_inputs();
  std::vector<CallTime> rows{
      {"Tensor c = einsum(\"ij,jk->ik\", a, b)", [&] { const Tensor c = einsum(kEquation, a, b); }},
      {"einsum_into(c, \"ij,jk->ik\", {a, b})",
       [&] {
         einsum_into(out, kEquation, {a, b});
       }},
      {"compiled({a, b})", [&] { compiled(inputs); }},
      {"compiled.into({c}, {a, b})", [&] { compiled.into(outs, inputs); }},
      {"the same equation parsed and planned anew", [&] { plan_anew(a, b); }},
      {"a program of 40 lines parsed", [] { Program::parse(program_text(), "blocks.ein"); }, 1},
      {"the same program parsed, built and planned anew", [&] { compile_anew(leaves); }, 1},
  };
  for (std::size_t batch = 0; batch < kBatches; ++batch) {
    for (CallTime& row : rows) time_batch(row, min_seconds / kBatches);
  }
  if (form == ReportForm::json) return as_json(rows);
  return as_table(rows, form == ReportForm::markdown ? TableStyle::markdown : TableStyle::aligned);
}

}  // namespace einkern::tools
