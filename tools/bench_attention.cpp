// SPDX-License-Identifier: Apache-2.0
// `einkern bench --attention`: visible work a second, and the part of the machine's limits that it
// is.
#include "bench_attention.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "../engine/graph/expr.h"
#include "../engine/tensor/create.h"
#include "../engine/tensor/pool.h"
#include "bench_attention_problem.h"
#include "bench_measure.h"
#include "bench_problems.h"
#include "bench_report.h"
#include "stopwatch.h"
#include "table.h"
#include "values.h"

namespace einkern::tools {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::size_t kFewestRuns = 11;
// The plain route of a long problem is not waited for.
constexpr std::size_t kFewestPlainRuns = 3;
constexpr double kMostPlainSeconds = 10;

/// One way to evaluate a problem.
struct Way {
  Times times;
  double extra_bytes = 0;
};

struct AttentionTime {
  AttentionProblem problem;
  double error = 0, flops = 0, bytes = 0;
  bool memory_bound = false, cold = false;
  Way fused;
  std::optional<Way> plain;
  double plain_ratio = 0;  // median over pairs of turns
  Limits limits;           // while it was timed
};

/// What the evaluation takes for itself.
double extra_bytes(const Tensor& out, const Expr& output, bool fuse) {
  BlocksInUse& blocks = blocks_in_use();
  blocks.reset_peak();
  const std::size_t before = blocks.bytes();
  eval_into(out, output, {.fuse = fuse});
  return static_cast<double>(blocks.peak() - before);
}

AttentionTime time_problem(const AttentionProblem& problem, const AttentionBench& bench,
                           LimitProbe& probe) {
  AttentionTime row{
      problem, 0, problem.visible_flops(), problem.bytes(bench.dtype), false, false, {}, {}, 0, {}};
  std::vector<AttentionOperands> sets;
  sets.emplace_back(problem, bench.dtype, 1);
  const Tensor out = zeros(sets[0].output.shape(), compute_dtype(bench.dtype));
  row.fused.extra_bytes = extra_bytes(out, sets[0].output, true);
  row.error = check_attention(problem, sets[0], out);
  if (bench.plain) {
    row.plain.emplace().extra_bytes = extra_bytes(out, sets[0].output, false);
    check_attention(problem, sets[0], out);
  }
  const Limits& best = probe.best();
  row.memory_bound = row.bytes / best.read_gbs > row.flops / best.peak_gflops(bench.dtype);
  row.cold = row.memory_bound && !bench.warm;
  if (row.cold) {
    const auto wanted =
        std::min(std::uint64_t{kMostSets},
                 static_cast<std::uint64_t>(static_cast<double>(bench.buffer_bytes) / row.bytes));
    for (std::uint64_t i = 1; i <= wanted; ++i) sets.emplace_back(problem, bench.dtype, 1 + 8 * i);
  }
  std::vector<double> fused, plain, ratios;
  std::size_t calls = 0;
  const auto once = [&](std::vector<double>& seconds, bool fuse) {
    const Expr& output = sets[calls++ % sets.size()].output;
    const Stopwatch watch;
    eval_into(out, output, {.fuse = fuse});
    seconds.push_back(watch.seconds());
    return seconds.back();
  };
  double plain_total = 0;
  LimitsInTurn limits(probe, bench.dtype, row.memory_bound);
  for (double total = 0; fused.size() < kFewestRuns || total < bench.min_seconds;) {
    const Stopwatch turn;
    total += once(fused, true);
    if (bench.plain && (plain.size() < kFewestPlainRuns || plain_total < kMostPlainSeconds)) {
      plain_total += once(plain, false);
      ratios.push_back(plain.back() / fused.back());
    }
    const bool spoilt = limits.after_turn(turn.seconds()) && row.memory_bound && !row.cold;
    if (spoilt) eval_into(out, sets[0].output, {});
  }
  row.limits = limits.limits();
  row.fused.times = summarise(std::move(fused));
  if (row.plain) {
    row.plain->times = summarise(std::move(plain));
    row.plain_ratio = summarise(std::move(ratios)).median;
  }
  return row;
}

/// Of the arithmetic peak, or for problems bound by memory of the read bandwidth.
double fraction(const AttentionTime& row, DType dtype) {
  const double seconds = row.fused.times.median;
  return row.memory_bound ? row.bytes / seconds / 1e9 / row.limits.read_gbs
                          : row.flops / seconds / 1e9 / row.limits.peak_gflops(dtype);
}

std::string of_what(const AttentionTime& row) {
  if (!row.memory_bound) return "peak";
  return row.cold ? "read bandwidth, cold" : "read bandwidth, warm";
}

std::string mebibytes(double bytes) { return fmt::format("{:.4g}", bytes / (1 << 20)); }

std::string as_table(const std::vector<AttentionTime>& rows, const Limits& limits,
                     const AttentionBench& bench) {
  using enum Table::Align;
  std::vector<Table::Column> columns = {{"problem", left}, {"median ms"}, {"spread %"},
                                        {"GFLOP/s"},       {"GB/s"},      {"fraction"},
                                        {"of", left},      {"extra MiB"}, {"error"}};
  if (bench.plain) {
    columns.insert(columns.end(), {{"plain ms"}, {"plain / fused"}, {"plain extra MiB"}});
  }
  Table table(std::move(columns));
  for (const AttentionTime& row : rows) {
    const double seconds = row.fused.times.median;
    std::vector<std::string> cells = {row.problem.name,
                                      fmt::format("{:.4g}", 1e3 * seconds),
                                      fmt::format("{:.1f}", 100 * row.fused.times.spread),
                                      fmt::format("{:.4g}", row.flops / seconds / 1e9),
                                      fmt::format("{:.3g}", row.bytes / seconds / 1e9),
                                      fmt::format("{:.3f}", fraction(row, bench.dtype)),
                                      of_what(row),
                                      mebibytes(row.fused.extra_bytes),
                                      fmt::format("{:.2g}", row.error)};
    if (row.plain) {
      cells.push_back(fmt::format("{:.4g}", 1e3 * row.plain->times.median));
      cells.push_back(fmt::format("{:.2f}", row.plain_ratio));
      cells.push_back(mebibytes(row.plain->extra_bytes));
    }
    table.add(std::move(cells));
  }
  const std::string machine = machine_line(limits);
  return bench.form == ReportForm::markdown
             ? fmt::format("```\n{}```\n\n{}", machine, table.str(TableStyle::markdown))
             : machine + table.str(TableStyle::aligned);
}

std::string as_json(const std::vector<AttentionTime>& rows, const Limits& limits, DType dtype) {
  Json results = Json::array();
  for (const AttentionTime& row : rows) {
    const double seconds = row.fused.times.median;
    Json entry = {{"name", row.problem.name},
                  {"dtype", name_of(row.problem.stored.value_or(dtype))},
                  {"median_ms", 1e3 * seconds},
                  {"spread", row.fused.times.spread},
                  {"gflops", row.flops / seconds / 1e9},
                  {"gbs", row.bytes / seconds / 1e9},
                  {"fraction", fraction(row, dtype)},
                  {"limits", limits_json(row.limits, dtype)},
                  {"cold", row.cold},
                  {"runs", row.fused.times.runs},
                  {"extra_bytes", row.fused.extra_bytes},
                  {"error", row.error}};
    if (row.plain) {
      entry["plain_ms"] = 1e3 * row.plain->times.median;
      entry["plain_ratio"] = row.plain_ratio;
      entry["plain_extra_bytes"] = row.plain->extra_bytes;
    }
    results.push_back(std::move(entry));
  }
  return Json({{"machine", machine_json(limits, dtype)}, {"results", results}}).dump(2) + "\n";
}

std::vector<AttentionProblem> select_problems(const AttentionBench& bench) {
  std::vector<AttentionProblem> problems = read_attention_problems(bench.source);
  return bench.only.empty() ? problems
                            : select_named("bench: --only", bench.only, std::move(problems));
}

}  // namespace

std::string list_attention(const AttentionBench& bench) {
  using enum Table::Align;
  Table table({{"problem", left}, {"variant", left}, {"q", left}, {"k", left}, {"v", left}});
  for (const AttentionProblem& problem : select_problems(bench)) {
    const auto shape = [&](std::int64_t heads, std::int64_t positions, std::int64_t depth) {
      return problem.positions_first ? shape_text({problem.batch, positions, heads, depth})
                                     : shape_text({problem.batch, heads, positions, depth});
    };
    table.add({problem.name, problem.variant, shape(problem.heads, problem.queries, problem.dk),
               shape(problem.kv_heads, problem.keys, problem.dk),
               shape(problem.kv_heads, problem.keys, problem.dv)});
  }
  return table.str(TableStyle::aligned);
}

std::string bench_attention(const AttentionBench& bench) {
  const std::vector<AttentionProblem> problems = select_problems(bench);
  LimitProbe probe(bench.buffer_bytes);
  probe.measure();
  std::vector<AttentionTime> rows;
  for (const AttentionProblem& problem : problems) {
    rows.push_back(time_problem(problem, bench, probe));
  }
  probe.measure();
  return bench.form == ReportForm::json ? as_json(rows, probe.best(), bench.dtype)
                                        : as_table(rows, probe.best(), bench);
}

}  // namespace einkern::tools
