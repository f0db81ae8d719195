// SPDX-License-Identifier: Apache-2.0
// Runs expressions as the common options of the commands say.
#include "run_options.h"

#include <fmt/format.h>

#include <iostream>

#include "stopwatch.h"
#include "values.h"

namespace einkern::tools {

void RunOptions::add_to(Options& options) {
  options.value("--threads", "N", threads_text_,
                "threads (default: all that this process may use)");
  options.flag("--explain", explain_, "print the plan on standard error");
  options.flag("--time", time_, "print the times on standard error");
}

void RunOptions::check(const std::string& command) {
  if (threads_text_) threads_ = parse_threads(command + ": --threads", *threads_text_);
}

std::vector<Tensor> RunOptions::run(const std::vector<Expr>& exprs, bool fuse,
                                    double load_seconds) const {
  const EvalOptions options{.fuse = fuse, .threads = threads_};
  if (explain_) std::cerr << explain(exprs, options);
  const Stopwatch computing;
  std::vector<Tensor> values = eval(exprs, options);
  if (time_) {
    std::cerr << fmt::format("load {:.3f} ms, compute {:.3f} ms\n", 1e3 * load_seconds,
                             1e3 * computing.seconds());
  }
  return values;
}

}  // namespace einkern::tools
