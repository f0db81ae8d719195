// SPDX-License-Identifier: Apache-2.0
// What every command that computes takes: threads, the plan beside the run, the times.
#pragma once

#include <cstdint>
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
  /// Declares --memory-limit.
  void add_memory_limit(Options& options);
  /// UsageError, beginning with the command's name, for values that cannot be; before any work.
  void check(const std::string& command);
  /// `eval(exprs)`, with the plan and the times on standard error as asked. MemoryLimitError,
  /// before anything is allocated, when results and workspace would exceed the limit.
  std::vector<Tensor> run(const std::vector<Expr>& exprs, bool fuse, double load_seconds) const;

 private:
  bool explain_ = false, time_ = false;
  std::optional<std::string> threads_text_, limit_text_;
  std::optional<std::int64_t> limit_;  // in bytes
  int threads_ = 0;
};

}  // namespace einkern::tools
