// SPDX-License-Identifier: Apache-2.0
// What the benchmark measured, as text, Markdown and JSON.
#include "bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "../engine/exec/parallel.h"
#include "../engine/kernel/kernels.h"
#include "version.h"

namespace einkern::tools {
namespace {

using Json = nlohmann::ordered_json;

// Probes and rows that lie further apart than this are no measurement of the same machine.
constexpr double kSteady = 0.9;
// What no problem can be: above it the limits, or the count of the work, are wrong.
constexpr double kMostOfLimits = 1.15;

std::string milliseconds(double seconds) { return fmt::format("{:.4g}", 1e3 * seconds); }

bool same_work(const std::vector<Result>& results) {
  const Work& first = results[0].work;
  return results.size() > 1 &&
         std::ranges::all_of(results, [&](const Result& result) { return result.work == first; });
}

const PeerTimes* find_peer(const Result& result, const std::string& name) {
  const auto at = std::ranges::find(result.peers, name, &PeerTimes::name);
  return at == result.peers.end() ? nullptr : &*at;
}

/// `6.74 (1.03)`, with a star where the problem had to be permuted.
std::string peer_cell(const Result& result, const std::string& name) {
  const PeerTimes* const peer = find_peer(result, name);
  if (peer == nullptr) return "-";
  return fmt::format("{} ({:.2f}){}", milliseconds(peer->times.median), peer->ratio,
                     result.peers_permute ? "*" : "");
}

std::vector<std::string> asked_of(const Report& report) {
  return report.peers == nullptr ? std::vector<std::string>() : report.peers->asked;
}

/// Seconds of the stored run as this machine would take now; nothing when it lacks the problem.
std::optional<double> stored_seconds(const Problem& problem, const Report& report) {
  const auto at = report.stored->medians.find(problem.name);
  if (at == report.stored->medians.end()) return {};
  return at->second * slowdown_since(*report.stored, report.canary);
}

std::string stored_cell(const Problem& problem, const Result& result, const Report& report) {
  const auto seconds = stored_seconds(problem, report);
  if (!seconds) return "-";
  return fmt::format("{} ({:.2f})", milliseconds(*seconds), *seconds / result.into.median);
}

/// The lines above a table.
std::string head_of(const Report& report) {
  std::string text = machine_line(report.limits);
  text += fmt::format("canary    1024 x 1024 x 1024 in f32 by {}: {} ms before, {} ms after\n",
                      report.canary.library, milliseconds(report.canary.before),
                      milliseconds(report.canary.after));
  if (report.peers != nullptr && !report.peers->found.empty()) {
    std::string names;
    for (const Peer& peer : report.peers->found) {
      names += fmt::format("{}{} {} ({})", names.empty() ? "" : ", ", peer.name, peer.version,
                           peer.core);
    }
    text += fmt::format(
        "peers     {}\n"
        "          on as many threads: ms (ratio to ours); as gemm, gemv or dot where the problem\n"
        "          is one, else (*) between permutes by einkern's own copies\n",
        names);
  }
  if (report.stored) {
    text += fmt::format("stored    ms (ratio to ours), scaled by the canaries' {:.3f}\n",
                        slowdown_since(*report.stored, report.canary));
  }
  for (const std::string& flag : flags_of(report)) text += fmt::format("flag      {}\n", flag);
  return text;
}

}  // namespace

Json limits_json(const Limits& limits, DType dtype) {
  return {{"peak_gflops", limits.peak_gflops(dtype)},
          {"read_gbs", limits.read_gbs},
          {"write_gbs", limits.write_gbs}};
}

Json machine_json(const Limits& limits, DType dtype) {
  return {{"peak_gflops", limits.peak_gflops(dtype)},
          {"peak_f32_gflops", limits.peak_f32_gflops},
          {"peak_f64_gflops", limits.peak_f64_gflops},
          {"read_gbs", limits.read_gbs},
          {"copy_gbs", limits.copy_gbs},
          {"write_gbs", limits.write_gbs},
          {"threads", exec::concurrency()},
          {"target", kernel::kernels().target.name}};
}

std::string machine_line(const Limits& limits) {
  const int threads = exec::concurrency();
  return fmt::format(
      "machine   {}, {} thread{}: {:.1f} GFLOP/s in f32, {:.1f} in f64; read {:.1f}, copy {:.1f}, "
      "write {:.1f} GB/s\n",
      kernel::kernels().target.name, threads, threads == 1 ? "" : "s", limits.peak_f32_gflops,
      limits.peak_f64_gflops, limits.read_gbs, limits.copy_gbs, limits.write_gbs);
}

std::vector<std::string> flags_of(const Report& report) {
  std::vector<std::string> flags;
  if (report.peers != nullptr) flags = report.peers->flags;
  if (report.stored) {
    std::ranges::move(flags_of(*report.stored, report.limits, report.canary, exec::concurrency()),
                      std::back_inserter(flags));
  }
  if (is_debug_build()) flags.emplace_back("debug build");
  if (report.steadiness < kSteady) {
    flags.push_back(fmt::format("the machine wavered: one probe gave {:.2f} of the best peak",
                                report.steadiness));
  }
  return flags;
}

std::vector<std::string> flags_of(const Result& result) {
  std::vector<std::string> flags;
  if (result.roofline() > kMostOfLimits) {
    flags.emplace_back(result.cold || !result.work.is_memory_bound(result.limits)
                           ? "faster than the measured limits"
                           : "faster than memory: operands in the caches");
  }
  return flags;
}

std::string as_json(const std::vector<Problem>& problems, const Report& report, DType dtype) {
  Json machine = machine_json(report.limits, dtype);
  machine["canary"] = {{"library", report.canary.library},
                       {"before_ms", 1e3 * report.canary.before},
                       {"after_ms", 1e3 * report.canary.after}};
  if (report.peers != nullptr) {
    for (const std::string& name : asked_of(report)) {
      const Peer* const peer = report.peers->find(name);
      machine["peers"][name] =
          peer == nullptr ? Json() : Json{{"version", peer->version}, {"core", peer->core}};
    }
  }
  machine["flags"] = flags_of(report);
  Json rows = Json::array();
  for (std::size_t i = 0; i < problems.size(); ++i) {
    const Result& result = report.results[i];
    Json times = Json::object(), ratios = Json::object();
    for (const std::string& name : asked_of(report)) {
      const PeerTimes* const peer = find_peer(result, name);
      times[name] = peer == nullptr ? Json() : Json(1e3 * peer->times.median);
      ratios[name] = peer == nullptr ? Json() : Json(peer->ratio);
    }
    rows.push_back({{"name", problems[i].name},
                    {"equation", problems[i].equation},
                    {"dtype", name_of(problems[i].dtype)},
                    {"median_ms", 1e3 * result.into.median},
                    {"fresh_ms", 1e3 * result.fresh.median},
                    {"spread", result.into.spread},
                    {"gflops", result.gflops()},
                    {"gbs", result.gbs()},
                    {"roofline", result.roofline()},
                    {"limits", limits_json(result.limits, problems[i].dtype)},
                    {"cold", result.cold},
                    {"regime", result.regime},
                    {"runs", result.into.runs},
                    {"peers", times},
                    {"peer_ratios", ratios},
                    {"peers_permute", result.peers_permute},
                    {"flags", flags_of(result)}});
    if (!report.stored) continue;
    const auto stored = stored_seconds(problems[i], report);
    rows.back()["stored_ms"] = stored ? Json(1e3 * *stored) : Json();
    rows.back()["stored_ratio"] = stored ? Json(*stored / result.into.median) : Json();
  }
  return Json({{"machine", machine}, {"results", rows}}).dump(2) + "\n";
}

std::string as_text(const Problem& problem, const Report& report) {
  const Result& result = report.results[0];
  std::string text = head_of(report);
  text += fmt::format("problem   {}\n", problem.name);
  text += fmt::format("checked   {} elements against a float64 loop, largest error {:.2g}\n",
                      result.samples.elements, result.samples.largest_error);
  text += fmt::format("regime    {}\n", result.regime);
  text += fmt::format("median    {} ms of {} runs, spread {:.1f} %, {}\n",
                      milliseconds(result.into.median), result.into.runs, 100 * result.into.spread,
                      result.cold ? "cold" : "warm");
  text += fmt::format("fresh     {} ms with a new tensor each time\n",
                      milliseconds(result.fresh.median));
  text += fmt::format("rate      {:.4g} GFLOP/s, {:.4g} GB/s\nroofline  {:.3f}\n", result.gflops(),
                      result.gbs(), result.roofline());
  for (const PeerTimes& peer : result.peers) {
    text += fmt::format("{:<9} {}\n", peer.name, peer_cell(result, peer.name));
  }
  if (report.stored) text += fmt::format("stored    {}\n", stored_cell(problem, result, report));
  for (const std::string& flag : flags_of(result)) {
    text += fmt::format("flag      {}\n", flag);
  }
  return text;
}

std::string as_table(const std::vector<Problem>& problems, const Report& report, TableStyle style) {
  using enum Table::Align;
  const std::vector<Result>& results = report.results;
  const bool rates = same_work(results);
  std::vector<Table::Column> columns = {{"problem", left}, {"regime", left}, {"operands", left},
                                        {"median ms"},     {"spread %"},     {"fresh ms"},
                                        {"GFLOP/s"},       {"GB/s"},         {"roofline"}};
  if (rates) columns.push_back({"rate"});
  for (const std::string& name : asked_of(report)) columns.push_back({name});
  if (report.stored) columns.push_back({"stored"});
  columns.push_back({"flags", left});
  Table table(std::move(columns));
  for (std::size_t i = 0; i < problems.size(); ++i) {
    const Result& result = results[i];
    std::vector<std::string> cells = {problems[i].name,
                                      result.regime,
                                      result.cold ? "cold" : "warm",
                                      milliseconds(result.into.median),
                                      fmt::format("{:.1f}", 100 * result.into.spread),
                                      milliseconds(result.fresh.median),
                                      fmt::format("{:.4g}", result.gflops()),
                                      fmt::format("{:.3g}", result.gbs()),
                                      fmt::format("{:.3f}", result.roofline())};
    if (rates) cells.push_back(fmt::format("{:.3f}", results[0].into.median / result.into.median));
    for (const std::string& name : asked_of(report)) cells.push_back(peer_cell(result, name));
    if (report.stored) cells.push_back(stored_cell(problems[i], result, report));
    cells.push_back(fmt::format("{}", fmt::join(flags_of(result), ", ")));
    table.add(std::move(cells));
  }
  const std::string head = head_of(report);
  return style == TableStyle::markdown ? fmt::format("```\n{}```\n\n{}", head, table.str(style))
                                       : head + table.str(style);
}

}  // namespace einkern::tools
