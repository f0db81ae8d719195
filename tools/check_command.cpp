// SPDX-License-Identifier: Apache-2.0
// `einkern check`: a program parsed, resolved and inferred, without data.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "../engine/graph/build.h"
#include "../engine/graph/extent.h"
#include "../engine/graph/node.h"
#include "commands.h"
#include "exit_code.h"
#include "files.h"
#include "program_files.h"
#include "values.h"

namespace einkern::tools {
namespace {

/// `q=2x8x512x64,n=-:i64`.
std::map<std::string, InputType> parse_types(const std::string& text, DType otherwise) {
  std::map<std::string, InputType> types;
  for (const std::string_view part : split_at(text, ',')) {
    const std::size_t equals = part.find('=');
    if (equals == 0 || equals == part.npos) {
      throw UsageError(fmt::format(
          "check: --shapes: '{}' is no input; inputs look like q=2x8x512x64 or n=-:i64", part));
    }
    const std::string name(part.substr(0, equals));
    std::string_view shape = part.substr(equals + 1);
    DType dtype = otherwise;
    if (const std::size_t colon = shape.find(':'); colon != shape.npos) {
      dtype = parse_any_dtype("check: --shapes", shape.substr(colon + 1));
      shape = shape.substr(0, colon);
    }
    const InputType type(parse_shapes("check: --shapes", shape)[0], dtype);
    if (!types.emplace(name, type).second) {
      throw UsageError(fmt::format("check: --shapes: input '{}' is given twice", name));
    }
  }
  return types;
}

/// `f32[b=2, h=8, q, 64]`: labels with sizes, a size alone where there is no label, a name alone
/// where label and symbol are the same.
std::string type_text(const Expr& expr) {
  const graph::Type& type = expr.node()->type;
  std::string axes;
  for (std::size_t d = 0; d < type.shape.size(); ++d) {
    const std::string size = graph::extent_text(type.shape[d]);
    const std::string& label = type.labels[d];
    if (d > 0) axes += ", ";
    axes += label.empty() || label == size ? size : fmt::format("{}={}", label, size);
  }
  for (const graph::OpenAxis& open : type.open) {
    if (!axes.empty()) axes += ", ";
    axes += open.label.empty() ? fmt::format("axis {}: open", open.position)
                               : fmt::format("{}: open", open.label);
  }
  return fmt::format("{}[{}]", name_of(type.dtype), axes);
}

std::string lines(const char* what, const std::vector<std::pair<std::string, Expr>>& named) {
  std::string text;
  for (const auto& [name, expr] : named) {
    text += fmt::format("{:<6} {}: {}\n", what, name, type_text(expr));
  }
  return text;
}

}  // namespace

void check_command(const std::vector<std::string>& arguments) {
  Options options({
      .command = "check",
      .usage = "FILE.ein [OPTIONS]",
      .summary =
          "Checks a program without data: names, then shapes, labels and dtypes where the inputs'\n"
          "are known, by --shapes or declared in the program. - is standard input.",
      .examples =
          {"einkern check window.ein",
           "einkern check window.ein --shapes q=2x8x512x64,k=2x8x512x64,v=2x8x512x64,slope=8",
           "einkern check ragged.ein --shapes x=2x7x64,n=2:i64"},
  });
  std::optional<std::string> shapes, dtype;
  options.value("--shapes", "SHAPES", shapes, "of inputs: q=2x3,n=5:i64; a scalar is -");
  options.value("--dtype", "DTYPE", dtype, "of inputs given without one (default: f32)");
  const auto positional = options.parse(arguments);
  if (!positional) return;
  if (positional->size() != 1) {
    options.refuse(fmt::format("one program is needed, not {}", positional->size()));
  }
  if (dtype && !shapes) options.refuse("--dtype goes with --shapes");
  const DType otherwise = dtype ? parse_any_dtype("check: --dtype", *dtype) : f32;
  std::map<std::string, InputType> types;
  if (shapes) types = parse_types(*shapes, otherwise);

  const Program program = load_program(positional->front());
  const std::vector<std::string>& inputs = program.inputs();
  const bool all_declared = std::all_of(inputs.begin(), inputs.end(), [&](const std::string& name) {
    return program.declared(name).has_value();
  });
  if (!shapes && !all_declared) {
    print(
        fmt::format("inputs: {}\noutputs: {}\nshapes are not checked: give --shapes, or declare "
                    "inputs\n",
                    fmt::join(inputs, ", "), fmt::join(program.outputs(), ", ")));
    return;
  }
  const Program::Outline outline = program.outline(types);
  print(lines("input", outline.inputs) + lines("", outline.steps) +
        lines("output", outline.outputs));
}

}  // namespace einkern::tools
