// SPDX-License-Identifier: Apache-2.0
// `einkern bench`: the time of einsums, and the part of the machine's limits that they reach.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "../engine/exec/parallel.h"
#include "../engine/kernel/kernels.h"
#include "../engine/spec/spec.h"
#include "bench_attention.h"
#include "bench_calls.h"
#include "bench_measure.h"
#include "bench_peers.h"
#include "bench_report.h"
#include "commands.h"
#include "equation_argument.h"
#include "exit_code.h"
#include "files.h"
#include "values.h"
#include "version.h"

namespace einkern::tools {
namespace {

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

void choose_target(const Options& options, const std::string& name) {
  std::string choices;
  for (const kernel::Kernels* table : kernel::supported_kernels()) {
    if (table->target.name == name) return kernel::force_target(*table);
    choices += fmt::format("{}{}", choices.empty() ? "" : ", ", table->target.name);
  }
  options.refuse(
      fmt::format("--target: no target '{}' on this processor; choices: {}", name, choices));
}

/// Says on a terminal which problem is being timed.
class Progress {
 public:
  explicit Progress(std::size_t count) : count_(count), shown_(count > 1 && ::isatty(2) == 1) {}
  ~Progress() {
    if (shown_) std::fputs("\r\033[K", stderr);
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void operator()(const Problem& problem) {
    ++at_;
    if (!shown_) return;
    std::fputs(fmt::format("\r\033[K{}/{} {}", at_, count_, problem.name).c_str(), stderr);
    std::fflush(stderr);
  }

 private:
  std::size_t count_, at_ = 0;
  bool shown_;
};

std::string list_of(const std::vector<Problem>& problems) {
  Table table({{"problem", Table::Align::left},
               {"equation", Table::Align::left},
               {"shapes", Table::Align::left},
               {"dtype", Table::Align::left}});
  for (const Problem& problem : problems) {
    std::string shapes;
    for (const Shape& shape : problem.shapes) {
      shapes += fmt::format("{}{}", shapes.empty() ? "" : ",", shape_text(shape));
    }
    table.add({problem.name, problem.equation, shapes, std::string(name_of(problem.dtype))});
  }
  return table.str(TableStyle::aligned);
}

/// The options of the command as they were given.
struct Given {
  std::optional<std::string> equation, shapes, problems, only, attention, against, compare, dtype,
      path, threads, target, min_time, buffers;
  bool calls = false, warm = false, strict = false, list = false, json = false, markdown = false,
       plain = false;

  void add_to(Options& options) {
    add_equation_option(options, equation);
    options.value("--shapes", "SHAPES", shapes, "shapes of the operands: 2x3,3x4; a scalar is -");
    options.value("--problems", "SET", problems,
                  "a set: contractions, gemm, permutations, batches (together the default),\n"
                  "layouts, attention; or a file of lines name<TAB>equation<TAB>i=4,j=5[<TAB>f64]");
    options.value("--attention", "FILE", attention,
                  "a file of attention problems, as tools/bench/attention.tsv");
    options.flag("--calls", calls,
                 "time calls on 8 x 8 tensors: what a call costs beside its arithmetic");
    options.value("--only", "REGEX", only, "only the problems whose names match");
    options.value("--against", "PEERS", against,
                  "time other libraries in turn: a list of openblas, onednn, blis; one that this\n"
                  "machine lacks, or that runs kernels for an older processor, is flagged");
    options.value(
        "--compare", "FILE", compare,
        "put the times of a stored --json beside these, scaled by a product that both timed");
    options.flag("--list", list, "list the problems and time none");
    options.value("--dtype", "DTYPE", dtype,
                  "f32 (default) or f64, where a problem names none; f16 or bf16: f32 but for the\n"
                  "last operand, or for keys and values");
    options.value("--path", "PATH", path,
                  "order: auto, greedy, optimal, or opt_einsum's positions '0,1;0,1'");
    options.value("--threads", "N", threads, "threads (default: all that this process may use)");
    options.value("--target", "NAME", target, "SIMD target (default: the best of this processor)");
    options.value("--min-time", "SECONDS", min_time,
                  "time each problem for at least this long (default: 0.5)");
    options.value("--buffers", "MIB", buffers,
                  "size of the buffers that bandwidths are measured on, and of all operands of a\n"
                  "problem bound by memory together (default: 1024)");
    options.flag("--warm", warm, "reuse one set of operands also where memory is the limit");
    options.flag("--strict", strict, "exit with code 1 when anything is flagged");
    options.flag("--json", json, "print JSON");
    options.flag("--markdown", markdown, "print Markdown");
    options.flag("--no-fuse", plain, "attention: time every problem without fusion as well");
  }
};

/// The problem of an equation and shapes.
Problem take_single(const Options& options, const Given& given, DType dtype,
                    const std::vector<std::string>& positional) {
  const EquationArgument taken = take_equation(options, given.equation, positional);
  if (!taken.files.empty()) {
    options.refuse(
        fmt::format("'{}' is no option; operands are given by --shapes", taken.files[0]));
  }
  if (!given.shapes) options.refuse("no operands given; use --shapes");
  Problem problem{"", taken.equation, parse_shapes("bench: --shapes", *given.shapes), dtype, {}};
  problem.name = name_of_single(problem.equation, problem.shapes, dtype);
  if (given.path) problem.path = parse_path_option("bench: --path", *given.path);
  return problem;
}

void refuse_flagged(const Report& report) {
  std::vector<std::string> flags = flags_of(report);
  for (const Result& result : report.results) {
    for (std::string& flag : flags_of(result)) flags.push_back(std::move(flag));
  }
  if (!flags.empty()) {
    throw CheckFailed(
        fmt::format("bench: --strict: {} flagged; the first: {}", flags.size(), flags[0]));
  }
}

}  // namespace

void bench_command(const std::vector<std::string>& arguments) {
  Options options({
      .command = "bench",
      .usage = "['EQUATION' --shapes SHAPES | --problems SET | --attention FILE] [OPTIONS]",
      .summary =
          "Checks einsums against a float64 loop, times them, and says which part of the limits\n"
          "of this machine they reach (roofline): medians of probes in turn with the problem; the\n"
          "best of the run stands above the table. Without a problem it runs the default set,\n"
          "which takes about fifteen minutes; --only runs a part of it.\n\n"
          "A problem bound by memory is timed cold: over operand sets too large for the caches.\n"
          "`median` is einsum_into on a touched output, `fresh` the form that returns a tensor.",
      .examples = {"einkern bench --problems contractions",
                   "einkern bench --only 'tccg|gemm_nn' --against openblas,onednn,blis --json",
                   "einkern bench 'ik,kj->ij' --shapes 1024x1024,1024x1024",
                   "einkern bench 'ij->ji' --shapes 4096x4096 --dtype f64 --threads 1 --warm",
                   "einkern bench --problems attention --no-fuse"},
  });
  Given given;
  given.add_to(options);
  const auto positional = options.parse(arguments);
  if (!positional) return;

  const DType dtype = given.dtype ? parse_dtype("bench: --dtype", *given.dtype) : f32;
  if (!is_float(dtype)) options.refuse("--dtype: only floats have a peak to compare with");
  if (given.json && given.markdown) options.refuse("--json and --markdown are two forms of one");
  const int width = given.threads ? parse_threads("bench: --threads", *given.threads) : 0;
  const double min_seconds =
      given.min_time ? parse_number("bench: --min-time", *given.min_time) : 0.5;
  const std::int64_t buffer_bytes =
      kMebibyte * (given.buffers ? parse_integer("bench: --buffers", *given.buffers, 1) : 1024);
  if (given.target) choose_target(options, *given.target);
  const ReportForm form = given.json       ? ReportForm::json
                          : given.markdown ? ReportForm::markdown
                                           : ReportForm::text;
  if (given.problems == "attention") given.attention.swap(given.problems);
  if (given.calls) {
    if (given.problems || given.attention || given.equation || given.shapes || given.only ||
        given.against || given.compare || given.path || given.dtype || !positional->empty()) {
      options.refuse("--calls has its own problems");
    }
    if (given.list || given.strict || given.warm || given.plain || given.buffers) {
      options.refuse(
          "--calls goes with --threads, --target, --min-time, --json and --markdown only");
    }
    exec::in_arena(width, [&](std::int64_t) { print(bench_calls(min_seconds, form)); });
    return;
  }
  const bool single = given.equation || given.shapes || given.path || !positional->empty();
  if (given.attention) {
    if (given.against) options.refuse("--against has no attention to compare with");
    if (given.compare) options.refuse("--compare takes no attention problems");
    if (given.strict) options.refuse("--strict: attention problems are not flagged");
    if (single || given.problems) options.refuse("--attention names its own problems");
    const AttentionBench bench{*given.attention,
                               given.only.value_or(""),
                               dtype,
                               min_seconds,
                               buffer_bytes,
                               given.plain,
                               given.warm,
                               form};
    if (given.list) return print(list_attention(bench));
    exec::in_arena(width, [&](std::int64_t) { print(bench_attention(bench)); });
    return;
  }
  if (given.plain) options.refuse("--no-fuse goes with attention problems");
  std::vector<Problem> problems;
  if (single) {
    if (given.problems) options.refuse("--problems names its own equations, shapes and paths");
    problems.push_back(take_single(options, given, dtype, *positional));
  } else {
    problems = read_problems(given.problems.value_or("default"), dtype);
  }
  if (given.only) problems = select_named("bench: --only", *given.only, std::move(problems));
  for (const Problem& problem : problems) make_spec(problem.equation, problem.shapes, "bench");
  if (given.list) return print(list_of(problems));

  std::optional<StoredRun> stored;
  if (given.compare) stored = read_stored_run(*given.compare);
  exec::in_arena(width, [&](std::int64_t) {
    std::optional<Peers> loaded;
    if (given.against) loaded = load_peers(*given.against, exec::concurrency());
    const Peers* const peers = loaded ? &*loaded : nullptr;
    if (given.strict && peers != nullptr && !peers->flags.empty()) {
      throw CheckFailed("bench: --strict: " + peers->flags[0]);
    }
    Report report;
    {
      Progress progress(problems.size());
      report = measure(problems, {min_seconds, buffer_bytes, given.warm, peers,
                                  [&](const Problem& problem) { progress(problem); }});
    }
    report.stored = std::move(stored);
    print(given.json       ? as_json(problems, report, dtype)
          : given.markdown ? as_table(problems, report, TableStyle::markdown)
          : single         ? as_text(problems[0], report)
                           : as_table(problems, report, TableStyle::aligned));
    if (given.strict) refuse_flagged(report);
  });
}

}  // namespace einkern::tools
