// SPDX-License-Identifier: Apache-2.0
// Adds blocks of keys to the state of few rows.
#include "attend_decode.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

namespace einkern::exec {
namespace {

// As in AttendFold: -inf minus it is -inf.
template <class T>
constexpr T kNoReference = std::numeric_limits<T>::lowest();

/// Rounds up to whole lines, which are whole vectors.
template <class T>
std::int64_t whole_lines(std::int64_t n) {
  constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(T));
  return (n + kLine - 1) / kLine * kLine;
}

kernel::StoredRows rows_from(kernel::StoredRows rows, std::int64_t first) {
  rows.at += first;
  return rows;
}

}  // namespace

template <class T>
DecodeFold<T>::State::State(const AttendShared<T>& shared, std::byte* memory)
    : output_stride(whole_lines<T>(std::ssize(shared.out_columns))) {
  Carver carver(memory);
  reference = carver.take<T>(kDecodeRows);
  total = carver.take<double>(kDecodeRows);
  output = carver.take<T>(kDecodeRows * output_stride);
  bytes = carver.bytes();
}

template <class T>
DecodeFold<T>::Work::Work(const AttendShared<T>& shared, std::byte* memory) {
  const std::int64_t q_size = kDecodeRows * whole_lines<T>(std::ssize(shared.q_inner));
  Carver carver(memory);
  q_scaled = carver.take<T>(q_size);
  q_plain = carver.take<T>(q_size);
  scores = carver.take<T>(kDecodeRows * kDecodeBlock);
  dots = carver.take<T>(kDecodeRows * kDecodeBlock);
  program = carver.take<std::byte>(static_cast<std::int64_t>(shared.scores.scratch_bytes()));
  bytes = carver.bytes();
}

template <class T>
DecodeFold<T>::DecodeFold(const AttendShared<T>& shared, std::byte* state, std::byte* work)
    : shared_(shared),
      state_(shared, state),
      work_(shared, work),
      functions_(shared.frame.kernels.decode.template of<T>()) {}

template <class T>
std::size_t DecodeFold<T>::state_bytes(const AttendShared<T>& shared) {
  return State(shared, nullptr).bytes;
}
template <class T>
std::size_t DecodeFold<T>::work_bytes(const AttendShared<T>& shared) {
  return Work(shared, nullptr).bytes;
}

template <class T>
TensorRows<const T> DecodeFold<T>::queries_of_batch() const {
  return {reinterpret_cast<const T*>(shared_.frame.address(shared_.step.q)) +
              shared_.batch.offset(batch_, shared_.q_strides),
          shared_.rows, shared_.q_strides, shared_.q_inner, shared_.q_dense};
}

template <class T>
TensorRows<T> DecodeFold<T>::out_of_batch() const {
  return {reinterpret_cast<T*>(shared_.frame.address(shared_.step.out)) +
              shared_.batch.offset(batch_, shared_.out_strides),
          shared_.rows, shared_.out_strides, shared_.out_columns, shared_.out_dense};
}

template <class T>
void DecodeFold<T>::start(std::int64_t batch, std::int64_t row, std::int64_t rows,
                          const StoredKeys& keys, const StoredKeys& next, bool with_sinks) {
  batch_ = batch;
  row_ = row;
  rows_ = rows;
  padded_ = functions_.padded_rows(rows);
  keys_ = keys;
  next_ = next;
  scale_in_q_ = 0;
  plain_packed_ = false;
  prepared_ = nullptr;
  start_again();
  if (with_sinks) {
    start_from_sinks(shared_, batch, row, rows, state_.reference, state_.total);
  }
}

template <class T>
void DecodeFold<T>::start_again() {
  std::fill_n(state_.reference, rows_, kNoReference<T>);
  // Rows that pad weigh 0, also where a program leaves their scores alone.
  std::fill(state_.reference + rows_, state_.reference + padded_, -kMinusInfinity<T>);
  if (padded_ > rows_) std::fill_n(work_.scores, padded_ * kDecodeBlock, T{0});
  std::fill_n(state_.total, rows_, 0.0);
  std::fill_n(state_.output, padded_ * state_.output_stride, T{0});
}

template <class T>
const T* DecodeFold<T>::queries(double scale) {
  T* const packed = scale == 1 ? work_.q_plain : work_.q_scaled;
  if (scale == 1 ? plain_packed_ : scale == scale_in_q_) return packed;
  const std::int64_t together = functions_.together(padded_), line = padded_ * together;
  std::fill_n(packed, (inner() + together - 1) / together * line, T{0});
  const TensorRows<const T> from = queries_of_batch();
  for (std::int64_t r = 0; r < rows_; ++r) {
    const T* const row = from.data + from.axes.offset(row_ + r, from.strides);
    T* to = packed + r * together;
    for (std::int64_t i = 0; i < inner(); i += together, to += line) {
      const std::int64_t count = std::min(together, inner() - i);
      for (std::int64_t e = 0; e < count; ++e) {
        const std::int64_t at = from.dense ? i + e : from.elements[static_cast<std::size_t>(i + e)];
        to[e] = row[at] * static_cast<T>(scale);
      }
    }
  }
  if (scale == 1) {
    plain_packed_ = true;
  } else {
    scale_in_q_ = scale;
  }
  return packed;
}

template <class T>
void DecodeFold<T>::add(std::span<const Segment> segments, std::int64_t first, std::int64_t last) {
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const Segment& segment = segments[s];
    std::int64_t key = std::max(first, segment.key);
    const std::int64_t end = std::min(last, segment.key + segment.keys);
    while (key < end) {
      const std::int64_t keys = std::min(end - key, kDecodeBlock - key % kDecodeBlock);
      // The keys that follow: of this segment, of the next one (perhaps another piece's), or of the
      // next batch position.
      Place ahead;
      const std::int64_t following = key + keys;
      if (following < segment.key + segment.keys) {
        ahead = {keys_, following, segment.key + segment.keys - following};
      } else if (s + 1 < segments.size()) {
        ahead = {keys_, segments[s + 1].key, segments[s + 1].keys};
      } else if (next_.k.data != nullptr && !segments.empty()) {
        ahead = {next_, segments[0].key, segments[0].keys};
      }
      add_block(*segment.form, key, keys, ahead);
      key = following;
    }
  }
}

template <class T>
void DecodeFold<T>::raise_references(std::int64_t n) {
  std::array<T, kDecodeRows> largest;
  functions_.largest(work_.scores, n, padded_, largest.data());
  for (std::int64_t r = 0; r < rows_; ++r) {
    const T reference = std::ceil(largest[static_cast<std::size_t>(r)]);
    if (!(reference > state_.reference[r])) continue;
    if (state_.total[r] != 0) {
      const T factor = std::exp2(state_.reference[r] - reference);
      state_.total[r] *= static_cast<double>(factor);
      shared_.functions.multiply(state_.output + r * state_.output_stride, state_.output_stride,
                                 factor);
    }
    state_.reference[r] = reference;
  }
}

template <class T>
void DecodeFold<T>::add_block(const ScoreForm& form, std::int64_t key, std::int64_t keys,
                              const Place& ahead) {
  const bool plain = form.plain() && form.cap == 0;
  T *const scores = work_.scores, *const dots = plain ? scores : work_.dots;
  kernel::DecodeScores<T> block{
      .q = queries(plain ? form.factor * std::numbers::log2e : 1),
      .k = rows_from(keys_.k, key),
      .inner = inner(),
      .keys = keys,
      .rows = padded_,
      .out = dots,
  };
  if (ahead.count > 0) {
    block.ahead = rows_from(ahead.keys.k, ahead.key);
    block.ahead_rows = ahead.count;
  }
  functions_.scores(block);
  if (!plain) {
    const kernel::TileProgram& program =
        form.linear ? *shared_.scores.general().program : *form.program;
    if (prepared_ != &program) program.prepare(work_.program, program.capacity());
    prepared_ = &program;
    shared_.scores.evaluate(program, {batch_, row_, rows_, key, keys},
                            reinterpret_cast<const std::byte*>(dots), {.key = padded_, .row = 1},
                            reinterpret_cast<std::byte*>(scores), sizeof(T), work_.program);
  }
  const std::int64_t size = keys * padded_, n = whole_lines<T>(size);
  std::fill(scores + size, scores + n, kMinusInfinity<T>);
  if (!plain) functions_.to_base_2(scores, n);
  raise_references(n);
  std::array<T, kDecodeRows> sums;
  functions_.weigh(scores, n, padded_, state_.reference, sums.data());
  for (std::int64_t r = 0; r < rows_; ++r) {
    state_.total[r] += static_cast<double>(sums[static_cast<std::size_t>(r)]);
  }
  kernel::DecodeValues<T> values{
      .weights = scores,
      .v = rows_from(keys_.v, key),
      .columns = columns(),
      .keys = keys,
      .rows = padded_,
      .out = state_.output,
      .out_stride = state_.output_stride,
  };
  if (ahead.count > 0) {
    values.ahead = rows_from(ahead.keys.v, ahead.key);
    values.ahead_rows = ahead.count;
  }
  functions_.values(values);
}

template <class T>
void DecodeFold<T>::merge(const DecodeFold& other) {
  for (std::int64_t r = 0; r < rows_; ++r) {
    const T mine = state_.reference[r], theirs = other.state_.reference[r];
    const T most = mine >= theirs ? mine : theirs;
    // Equal references differ by 0 even where they are infinite.
    const T my_factor = mine == most ? T{1} : std::exp2(mine - most);
    const T their_factor = theirs == most ? T{1} : std::exp2(theirs - most);
    state_.reference[r] = most;
    state_.total[r] = state_.total[r] * static_cast<double>(my_factor) +
                      other.state_.total[r] * static_cast<double>(their_factor);
    T* const to = state_.output + r * state_.output_stride;
    const T* const from = other.state_.output + r * state_.output_stride;
    for (std::int64_t c = 0; c < state_.output_stride; ++c) {
      to[c] = to[c] * my_factor + from[c] * their_factor;
    }
  }
}

template <class T>
bool DecodeFold<T>::finish(bool keep_finite) {
  bool finite = true;
  for (std::int64_t r = 0; r < rows_; ++r) {
    const T factor = unit_of(shared_, state_.reference[r], state_.total[r]);
    T* const row = state_.output + r * state_.output_stride;
    shared_.functions.multiply(row, state_.output_stride, factor);
    if (keep_finite) {
      finite &= std::all_of(row, row + columns(), [](T x) { return std::isfinite(x); });
    }
  }
  if (!finite) return false;
  const TensorRows<T> to = out_of_batch();
  for (std::int64_t r = 0; r < rows_; ++r) {
    T* const row = to.data + to.axes.offset(row_ + r, to.strides);
    const T* const from = state_.output + r * state_.output_stride;
    if (to.dense) {
      std::copy_n(from, columns(), row);
      continue;
    }
    for (std::int64_t c = 0; c < columns(); ++c) {
      row[to.elements[static_cast<std::size_t>(c)]] = from[c];
    }
  }
  write_logsumexp(shared_, batch_, row_, rows_, state_.reference, state_.total);
  return true;
}

template class DecodeFold<float>;
template class DecodeFold<double>;

}  // namespace einkern::exec
