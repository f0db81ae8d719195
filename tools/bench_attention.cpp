// SPDX-License-Identifier: Apache-2.0
// `einkern bench --attention`: visible work a second, and the part of the machine's limits that it
// is.
#include "bench_attention.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "../engine/exec/parallel.h"
#include "../engine/graph/expr.h"
#include "../engine/kernel/kernels.h"
#include "../engine/tensor/create.h"
#include "bench_attention_problem.h"
#include "bench_measure.h"
#include "stopwatch.h"

namespace einkern::tools {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::size_t kFewestRuns = 11;

struct Row {
  AttentionProblem problem;
  double error = 0, flops = 0, bytes = 0;
  bool cold = false;
  Times fused, plain;
};

Row time_problem(const AttentionProblem& problem, const AttentionBench& bench,
                 const Limits& limits) {
  Row row{problem, 0, problem.visible_flops(), problem.bytes(bench.dtype), false, {}, {}};
  std::vector<AttentionOperands> sets;
  sets.emplace_back(problem, bench.dtype, 1);
  const Tensor out = zeros(sets[0].output.shape(), bench.dtype);
  eval_into(out, sets[0].output);
  row.error = check_attention(problem, sets[0], out);
  row.cold = row.bytes / limits.read_gbs > row.flops / limits.peak_gflops;
  if (row.cold) {
    const auto wanted =
        static_cast<std::uint64_t>(static_cast<double>(bench.buffer_bytes) / row.bytes);
    for (std::uint64_t i = 1; i <= wanted; ++i) sets.emplace_back(problem, bench.dtype, 1 + 8 * i);
  }
  std::vector<double> fused, plain;
  const auto once = [&](std::vector<double>& seconds, bool fuse) {
    const Expr& output = sets[seconds.size() % sets.size()].output;
    const Stopwatch watch;
    eval_into(out, output, {.fuse = fuse});
    seconds.push_back(watch.seconds());
    return seconds.back();
  };
  for (double total = 0; fused.size() < kFewestRuns || total < bench.min_seconds;) {
    total += once(fused, true);
    if (bench.plain) total += once(plain, false);
  }
  row.fused = summarise(std::move(fused));
  if (bench.plain) row.plain = summarise(std::move(plain));
  return row;
}

/// Of the arithmetic peak, or for problems bound by memory of the read bandwidth.
double fraction(const Row& row, const Limits& limits) {
  return row.cold ? row.bytes / row.fused.median / 1e9 / limits.read_gbs
                  : row.flops / row.fused.median / 1e9 / limits.peak_gflops;
}

std::string as_table(const std::vector<Row>& rows, const Limits& limits) {
  std::string text = fmt::format(
      "machine   {}, {} threads: {:.1f} GFLOP/s; read {:.1f}, write {:.1f} GB/s\n"
      "{:<14} {:>10} {:>8} {:>9} {:>8} {:>9} {:>10} {:>9}\n",
      kernel::kernels().target.name, exec::concurrency(), limits.peak_gflops, limits.read_gbs,
      limits.write_gbs, "problem", "median ms", "spread %", "GFLOP/s", "GB/s", "fraction",
      "plain ms", "error");
  for (const Row& row : rows) {
    text += fmt::format("{:<14} {:>10.4g} {:>8.1f} {:>9.4g} {:>8.3g} {:>9.3f} {:>10} {:>9.2g} {}\n",
                        row.problem.name, 1e3 * row.fused.median, 100 * row.fused.spread,
                        row.flops / row.fused.median / 1e9, row.bytes / row.fused.median / 1e9,
                        fraction(row, limits),
                        row.plain.runs > 0 ? fmt::format("{:.4g}", 1e3 * row.plain.median) : "-",
                        row.error, row.cold ? "of read bandwidth, cold" : "of peak");
  }
  return text;
}

std::string as_json(const std::vector<Row>& rows, const Limits& limits) {
  Json results = Json::array();
  for (const Row& row : rows) {
    Json entry = {{"name", row.problem.name},
                  {"median_ms", 1e3 * row.fused.median},
                  {"spread", row.fused.spread},
                  {"gflops", row.flops / row.fused.median / 1e9},
                  {"gbs", row.bytes / row.fused.median / 1e9},
                  {"fraction", fraction(row, limits)},
                  {"cold", row.cold},
                  {"runs", row.fused.runs},
                  {"error", row.error}};
    if (row.plain.runs > 0) entry["plain_ms"] = 1e3 * row.plain.median;
    results.push_back(std::move(entry));
  }
  const Json machine = {
      {"peak_gflops", limits.peak_gflops}, {"read_gbs", limits.read_gbs},
      {"copy_gbs", limits.copy_gbs},       {"write_gbs", limits.write_gbs},
      {"threads", exec::concurrency()},    {"target", kernel::kernels().target.name}};
  return Json({{"machine", machine}, {"results", results}}).dump(2) + "\n";
}

}  // namespace

std::string bench_attention(const AttentionBench& bench) {
  const std::vector<AttentionProblem> problems = read_attention_problems(bench.path);
  LimitProbe probe(bench.dtype, bench.buffer_bytes);
  probe.measure();
  std::vector<Row> rows;
  for (const AttentionProblem& problem : problems) {
    rows.push_back(time_problem(problem, bench, probe.best()));
  }
  probe.measure();
  return bench.json ? as_json(rows, probe.best()) : as_table(rows, probe.best());
}

}  // namespace einkern::tools
