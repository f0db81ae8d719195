// SPDX-License-Identifier: Apache-2.0
// What went wrong to what the command says and returns.
#pragma once

#include <stdexcept>

namespace einkern::tools {

/// What the process returns; docs/errors.md says which exception leads where.
enum class ExitCode : int {
  ok = 0,
  check_failed = 1,
  usage = 2,
  bad_input = 3,
  limit = 4,
  internal = 70,
  interrupted = 130,
};

/// A command line that cannot be followed.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An answer that differs from an independent one.
class CheckFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Says on standard error what the exception being handled says, as one message that begins with
/// `einkern: `, and returns its code.
ExitCode report_current_exception() noexcept;

}  // namespace einkern::tools
