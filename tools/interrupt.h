// SPDX-License-Identifier: Apache-2.0
// Ctrl-C to exit code 130, never in the middle of writing results.
#pragma once

namespace einkern::tools {

/// From now on SIGINT and SIGTERM (unless they were ignored) end the process with 128 + the signal
/// and a line on standard error; at once, or after the outputs that are being written. The same
/// signal a second time does not wait. Call it before any other thread exists.
void watch_for_interrupts();

/// While one of these lives, an interrupt waits: outputs appear all or not at all.
class Uninterrupted {
 public:
  Uninterrupted();
  ~Uninterrupted();
  Uninterrupted(const Uninterrupted&) = delete;
  Uninterrupted& operator=(const Uninterrupted&) = delete;
};

}  // namespace einkern::tools
