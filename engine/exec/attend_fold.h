// SPDX-License-Identifier: Apache-2.0
// The fold over keys of one tile of rows: a state, boxes of keys added to it, states merged.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>
#include <vector>

#include "../base/error.h"
#include "../kernel/attend.h"
#include "../kernel/attend_decode.h"
#include "attend_rows.h"
#include "attend_scores.h"
#include "scratch.h"

namespace einkern::exec {

/// The score of a hidden key.
template <class T>
inline constexpr T kMinusInfinity = -std::numeric_limits<T>::infinity();

/// Keys and values of one batch position: contiguous inner labels and columns, rows anywhere.
struct StoredKeys {
  kernel::StoredRows k, v;
};
/// The same, of the type that is computed in.
template <class T>
struct KeysValues {
  const T *k = nullptr, *v = nullptr;
  const std::int64_t *k_at = nullptr, *v_at = nullptr;  // by key

  KeysValues() = default;
  explicit KeysValues(const StoredKeys& stored)
      : k(static_cast<const T*>(stored.k.data)),
        v(static_cast<const T*>(stored.v.data)),
        k_at(stored.k.at),
        v_at(stored.v.at) {
    EINKERN_CHECK(k == nullptr || (stored.k.dtype == dtype_of<T> && stored.v.dtype == dtype_of<T>));
  }
};

/// What all folds of a step share.
template <class T>
struct AttendShared {
  const plan::Attend& step;
  const Frame& frame;
  const kernel::AttendFunctions<T>& functions;
  const AttendAxes &batch, &rows, &keys;
  const AttendScores& scores;
  std::vector<std::int64_t> q_inner, out_columns;  // offsets
  Dims q_strides, out_strides;                     // by axis of the scores
  bool q_dense = false, out_dense = false;         // unit strides inside

  /// Most rows of a tile.
  std::int64_t tile_rows() const noexcept { return functions.lanes * functions.most_vectors; }
};

/// References and sums of rows that start from their sinks; others are left as they are.
template <class T>
void start_from_sinks(const AttendShared<T>& shared, std::int64_t batch, std::int64_t row,
                      std::int64_t rows, T* references, double* totals);
/// What the output of a row is multiplied with.
template <class T>
T unit_of(const AttendShared<T>& shared, T reference, double total);
/// Logarithms of the denominators of rows, if the step wants them.
template <class T>
void write_logsumexp(const AttendShared<T>& shared, std::int64_t batch, std::int64_t row,
                     std::int64_t rows, const T* references, const double* totals);

/// State (reference, sum, output) per row: `weights` are 2^(score log2(e) - reference), `sum` their
/// sum, `output` the sum of their products with values.
template <class T>
class AttendFold {
 public:
  /// `state` outlives the work on it where states are merged; `work` serves one fold after another.
  AttendFold(const AttendShared<T>& shared, std::byte* state, std::byte* work);
  static std::size_t state_bytes(const AttendShared<T>& shared);
  static std::size_t work_bytes(const AttendShared<T>& shared);

  /// Takes a tile of rows and starts from nothing, or from the sinks. `next`: of the batch position
  /// after this one, to be fetched ahead; null at the end.
  void start(std::int64_t batch, std::int64_t row, std::int64_t rows, const StoredKeys& keys,
             const StoredKeys& next, bool with_sinks);
  /// Starts from nothing once more, over the same rows.
  void start_again();
  /// Skip products of hidden keys one by one, where values are not finite.
  void select_visible() { selecting_ = true; }
  /// Adds keys first .. last - 1 of the segments.
  void add(std::span<const Segment> segments, std::int64_t first, std::int64_t last);
  /// Adds the state of another fold over the same rows.
  void merge(const AttendFold& other);
  /// Writes rows of out and logsumexp, unless `keep_finite` and an element is not finite.
  bool finish(bool keep_finite);
  /// Keys that the tile of rows after this one reads and this one does not: asked for meanwhile.
  void expect(std::int64_t first, std::int64_t count) noexcept { expected_ = {first, count}; }

 private:
  struct Part {
    std::int64_t key, keys;
    const ScoreForm* form;
    std::int64_t at;                     // first key in the tile of weights
    std::int64_t first_vector, vectors;  // of rows
    // The biases, or the scores of a form that is not linear.
    const T* bias = nullptr;
    std::int64_t bias_step = 0;
  };

  /// From one position of a tile to the next.
  std::int64_t width() const noexcept { return shared_.tile_rows(); }
  /// Rows whose lanes are computed.
  std::int64_t lanes() const noexcept { return vectors_ * shared_.functions.lanes; }
  TensorRows<const T> queries_of_batch() const;
  TensorRows<T> out_of_batch() const;
  std::int64_t inner() const noexcept { return std::ssize(shared_.q_inner); }
  std::int64_t columns() const noexcept { return std::ssize(shared_.out_columns); }
  void prepare(const kernel::TileProgram& program);
  AttendBox box(std::int64_t key, std::int64_t keys) const noexcept {
    return {batch_, row_, rows_, key, keys};
  }
  const T* queries(double scale);
  void look_ahead(std::int64_t key);
  void flush();
  void prepare_part(Part& part);
  void clear_bias();
  void evaluate_general(Part& part);
  /// First row of a part.
  std::int64_t row_of(const Part& part) const noexcept {
    return part.first_vector * shared_.functions.lanes;
  }
  /// Keys first .. last - 1 of a part.
  void score_part(const Part& part, std::int64_t first, std::int64_t last, bool exponentials);
  /// Weights of the block; `raw` keys have scores already.
  void score_all(std::int64_t raw);
  /// Raises references to the largest score of the first `keys` keys: of all rows or of those whose
  /// sums ran away.
  void raise_references(std::int64_t keys, bool all);
  void shift_references();
  void scale_state();
  // attend_weights.cpp
  void flush_plainly();
  void weigh_plainly(const Part& part);
  /// Returns the drift that is left.
  kernel::Drift apply_factor(kernel::Drift drift);
  void add_values();
  void add_selected();

  /// By row in lanes: [..][width].
  struct State {
    T *reference, *output;
    double* total;
    std::size_t bytes;
    State(const AttendShared<T>& shared, std::byte* memory);
  };
  struct Work {
    T *q_scaled, *weights, *sums, *factors, *largest, *bias, *q_plain;
    std::int64_t *v_at, *q_ahead, *out_ahead;
    std::byte* program;
    std::size_t bytes;
    Work(const AttendShared<T>& shared, std::byte* memory);
  };

  const AttendShared<T>& shared_;
  const State state_;
  const Work work_;

  std::int64_t batch_ = 0, row_ = 0, rows_ = 0, vectors_ = 1;
  KeysValues<T> keys_, next_;
  double scale_in_q_ = 0;  // 0: not packed
  bool plain_packed_ = false, empty_ = true, selecting_ = false, bias_cleared_ = false;
  const kernel::TileProgram* prepared_ = nullptr;
  std::vector<Part> parts_;
  std::int64_t filled_ = 0;
  kernel::Ahead<T> k_ahead_, v_ahead_;
  struct {
    std::int64_t first = 0, count = 0;
  } expected_;
};

template <class T>
void AttendFold<T>::start_again() {
  // The reference of rows that have seen no key: any visible score then sends the block through
  // raise_references, and -inf minus it is still -inf.
  constexpr T kNoReference = std::numeric_limits<T>::lowest();
  empty_ = true;
  filled_ = 0;
  parts_.clear();
  std::fill_n(state_.reference, width(), kNoReference);
  std::fill_n(state_.total, width(), 0.0);
}

extern template class AttendFold<float>;
extern template class AttendFold<double>;

}  // namespace einkern::exec
