// SPDX-License-Identifier: Apache-2.0
// `einkern bench`: the time of an einsum, and the part of the machine's limits that it reaches.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "../engine/exec/parallel.h"
#include "../engine/kernel/kernels.h"
#include "../engine/spec/spec.h"
#include "bench_attention.h"
#include "bench_measure.h"
#include "commands.h"
#include "equation_argument.h"
#include "files.h"
#include "values.h"
#include "version.h"

namespace einkern::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kMebibyte = 1 << 20;

std::string name_of_single(const std::string& equation, const std::vector<Shape>& shapes,
                           DType dtype) {
  std::string text = equation;
  char before = ' ';
  for (const Shape& shape : shapes) {
    text += before + shape_text(shape);
    before = ',';
  }
  return fmt::format("{} {}", text, name_of(dtype));
}

std::vector<std::string> flags_of(const Result& result) {
  std::vector<std::string> flags;
  if (is_debug_build()) flags.emplace_back("debug build");
  if (result.roofline() > 1.15) flags.emplace_back("faster than the measured limits");
  return flags;
}

std::string as_json(const std::vector<Problem>& problems, const std::vector<Result>& results) {
  const Limits& limits = results[0].limits;
  const Json machine = {
      {"peak_gflops", limits.peak_gflops}, {"read_gbs", limits.read_gbs},
      {"copy_gbs", limits.copy_gbs},       {"write_gbs", limits.write_gbs},
      {"threads", exec::concurrency()},    {"target", kernel::kernels().target.name}};
  Json rows = Json::array();
  for (std::size_t i = 0; i < problems.size(); ++i) {
    const Result& result = results[i];
    rows.push_back({{"name", problems[i].name},
                    {"equation", problems[i].equation},
                    {"median_ms", 1e3 * result.times.median},
                    {"spread", result.times.spread},
                    {"gflops", result.gflops()},
                    {"gbs", result.gbs()},
                    {"roofline", result.roofline()},
                    {"cold", result.cold},
                    {"runs", result.times.runs},
                    {"flags", flags_of(result)}});
  }
  return Json({{"machine", machine}, {"results", rows}}).dump(2) + "\n";
}

std::string machine_line(const Limits& limits) {
  return fmt::format(
      "machine   {}, {} threads: {:.1f} GFLOP/s; read {:.1f}, copy {:.1f}, write {:.1f} GB/s\n",
      kernel::kernels().target.name, exec::concurrency(), limits.peak_gflops, limits.read_gbs,
      limits.copy_gbs, limits.write_gbs);
}

std::string as_text(const Problem& problem, const Result& result) {
  std::string text = machine_line(result.limits);
  text += fmt::format("problem   {}\n", problem.name);
  text += fmt::format("checked   {} elements against a float64 loop, largest error {:.2g}\n",
                      result.samples.elements, result.samples.largest_error);
  text += fmt::format("median    {:.4g} ms of {} runs, spread {:.1f} %, {}\n",
                      1e3 * result.times.median, result.times.runs, 100 * result.times.spread,
                      result.cold ? "cold" : "warm");
  text += fmt::format("rate      {:.4g} GFLOP/s, {:.4g} GB/s\nroofline  {:.3f}\n", result.gflops(),
                      result.gbs(), result.roofline());
  for (const std::string& flag : flags_of(result)) text += fmt::format("flag      {}\n", flag);
  return text;
}

/// A line a problem; `rate` is relative to the first problem's GFLOP/s.
std::string as_table(const std::vector<Problem>& problems, const std::vector<Result>& results) {
  std::string text = machine_line(results[0].limits);
  text += fmt::format("{:<24} {:>10} {:>8} {:>9} {:>8} {:>9} {:>6}\n", "problem", "median ms",
                      "spread %", "GFLOP/s", "GB/s", "roofline", "rate");
  for (std::size_t i = 0; i < problems.size(); ++i) {
    const Result& result = results[i];
    text += fmt::format("{:<24} {:>10.4g} {:>8.1f} {:>9.4g} {:>8.3g} {:>9.3f} {:>6.3f} {}",
                        problems[i].name, 1e3 * result.times.median, 100 * result.times.spread,
                        result.gflops(), result.gbs(), result.roofline(),
                        result.gflops() / results[0].gflops(), result.cold ? "cold" : "warm");
    for (const std::string& flag : flags_of(result)) text += fmt::format(", {}", flag);
    text += "\n";
  }
  return text;
}

void choose_target(const Options& options, const std::string& name) {
  std::string choices;
  for (const kernel::Kernels* table : kernel::supported_kernels()) {
    if (table->target.name == name) return kernel::force_target(*table);
    choices += fmt::format("{}{}", choices.empty() ? "" : ", ", table->target.name);
  }
  options.refuse(
      fmt::format("--target: no target '{}' on this processor; choices: {}", name, choices));
}

}  // namespace

void bench_command(const std::vector<std::string>& arguments) {
  Options options({
      .command = "bench",
      .usage = "('EQUATION' --shapes SHAPES | --problems FILE | --attention FILE) [OPTIONS]",
      .summary = "Checks an einsum against a float64 loop, times it, and says which part of the "
                 "limits of\n"
                 "this machine, measured in the same run, it reaches (the roofline fraction).",
      .examples = {"einkern bench 'ik,kj->ij' --shapes 1024x1024,1024x1024",
                   "einkern bench 'bhqd,bhkd->bhqk' --shapes 1x12x512x64,1x12x512x64 --json",
                   "einkern bench 'ij->ji' --shapes 4096x4096 --dtype f64 --threads 1",
                   "einkern bench --problems tools/bench/layouts.tsv",
                   "einkern bench --attention tools/bench/attention.tsv"},
  });
  std::optional<std::string> equation, shapes, file, attention, dtype, path, threads, target,
      min_time, buffers;
  bool json = false, plain = false;
  add_equation_option(options, equation);
  options.value("--shapes", "SHAPES", shapes, "shapes of the operands: 2x3,3x4; a scalar is -");
  options.value("--problems", "FILE", file,
                "time all problems of a file, in turn: name<TAB>equation<TAB>i=4,j=5 a line");
  options.value("--attention", "FILE", attention,
                "time the attention problems of a file (tools/bench/attention.tsv)");
  options.value("--dtype", "DTYPE", dtype, "f32 (default) or f64");
  options.value("--path", "PATH", path,
                "order: auto, greedy, optimal, or opt_einsum's positions '0,1;0,1'");
  options.value("--threads", "N", threads, "threads (default: all that this process may use)");
  options.value("--target", "NAME", target, "SIMD target (default: the best of this processor)");
  options.value("--min-time", "SECONDS", min_time,
                "time runs for at least this long (default: 0.5)");
  options.value("--buffers", "MIB", buffers,
                "size of the buffers that bandwidths are measured on (default: 1024)");
  options.flag("--json", json, "print JSON");
  options.flag("--no-fuse", plain, "with --attention: time every problem without fusion as well");
  const auto positional = options.parse(arguments);
  if (!positional) return;

  const DType element = dtype ? parse_dtype("bench: --dtype", *dtype) : f32;
  if (!is_float(element)) options.refuse("--dtype: only f32 and f64 have a peak to compare with");
  const int width = threads ? parse_threads("bench: --threads", *threads) : 0;
  const double min_seconds = min_time ? parse_number("bench: --min-time", *min_time) : 0.5;
  const std::int64_t mebibytes = buffers ? parse_integer("bench: --buffers", *buffers, 1) : 1024;
  if (target) choose_target(options, *target);
  if (attention) {
    if (equation || shapes || file || path || !positional->empty()) {
      options.refuse("--attention names its own problems");
    }
    exec::in_arena(width, [&](std::int64_t) {
      print(
          bench_attention({*attention, element, min_seconds, mebibytes * kMebibyte, plain, json}));
    });
    return;
  }
  if (plain) options.refuse("--no-fuse goes with --attention");
  std::vector<Problem> problems;
  if (file) {
    if (equation || shapes || path || !positional->empty()) {
      options.refuse("--problems names its own equations, shapes and paths");
    }
    problems = read_problems(*file, element);
  } else {
    const EquationArgument taken = take_equation(options, equation, *positional);
    if (!taken.files.empty()) {
      options.refuse(
          fmt::format("'{}' is no option; operands are given by --shapes", taken.files[0]));
    }
    if (!shapes) options.refuse("no operands given; use --shapes");
    Problem problem{"", taken.equation, parse_shapes("bench: --shapes", *shapes), element, {}};
    problem.name = name_of_single(problem.equation, problem.shapes, element);
    if (path) problem.path = parse_path_option("bench: --path", *path);
    problems.push_back(std::move(problem));
  }
  for (const Problem& problem : problems) make_spec(problem.equation, problem.shapes, "bench");

  exec::in_arena(width, [&](std::int64_t) {
    const std::vector<Result> results = measure(problems, min_seconds, mebibytes * kMebibyte);
    print(json   ? as_json(problems, results)
          : file ? as_table(problems, results)
                 : as_text(problems[0], results[0]));
  });
}

}  // namespace einkern::tools
