// SPDX-License-Identifier: Apache-2.0
// Runs expressions as the common options of the commands say.
#include "run_options.h"

#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "../engine/base/error.h"
#include "stopwatch.h"
#include "values.h"

namespace einkern::tools {

void RunOptions::add_to(Options& options) {
  options.value("--threads", "N", threads_text_,
                "threads (default: all that this process may use)");
  options.flag("--explain", explain_, "print the plan on standard error");
  options.flag("--time", time_, "print the times on standard error");
}

void RunOptions::add_memory_limit(Options& options) {
  options.value("--memory-limit", "BYTES", limit_text_,
                "refuse to run when results and workspace need more: 512M, 2G");
}

void RunOptions::check(const std::string& command) {
  if (threads_text_) threads_ = parse_threads(command + ": --threads", *threads_text_);
  if (limit_text_) limit_ = parse_bytes(command + ": --memory-limit", *limit_text_);
}

namespace {

/// Bytes that an evaluation allocates, by its plan: results, and what steps need on the way.
std::int64_t bytes_needed(const std::vector<Expr>& exprs, const EvalOptions& options) {
  auto bytes =
      nlohmann::json::parse(explain_json(exprs, options))["workspace_bytes"].get<std::int64_t>();
  for (const Expr& expr : exprs) {
    bytes += element_count(expr.shape(), "run") * static_cast<std::int64_t>(size_of(expr.dtype()));
  }
  return bytes;
}

}  // namespace

std::vector<Tensor> RunOptions::run(const std::vector<Expr>& exprs, bool fuse,
                                    double load_seconds) const {
  const EvalOptions options{.fuse = fuse, .threads = threads_};
  if (limit_) {
    const std::int64_t needed = bytes_needed(exprs, options);
    if (needed > *limit_) {
      fail<MemoryLimitError>(
          fmt::format("run: --memory-limit: results and workspace need {} bytes, the limit is {}",
                      needed, *limit_));
    }
  }
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
