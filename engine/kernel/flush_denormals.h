// SPDX-License-Identifier: Apache-2.0
// Switches a thread to flushing denormal numbers to zero for the life of an object.
#pragma once

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace einkern::kernel {

/// Denormal operands and results count as 0 while one of these lives; then the caller's mode holds
/// again. Does nothing where the processor has no such mode.
class FlushDenormals {
 public:
#if defined(__SSE2__)
  FlushDenormals() noexcept : before_(_mm_getcsr()) { _mm_setcsr(before_ | kFlush); }
  ~FlushDenormals() { _mm_setcsr(before_); }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  static constexpr unsigned kFlush = 0x8040;  // FTZ and DAZ
  unsigned before_;
#else
  FlushDenormals() noexcept {}
#endif
};

}  // namespace einkern::kernel
