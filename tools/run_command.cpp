// SPDX-License-Identifier: Apache-2.0
// `einkern run`: a program over files, its results printed or written.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../engine/base/error.h"
#include "commands.h"
#include "exit_code.h"
#include "files.h"
#include "program_files.h"
#include "run_options.h"
#include "stopwatch.h"
#include "tensor_files.h"
#include "values.h"

namespace einkern::tools {
namespace {

/// `name=what` of the command line.
struct Assignment {
  std::string name, what;
};

bool is_name(std::string_view text) {
  return !text.empty() && text.find_first_of("./-:") == text.npos &&
         !(text[0] >= '0' && text[0] <= '9');
}

std::optional<Assignment> parse_assignment(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == text.npos || !is_name(std::string_view(text).substr(0, equals))) return {};
  return Assignment{text.substr(0, equals), text.substr(equals + 1)};
}

/// A literal: an integer or a number. A file of such a name is `./5`.
std::optional<Expr> parse_literal(std::string_view text) {
  const char* const end = text.data() + text.size();
  std::int64_t integer = 0;
  if (const auto read = std::from_chars(text.data(), end, integer);
      read.ec == std::errc{} && read.ptr == end) {
    return Expr(integer);
  }
  double number = 0;
  if (const auto read = std::from_chars(text.data(), end, number);
      read.ec == std::errc{} && read.ptr == end) {
    return Expr(number);
  }
  return {};
}

/// What goes where: outputs by place in the program's list.
struct Target {
  TensorName file;
  std::vector<std::size_t> outputs;
  std::string option;
};

std::string listed(const std::vector<std::string>& names) {
  return fmt::format("'{}'", fmt::join(names, "', '"));
}

/// The targets that `-o` options name.
std::vector<Target> parse_targets(const Options& options, const std::vector<std::string>& texts,
                                  const std::vector<std::string>& outputs) {
  std::vector<Target> targets;
  for (const std::string& text : texts) {
    const auto assignment = parse_assignment(text);
    Target target{parse_tensor_name(assignment ? assignment->what : text), {}, "--out"};
    if (assignment && assignment->what.empty()) {
      options.refuse(fmt::format("--out '{}' names no file", text));
    }
    if (!target.file.member.empty()) {
      options.refuse(
          fmt::format("--out '{}': names of a file's members are those of outputs", text));
    }
    const bool one = target.file.format == TensorName::Format::npy;
    if (assignment) {
      const auto found = std::find(outputs.begin(), outputs.end(), assignment->name);
      if (found == outputs.end()) {
        options.refuse(fmt::format("--out '{}': no output '{}'; the program returns {}", text,
                                   assignment->name, listed(outputs)));
      }
      target.outputs = {static_cast<std::size_t>(found - outputs.begin())};
    } else {
      for (std::size_t i = 0; i < outputs.size(); ++i) target.outputs.push_back(i);
      if (one && outputs.size() != 1) {
        options.refuse(
            fmt::format("--out '{}' holds one tensor, but the program returns {}; "
                        "use NAME=FILE, or one .npz for all",
                        text, listed(outputs)));
      }
    }
    // Several outputs may go into one file that holds several.
    const auto same = std::find_if(targets.begin(), targets.end(), [&](const Target& other) {
      return !one && other.file.path == target.file.path;
    });
    if (same == targets.end()) {
      targets.push_back(std::move(target));
      continue;
    }
    for (const std::size_t output : target.outputs) {
      if (std::find(same->outputs.begin(), same->outputs.end(), output) != same->outputs.end()) {
        options.refuse(fmt::format("--out: output '{}' goes twice to '{}'", outputs[output],
                                   target.file.path));
      }
      same->outputs.push_back(output);
    }
  }
  return targets;
}

Tensor converted(const Tensor& tensor, const std::optional<DType>& dtype) {
  if (!dtype || !is_float(tensor.dtype()) || tensor.dtype() == *dtype) return tensor;
  return tensor.astype(*dtype);
}

}  // namespace

void run_command(const std::vector<std::string>& arguments) {
  Options options({
      .command = "run",
      .usage = "FILE.ein [NAME=VALUE...] [OPTIONS]",
      .summary =
          "Runs a tensor program over files and prints its results or writes them. A value is a\n"
          "file (a.npy, a.npz:key, w.safetensors:name), a number, or - for .npy on standard input.",
      .examples =
          {"einkern run window.ein q=Q.npy k=K.npy v=V.npy slope=slope.npy -o O.npy",
           "einkern run block.ein x=in.npz:x w=w.safetensors:layer.0.weight eps=1e-5 -o all.npz",
           "einkern run two.ein x=- -o y=y.npy -o weights=- < x.npy"},
  });
  std::vector<std::string> outs;
  std::optional<std::string> dtype_text;
  bool plain = false;
  RunOptions run;
  options.values("-o,--out", "[NAME=]FILE", outs,
                 "write a result, or all of them into one .npz or .safetensors; may be repeated");
  options.value("--dtype", "DTYPE", dtype_text,
                "convert inputs of floats first: f16, bf16, f32 or f64");
  options.flag("--no-fuse", plain, "run every step by itself; the same answer");
  run.add_to(options);
  run.add_memory_limit(options);
  const auto positional = options.parse(arguments);
  if (!positional) return;
  if (positional->empty()) options.refuse("no program given");
  run.check("run");
  std::optional<DType> dtype;
  if (dtype_text) {
    dtype = parse_dtype("run: --dtype", *dtype_text);
    if (!is_float(*dtype)) options.refuse("--dtype: only floats are converted");
  }

  std::vector<Assignment> given;
  std::vector<std::string> files = {positional->front()};
  int streams = positional->front() == "-" ? 1 : 0;
  for (std::size_t i = 1; i < positional->size(); ++i) {
    const auto assignment = parse_assignment((*positional)[i]);
    if (!assignment || assignment->what.empty()) {
      options.refuse(
          fmt::format("'{}' is no input; inputs look like q=Q.npy or scale=0.5", (*positional)[i]));
    }
    for (const Assignment& other : given) {
      if (other.name == assignment->name) {
        options.refuse(fmt::format("input '{}' is given twice", assignment->name));
      }
    }
    given.push_back(*assignment);
    if (parse_literal(assignment->what)) continue;
    if (assignment->what == "-") {
      ++streams;
    } else {
      files.push_back(parse_tensor_name(assignment->what).path);
    }
  }
  if (streams > 1) options.refuse("standard input can be read once");

  const Program program = load_program(positional->front());
  const std::vector<Target> targets = parse_targets(options, outs, program.outputs());
  std::vector<OutputFile> outputs;
  for (const Target& target : targets) outputs.push_back({target.option, target.file.path});
  check_outputs(options, outputs, files);
  std::vector<std::string> names;
  for (const Assignment& assignment : given) names.push_back(assignment.name);
  program.check_inputs(names);

  const Stopwatch loading;
  std::map<std::string, Expr> inputs;
  for (const auto& [name, what] : given) {
    const auto literal = parse_literal(what);
    inputs.emplace(name, literal ? *literal : Expr(converted(load_tensor(what), dtype)));
  }
  const std::vector<Expr> wanted = program.build(inputs);
  const double load_seconds = loading.seconds();
  const std::vector<Tensor> values = run.run(wanted, !plain, load_seconds);

  std::vector<WrittenFile> written;
  for (const Target& target : targets) {
    WrittenFile file{target.file, {}};
    for (const std::size_t output : target.outputs) {
      file.tensors.emplace_back(program.outputs()[output], values[output]);
    }
    written.push_back(std::move(file));
  }
  write_outputs(written);
  if (!targets.empty()) return;
  if (values.size() == 1) return print_tensor(values[0]);
  for (std::size_t i = 0; i < values.size(); ++i) {
    print(fmt::format("{} =\n{}\n", program.outputs()[i], to_string(values[i])));
  }
}

}  // namespace einkern::tools
