// SPDX-License-Identifier: Apache-2.0
// What every command that computes takes: threads, the plan beside the run, the times.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "../engine/graph/expr.h"
#include "options.h"

namespace einkern::tools {

class RunOptions {
 public:
  /// Declares --threads, --explain and --time.
  void add_to(Options& options);
  /// UsageError, beginning with the command's name, for values that cannot be; before any work.
  void check(const std::string& command);
  /// `eval(exprs)`, with the plan and the times on standard error as asked.
  std::vector<Tensor> run(const std::vector<Expr>& exprs, bool fuse, double load_seconds) const;

 private:
  bool explain_ = false, time_ = false;
  std::optional<std::string> threads_text_;
  int threads_ = 0;
};

}  // namespace einkern::tools
