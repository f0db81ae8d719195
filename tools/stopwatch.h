// SPDX-License-Identifier: Apache-2.0
// Wall time since a moment.
#pragma once

#include <chrono>

namespace einkern::tools {

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace einkern::tools
