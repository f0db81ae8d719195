// SPDX-License-Identifier: Apache-2.0
// Exceptions to messages on standard error and exit codes.
#include "exit_code.h"

#include <cstdio>
#include <new>

#include "../engine/base/error.h"

namespace einkern::tools {
namespace {

ExitCode report(ExitCode code, const char* message) noexcept {
  std::fprintf(stderr, "einkern: %s\n", message);
  return code;
}

}  // namespace

ExitCode report_current_exception() noexcept {
  try {
    throw;
  } catch (const UsageError& error) {
    return report(ExitCode::usage, error.what());
  } catch (const CheckFailed& error) {
    return report(ExitCode::check_failed, error.what());
  } catch (const SyntaxError& error) {
    return report(ExitCode::usage, error.what());
  } catch (const MemoryLimitError& error) {
    return report(ExitCode::limit, error.what());
  } catch (const Error& error) {
    return report(ExitCode::bad_input, error.what());
  } catch (const std::bad_alloc&) {
    return report(ExitCode::limit, "out of memory");
  } catch (const std::exception& error) {
    return report(ExitCode::internal, error.what());
  } catch (...) {
    return report(ExitCode::internal, "internal error: an unknown exception");
  }
}

}  // namespace einkern::tools
