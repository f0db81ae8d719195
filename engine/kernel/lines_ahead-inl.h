// SPDX-License-Identifier: Apache-2.0
// Asks for memory ahead of the loops that will read it.
#if defined(EINKERN_KERNEL_LINES_AHEAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef EINKERN_KERNEL_LINES_AHEAD_INL_H_
#undef EINKERN_KERNEL_LINES_AHEAD_INL_H_
#else
#define EINKERN_KERNEL_LINES_AHEAD_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "stored_rows.h"

HWY_BEFORE_NAMESPACE();
namespace einkern::kernel::HWY_NAMESPACE {

/// Asks the lines of rows into L2, in order of address whatever order the tiles read in: memory and
/// its prefetchers follow that alone. Four rows side by side come at 4 GB/s on a core of an EPYC,
/// in order at 9, which is what it reads at.
template <class S>
class LinesAhead {
 public:
  /// `elements` of each of `count` rows, from line `first` of all of them on.
  HWY_INLINE LinesAhead(const StoredRows& rows, std::int64_t count, std::int64_t elements,
                        std::int64_t first)
      : rows_(rows), count_(count), lines_((elements * kSize + kLine - 1) / kLine) {
    if (count == 0 || lines_ == 0) return;
    row_ = first / lines_;
    if (row_ < count) begin_row(first % lines_);
  }

  /// The lines that tiles have read by the end of `step` where each step reads `kBytes`.
  template <std::int64_t kBytes>
  HWY_INLINE void fetch_step(std::int64_t step) {
    if constexpr (kBytes < kLine) {
      if (step % (kLine / kBytes) == 0) fetch_line();
    } else {
      HWY_UNROLL(8)
      for (std::int64_t i = 0; i < kBytes / kLine; ++i) fetch_line();
    }
  }
  /// The next `lines` of them.
  HWY_INLINE void fetch(std::int64_t lines) {
    for (std::int64_t i = 0; i < lines; ++i) fetch_line();
  }

 private:
  static constexpr std::int64_t kLine = 64, kSize = sizeof(S);

  HWY_INLINE void begin_row(std::int64_t line) {
    left_ = lines_ - line;
    at_ = reinterpret_cast<const char*>(static_cast<const S*>(rows_.data) + rows_.at[row_]) +
          line * kLine;
  }
  HWY_INLINE void fetch_line() {
    if (left_ == 0) return;
    constexpr int kRead = 0, kSecondLevel = 2;
    __builtin_prefetch(at_, kRead, kSecondLevel);
    at_ += kLine;
    if (--left_ == 0 && ++row_ < count_) begin_row(0);
  }

  StoredRows rows_;
  std::int64_t count_, lines_;
  std::int64_t row_ = 0, left_ = 0;
  const char* at_ = nullptr;
};

}  // namespace einkern::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // EINKERN_KERNEL_LINES_AHEAD_INL_H_
