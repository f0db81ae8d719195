// SPDX-License-Identifier: Apache-2.0
// `einkern eval`: an einsum over .npy files, printed or written.
#include <optional>
#include <string>
#include <vector>

#include "../engine/graph/expr.h"
#include "commands.h"
#include "equation_argument.h"
#include "files.h"
#include "run_options.h"
#include "stopwatch.h"
#include "values.h"

namespace einkern::tools {

void eval_command(const std::vector<std::string>& arguments) {
  Options options({
      .command = "eval",
      .usage = "'EQUATION' FILE... [OPTIONS]",
      .summary = "Computes an einsum over .npy files and prints the result or writes it.",
      .examples = {"einkern eval 'ij,jk->ik' A.npy B.npy",
                   "einkern eval 'ij,jk->ik' A.npy B.npy -o C.npy --time",
                   "einkern eval '[batch row],[batch row]->[batch]' X.npy Y.npy",
                   "einkern eval 'ab,bc,cd->ad' A.npy B.npy C.npy --path '0,1;0,1' --explain",
                   "einkern eval -e '->' scalar.npy"},
  });
  std::optional<std::string> equation, out, path;
  RunOptions run;
  add_equation_option(options, equation);
  options.value("-o,--out", "FILE", out, "write the result as .npy instead of printing it");
  options.value("--path", "PATH", path,
                "order: auto, greedy, optimal, or opt_einsum's positions '0,1;0,1'");
  run.add_to(options);
  const auto positional = options.parse(arguments);
  if (!positional) return;

  const auto [text, files] = take_equation(options, equation, *positional);
  const PathChoice choice = path ? parse_path_option("eval: --path", *path) : PathChoice{};
  run.check("eval");
  if (out) check_outputs(options, {{"--out", *out}}, files);

  const Stopwatch loading;
  std::vector<Expr> operands;
  for (const std::string& file : files) operands.emplace_back(load_tensor(file));
  const double load_seconds = loading.seconds();
  const Tensor result = run.run({einsum(text, operands, {choice})}, true, load_seconds)[0];
  if (out) {
    write_outputs({{*out, result}});
  } else {
    print_tensor(result);
  }
}

}  // namespace einkern::tools
