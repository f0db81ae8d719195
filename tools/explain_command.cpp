// SPDX-License-Identifier: Apache-2.0
// `einkern explain`: the plan of an einsum over shapes or files; nothing is computed.
#include <fmt/format.h>

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "../engine/graph/expr.h"
#include "commands.h"
#include "equation_argument.h"
#include "files.h"
#include "values.h"

namespace einkern::tools {
namespace {

/// Operands that have a shape and no elements: a plan reads layouts only. Each gets an address of
/// its own, since operands at one address are one tensor.
class Outlines {
 public:
  Tensor add(const Shape& shape, DType dtype) {
    element_count(shape, "explain");
    return Tensor(nullptr, &addresses_.emplace_back(), dtype, contiguous(shape));
  }

 private:
  std::deque<std::int64_t> addresses_;
};

}  // namespace

void explain_command(const std::vector<std::string>& arguments) {
  Options options({
      .command = "explain",
      .usage = "'EQUATION' (--shapes SHAPES | FILE...) [OPTIONS]",
      .summary =
          "Prints the plan of an einsum: contraction order, steps, sizes, flops, bytes, predicted "
          "times.",
      .examples = {"einkern explain 'ab,bc,cd->ad' --shapes 10x1000,1000x10,10x1000",
                   "einkern explain 'ij,jk->ik' A.npy B.npy --json",
                   "einkern explain ',ij->ij' --shapes -,3x4 --dtype f64"},
  });
  std::optional<std::string> equation, shapes, dtype, path;
  bool json = false;
  add_equation_option(options, equation);
  options.value("--shapes", "SHAPES", shapes, "shapes of the operands: 2x3,3x4; a scalar is -");
  options.value("--dtype", "DTYPE", dtype,
                "of the operands given by --shapes: f16, bf16, f32, f64 or i64 (default: f32)");
  options.value("--path", "PATH", path,
                "order: auto, greedy, optimal, or opt_einsum's positions '0,1;0,1'");
  options.flag("--json", json, "print JSON");
  const auto positional = options.parse(arguments);
  if (!positional) return;

  const auto [text, files] = take_equation(options, equation, *positional);
  const PathChoice choice = path ? parse_path_option("explain: --path", *path) : PathChoice{};
  if (shapes && !files.empty())
    options.refuse("operands are given by --shapes or by files, not both");
  if (!shapes && files.empty()) options.refuse("no operands given; name files or use --shapes");
  if (dtype && !shapes) options.refuse("--dtype goes with --shapes; files have their own");

  Outlines outlines;
  std::vector<Expr> operands;
  if (shapes) {
    const DType of = dtype ? parse_dtype("explain: --dtype", *dtype) : f32;
    for (const Shape& shape : parse_shapes("explain: --shapes", *shapes)) {
      operands.emplace_back(outlines.add(shape, of));
    }
  }
  for (const std::string& file : files) operands.emplace_back(load_tensor(file));
  const Expr result = einsum(text, operands, {choice});
  print(json ? explain_json({result}) : explain({result}));
}

}  // namespace einkern::tools
