// SPDX-License-Identifier: Apache-2.0
// Transposes and streamed copies, on every SIMD target.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <numeric>
#include <vector>

#include "../../../engine/kernel/kernels.h"

using namespace einkern;
using kernel::Stores;

namespace {

/// Memory whose first element is aligned to a line.
template <class T>
class Lines {
 public:
  explicit Lines(std::size_t size, T value)
      : size_(size), data_(new (std::align_val_t{64}) T[size]) {
    std::fill_n(data_, size, value);
  }
  ~Lines() { ::operator delete[](data_, std::align_val_t{64}); }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;
  T* data() const { return data_; }
  T& operator[](std::size_t i) const { return data_[i]; }
  std::size_t size() const { return size_; }

 private:
  std::size_t size_;
  T* data_;
};

template <class T>
void check_transposes() {
  for (const kernel::Kernels* kernels : kernel::supported_kernels()) {
    const auto transpose = sizeof(T) == 4 ? kernels->copy.transpose_4 : kernels->copy.transpose_8;
    for (const std::int64_t rows : {0, 1, 3, 8, 15, 16, 17, 33, 64}) {
      for (const std::int64_t columns : {0, 1, 2, 7, 16, 19, 32, 65}) {
        for (const std::int64_t skew : {0, 1, 5}) {
          for (const Stores stores : {Stores::cached, Stores::streaming}) {
            const std::int64_t in_stride = columns + skew;
            const std::int64_t out_stride = skew == 0 ? (rows + 15) / 16 * 16 : rows + skew;
            std::vector<T> in(static_cast<std::size_t>(rows * in_stride + skew + 1));
            std::iota(in.begin(), in.end(), T{1});
            Lines<T> out(static_cast<std::size_t>(columns * out_stride + skew + 1), T{0});
            transpose(in.data() + skew, in_stride, out.data() + skew, out_stride, rows, columns,
                      stores);
            kernels->copy.fence();
            Lines<T> want(out.size(), T{0});
            for (std::int64_t r = 0; r < rows; ++r) {
              for (std::int64_t c = 0; c < columns; ++c) {
                want[static_cast<std::size_t>(skew + c * out_stride + r)] =
                    in[static_cast<std::size_t>(skew + r * in_stride + c)];
              }
            }
            if (std::memcmp(out.data(), want.data(), out.size() * sizeof(T)) != 0) {
              FAIL_CHECK(rows, " x ", columns, " skew ", skew, " of ", sizeof(T), " bytes on ",
                         kernels->target.name);
            }
          }
        }
      }
    }
  }
}

}  // namespace

TEST_SUITE("kernel") {
  TEST_CASE("transposes of all sizes and alignments") {
    check_transposes<std::uint32_t>();
    check_transposes<std::uint64_t>();
  }

  TEST_CASE("streamed copies of all sizes and alignments") {
    for (const kernel::Kernels* kernels : kernel::supported_kernels()) {
      for (const std::int64_t bytes : {0, 1, 15, 63, 64, 65, 127, 128, 200, 1000}) {
        for (const std::int64_t from : {0, 1, 7, 32}) {
          for (const std::int64_t to : {0, 1, 33, 63}) {
            std::vector<std::uint8_t> in(static_cast<std::size_t>(from + bytes));
            std::iota(in.begin(), in.end(), std::uint8_t{3});
            Lines<std::uint8_t> out(static_cast<std::size_t>(to + bytes + 1), std::uint8_t{250});
            kernels->copy.stream(in.data() + from, out.data() + to, bytes);
            kernels->copy.fence();
            bool right = out[out.size() - 1] == 250;
            for (std::int64_t i = 0; i < to; ++i) right &= out[static_cast<std::size_t>(i)] == 250;
            right &= std::equal(in.begin() + from, in.end(), out.data() + to);
            if (!right) FAIL_CHECK(bytes, " from ", from, " to ", to, " on ", kernels->target.name);
          }
        }
      }
    }
  }
}
