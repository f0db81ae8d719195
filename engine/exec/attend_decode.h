// SPDX-License-Identifier: Apache-2.0
// The fold over keys of few rows (decoding): the same state and answer as AttendFold, on kernels
// that read keys and values once for all rows.
#pragma once

#include <cstdint>
#include <span>

#include "attend_fold.h"

namespace einkern::exec {

using plan::kDecodeBlock;
using plan::kDecodeRows;

template <class T>
class DecodeFold {
 public:
  DecodeFold(const AttendShared<T>& shared, std::byte* state, std::byte* work);
  static std::size_t state_bytes(const AttendShared<T>& shared);
  static std::size_t work_bytes(const AttendShared<T>& shared);

  // As those of AttendFold.
  void start(std::int64_t batch, std::int64_t row, std::int64_t rows, const StoredKeys& keys,
             const StoredKeys& next, bool with_sinks);
  void start_again();
  void add(std::span<const Segment> segments, std::int64_t first, std::int64_t last);
  void merge(const DecodeFold& other);
  bool finish(bool keep_finite);

 private:
  /// Where a block of keys begins.
  struct Place {
    StoredKeys keys;
    std::int64_t key = 0, count = 0;
  };

  TensorRows<const T> queries_of_batch() const;
  TensorRows<T> out_of_batch() const;
  std::int64_t inner() const noexcept { return std::ssize(shared_.q_inner); }
  std::int64_t columns() const noexcept { return std::ssize(shared_.out_columns); }
  /// The rows of q, scaled.
  const T* queries(double scale);
  void add_block(const ScoreForm& form, std::int64_t key, std::int64_t keys, const Place& ahead);
  /// To those of the n scores of a block.
  void raise_references(std::int64_t n);

  struct State {
    T *reference, *output;  // by row; [row][output_stride]; rows are padded
    double* total;
    std::int64_t output_stride;
    std::size_t bytes;
    State(const AttendShared<T>& shared, std::byte* memory);
  };
  struct Work {
    T *q_scaled, *q_plain, *scores, *dots;
    std::byte* program;
    std::size_t bytes;
    Work(const AttendShared<T>& shared, std::byte* memory);
  };

  const AttendShared<T>& shared_;
  const State state_;
  const Work work_;
  const kernel::DecodeFunctions<T>& functions_;
  std::int64_t batch_ = 0, row_ = 0, rows_ = 0;
  std::int64_t padded_ = 0;  // rows that kernels see
  StoredKeys keys_, next_;
  double scale_in_q_ = 0;  // 0: not packed
  bool plain_packed_ = false;
  const kernel::TileProgram* prepared_ = nullptr;
};

extern template class DecodeFold<float>;
extern template class DecodeFold<double>;

}  // namespace einkern::exec
