// SPDX-License-Identifier: Apache-2.0
// `einkern bench`: the time of an einsum, and the part of the machine's limits that it reaches.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "../engine/exec/parallel.h"
#include "../engine/graph/expr.h"
#include "../engine/kernel/kernels.h"
#include "../engine/tensor/create.h"
#include "../ops/elementwise.h"
#include "bench_check.h"
#include "bench_limits.h"
#include "commands.h"
#include "equation_argument.h"
#include "files.h"
#include "stopwatch.h"
#include "values.h"
#include "version.h"

namespace einkern::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kMebibyte = 1 << 20;
constexpr std::size_t kFewestRuns = 11;
constexpr std::int64_t kMostSets = 4096;

struct Problem {
  std::string equation;
  std::vector<Shape> shapes;
  DType dtype = f32;
  PathChoice path;

  std::string name() const {
    std::string text = equation;
    char before = ' ';
    for (const Shape& shape : shapes) {
      text += before + shape_text(shape);
      before = ',';
    }
    return fmt::format("{} {}", text, name_of(dtype));
  }
};

/// One set of operands and the output they are contracted into.
struct OperandSet {
  std::vector<Tensor> operands;
  Expr value;
  Tensor out;

  OperandSet(const Problem& problem, std::uint64_t seed)
      : operands(make_operands(problem, seed)),
        value(einsum(problem.equation, {operands.begin(), operands.end()}, {problem.path})),
        out(zeros(value.shape(), problem.dtype)) {
  }  // touched: pages are there before the first run

  void run() const { eval_into(out, value); }

 private:
  static std::vector<Tensor> make_operands(const Problem& problem, std::uint64_t seed) {
    std::vector<Tensor> operands;
    for (const Shape& shape : problem.shapes) {
      operands.push_back(random(shape, seed++, problem.dtype) - 0.5);
    }
    return operands;
  }
};

/// What a problem must do at least: operations of its plan, and every operand and the output once.
struct Work {
  double flops = 0, bytes_read = 0, bytes_written = 0;

  explicit Work(const OperandSet& set) {
    const Json plan = Json::parse(explain_json({set.value}));
    for (const Json& step : plan.at("steps")) flops += step.at("flops").get<double>();
    const auto bytes = [](const Tensor& tensor) {
      return static_cast<double>(tensor.size()) * static_cast<double>(size_of(tensor.dtype()));
    };
    for (const Tensor& operand : set.operands) bytes_read += bytes(operand);
    bytes_written = bytes(set.out);
  }

  double memory_seconds(const Limits& limits) const {
    return bytes_read / (1e9 * limits.read_gbs) + bytes_written / (1e9 * limits.write_gbs);
  }
  double compute_seconds(const Limits& limits) const { return flops / (1e9 * limits.peak_gflops); }
  double least_seconds(const Limits& limits) const {
    return std::max(compute_seconds(limits), memory_seconds(limits));
  }
};

struct Times {
  double median = 0;
  double spread = 0;  // between the quartiles, relative to the median
  std::size_t runs = 0;
};

Times summarise(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const auto at = [&](double part) {
    const double place = std::round(part * static_cast<double>(seconds.size() - 1));
    return seconds[static_cast<std::size_t>(place)];
  };
  return {at(0.5), (at(0.75) - at(0.25)) / at(0.5), seconds.size()};
}

struct Result {
  Samples samples;
  Work work;
  Times times;
  bool cold = false;  // operands were not in the caches
  Limits limits;

  double gflops() const { return work.flops / times.median / 1e9; }
  double gbs() const { return (work.bytes_read + work.bytes_written) / times.median / 1e9; }
  double roofline() const { return work.least_seconds(limits) / times.median; }
};

Result measure(const Problem& problem, double min_seconds, std::int64_t buffer_bytes) {
  LimitProbe probe(problem.dtype, buffer_bytes);
  probe.measure();

  std::vector<OperandSet> sets;
  sets.emplace_back(problem, 1);
  sets[0].run();
  const Samples samples =
      check_samples(make_spec(problem.equation, problem.shapes), sets[0].operands, sets[0].out);

  const Work work(sets[0]);
  const bool cold = work.memory_seconds(probe.best()) > work.compute_seconds(probe.best());
  if (cold) {
    const double bytes = std::max(1.0, work.bytes_read + work.bytes_written);
    const auto wanted = static_cast<std::int64_t>(static_cast<double>(buffer_bytes) / bytes) + 1;
    for (std::int64_t i = 1; i < std::min(wanted, kMostSets); ++i) {
      sets.emplace_back(problem, 1 + 64 * static_cast<std::uint64_t>(i));
    }
  }
  for (const OperandSet& set : sets) set.run();

  std::vector<double> seconds;
  double total = 0;
  bool probed = false;
  while (seconds.size() < kFewestRuns || total < min_seconds) {
    const OperandSet& set = sets[seconds.size() % sets.size()];
    const Stopwatch watch;
    set.run();
    seconds.push_back(watch.seconds());
    total += seconds.back();
    if (!probed && total > min_seconds / 2) {
      probe.measure();
      probed = true;
    }
  }
  probe.measure();
  return {samples, work, summarise(std::move(seconds)), cold, probe.best()};
}

std::vector<std::string> flags_of(const Result& result) {
  std::vector<std::string> flags;
  if (is_debug_build()) flags.emplace_back("debug build");
  if (result.roofline() > 1.15) flags.emplace_back("faster than the measured limits");
  return flags;
}

std::string as_json(const Problem& problem, const Result& result) {
  const Limits& limits = result.limits;
  const Json machine = {
      {"peak_gflops", limits.peak_gflops}, {"read_gbs", limits.read_gbs},
      {"copy_gbs", limits.copy_gbs},       {"write_gbs", limits.write_gbs},
      {"threads", exec::concurrency()},    {"target", kernel::kernels().target.name}};
  const Json row = {{"name", problem.name()},
                    {"equation", problem.equation},
                    {"median_ms", 1e3 * result.times.median},
                    {"spread", result.times.spread},
                    {"gflops", result.gflops()},
                    {"gbs", result.gbs()},
                    {"roofline", result.roofline()},
                    {"cold", result.cold},
                    {"runs", result.times.runs},
                    {"flags", flags_of(result)}};
  return Json({{"machine", machine}, {"results", Json::array({row})}}).dump(2) + "\n";
}

std::string as_text(const Problem& problem, const Result& result) {
  const Limits& limits = result.limits;
  std::string text = fmt::format(
      "machine   {}, {} threads: {:.1f} GFLOP/s; read {:.1f}, copy {:.1f}, write {:.1f} GB/s\n",
      kernel::kernels().target.name, exec::concurrency(), limits.peak_gflops, limits.read_gbs,
      limits.copy_gbs, limits.write_gbs);
  text += fmt::format("problem   {}\n", problem.name());
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
      .usage = "'EQUATION' --shapes SHAPES [OPTIONS]",
      .summary = "Checks an einsum against a float64 loop, times it, and says which part of the "
                 "limits of\n"
                 "this machine, measured in the same run, it reaches (the roofline fraction).",
      .examples = {"einkern bench 'ik,kj->ij' --shapes 1024x1024,1024x1024",
                   "einkern bench 'bhqd,bhkd->bhqk' --shapes 1x12x512x64,1x12x512x64 --json",
                   "einkern bench 'ij->ji' --shapes 4096x4096 --dtype f64 --threads 1"},
  });
  std::optional<std::string> equation, shapes, dtype, path, threads, target, min_time, buffers;
  bool json = false;
  add_equation_option(options, equation);
  options.value("--shapes", "SHAPES", shapes, "shapes of the operands: 2x3,3x4; a scalar is -");
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
  const auto positional = options.parse(arguments);
  if (!positional) return;

  const EquationArgument taken = take_equation(options, equation, *positional);
  if (!taken.files.empty()) {
    options.refuse(
        fmt::format("'{}' is no option; operands are given by --shapes", taken.files[0]));
  }
  if (!shapes) options.refuse("no operands given; use --shapes");
  Problem problem{taken.equation, parse_shapes("bench: --shapes", *shapes), f32, {}};
  if (dtype) problem.dtype = parse_dtype("bench: --dtype", *dtype);
  if (!is_float(problem.dtype))
    options.refuse("--dtype: only f32 and f64 have a peak to compare with");
  if (path) problem.path = parse_path_option("bench: --path", *path);
  const int width = threads ? parse_threads("bench: --threads", *threads) : 0;
  const double min_seconds = min_time ? parse_number("bench: --min-time", *min_time) : 0.5;
  const std::int64_t mebibytes = buffers ? parse_integer("bench: --buffers", *buffers, 1) : 1024;
  if (target) choose_target(options, *target);
  make_spec(problem.equation, problem.shapes, "bench");

  exec::in_arena(width, [&](std::int64_t) {
    const Result result = measure(problem, min_seconds, mebibytes * kMebibyte);
    print(json ? as_json(problem, result) : as_text(problem, result));
  });
}

}  // namespace einkern::tools
