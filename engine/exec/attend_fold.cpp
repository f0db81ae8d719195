// SPDX-License-Identifier: Apache-2.0
// Adds boxes of keys to the state of a tile of rows.
#include "attend_fold.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace einkern::exec {
namespace {

using kernel::Drift;

// The first reference comes from this many keys; later ones rarely need more than a shift.
constexpr std::int64_t kFirstKeys = 24;

/// The rows from `first` on.
template <class T>
kernel::Ahead<T> ahead_of(const kernel::Ahead<T>& ahead, std::int64_t first) {
  return {ahead.data, ahead.at + first, ahead.rows - first, ahead.elements};
}

}  // namespace

template <class T>
AttendFold<T>::State::State(const AttendShared<T>& shared, std::byte* memory) {
  const std::int64_t width = shared.tile_rows();
  Carver carver(memory);
  reference = carver.take<T>(width);
  total = carver.take<double>(width);
  output = carver.take<T>(std::ssize(shared.out_columns) * width);
  bytes = carver.bytes();
}

template <class T>
AttendFold<T>::Work::Work(const AttendShared<T>& shared, std::byte* memory) {
  const std::int64_t width = shared.tile_rows(), inner = std::ssize(shared.q_inner);
  Carver carver(memory);
  q_scaled = carver.take<T>(inner * width);
  weights = carver.take<T>(kKeyBlock * width);
  sums = carver.take<T>(width);
  factors = carver.take<T>(width);
  largest = carver.take<T>(width);
  v_at = carver.take<std::int64_t>(kKeyBlock);
  q_ahead = carver.take<std::int64_t>(width);
  out_ahead = carver.take<std::int64_t>(width);
  bias = carver.take<T>(kKeyBlock * width);
  q_plain = carver.take<T>(inner * width);
  program = carver.take<std::byte>(static_cast<std::int64_t>(shared.scores.scratch_bytes()));
  bytes = carver.bytes();
}

template <class T>
AttendFold<T>::AttendFold(const AttendShared<T>& shared, std::byte* state, std::byte* work)
    : shared_(shared), state_(shared, state), work_(shared, work) {}

template <class T>
std::size_t AttendFold<T>::state_bytes(const AttendShared<T>& shared) {
  return State(shared, nullptr).bytes;
}
template <class T>
std::size_t AttendFold<T>::work_bytes(const AttendShared<T>& shared) {
  return Work(shared, nullptr).bytes;
}

template <class T>
void AttendFold<T>::prepare(const kernel::TileProgram& program) {
  if (prepared_ != &program) program.prepare(work_.program, program.capacity());
  prepared_ = &program;
}

template <class T>
void AttendFold<T>::start(std::int64_t batch, std::int64_t row, std::int64_t rows,
                          const StoredKeys& keys, const StoredKeys& next, bool with_sinks) {
  batch_ = batch;
  row_ = row;
  rows_ = rows;
  keys_ = KeysValues<T>(keys);
  next_ = KeysValues<T>(next);
  const std::int64_t lanes = shared_.functions.lanes;
  vectors_ = (rows + lanes - 1) / lanes;
  scale_in_q_ = 0;
  plain_packed_ = selecting_ = bias_cleared_ = false;
  prepared_ = nullptr;
  expected_ = {};
  start_again();
  if (with_sinks) {
    start_from_sinks(shared_, batch, row, rows, state_.reference, state_.total);
  }
}

template <class T>
TensorRows<const T> AttendFold<T>::queries_of_batch() const {
  return {reinterpret_cast<const T*>(shared_.frame.address(shared_.step.q)) +
              shared_.batch.offset(batch_, shared_.q_strides),
          shared_.rows, shared_.q_strides, shared_.q_inner, shared_.q_dense};
}

template <class T>
TensorRows<T> AttendFold<T>::out_of_batch() const {
  return {reinterpret_cast<T*>(shared_.frame.address(shared_.step.out)) +
              shared_.batch.offset(batch_, shared_.out_strides),
          shared_.rows, shared_.out_strides, shared_.out_columns, shared_.out_dense};
}

/// The rows of q, transposed and scaled by `scale`; 1 for the scores as written.
template <class T>
const T* AttendFold<T>::queries(double scale) {
  T* const packed = scale == 1 ? work_.q_plain : work_.q_scaled;
  if (scale == 1 ? plain_packed_ : scale == scale_in_q_) return packed;
  if (rows_ < width()) std::fill_n(packed, inner() * width(), T{0});
  pack_rows(queries_of_batch(), row_, rows_, width(), shared_.frame.kernels.copy, packed);
  if (scale == 1) {
    plain_packed_ = true;
  } else {
    shared_.functions.multiply(packed, inner() * width(), static_cast<T>(scale));
    scale_in_q_ = scale;
  }
  return packed;
}

template <class T>
void AttendFold<T>::add(std::span<const Segment> segments, std::int64_t first, std::int64_t last) {
  for (const Segment& segment : segments) {
    std::int64_t key = std::max(first, segment.key);
    const std::int64_t end = std::min(last, segment.key + segment.keys);
    while (key < end) {
      if (filled_ == kKeyBlock) {
        // Where windows slide, the tile before has asked for all that this one reads.
        const bool slides = expected_.count > 0;
        const std::int64_t next = slides ? expected_.first : key;
        const std::int64_t count = slides ? expected_.count : end - key;
        k_ahead_ = {keys_.k, keys_.k_at + next, count, inner()};
        v_ahead_ = {keys_.v, keys_.v_at + next, count, columns()};
        flush();
      }
      const std::int64_t keys = std::min(end - key, kKeyBlock - filled_);
      parts_.push_back({.key = key,
                        .keys = keys,
                        .form = segment.form,
                        .at = filled_,
                        .first_vector = segment.vectors == 0 ? 0 : segment.first_vector,
                        .vectors = segment.vectors == 0 ? vectors_ : segment.vectors});
      filled_ += keys;
      key += keys;
    }
  }
  look_ahead(last);
  flush();
}

/// At the last keys: the piece that follows, or else what the next tile of rows reads first and
/// this one writes.
template <class T>
void AttendFold<T>::look_ahead(std::int64_t key) {
  k_ahead_ = v_ahead_ = {};
  const std::int64_t count = shared_.keys.count(), tile_rows = shared_.tile_rows();
  const bool few = rows_ <= shared_.functions.lanes;
  const auto keys_from = [&](const KeysValues<T>& keys, std::int64_t first) {
    const std::int64_t rows = std::min(kKeyBlock, count - first);
    k_ahead_ = {keys.k, keys.k_at + first, rows, inner()};
    if (few) v_ahead_ = {keys.v, keys.v_at + first, rows, columns()};
  };
  if (key < count) return keys_from(keys_, key);
  if (row_ > 0) {  // tiles go from the last rows to the first
    const std::int64_t rows = std::min(row_, tile_rows);
    if (shared_.q_dense) {
      list_rows(shared_.rows, shared_.q_strides, row_ - rows, rows, work_.q_ahead);
      k_ahead_ = {queries_of_batch().data, work_.q_ahead, rows, inner()};
    }
  } else if (next_.k != nullptr) {
    keys_from(next_, 0);
  }
  if (few || !shared_.out_dense) return;
  list_rows(shared_.rows, shared_.out_strides, row_, rows_, work_.out_ahead);
  v_ahead_ = {out_of_batch().data, work_.out_ahead, rows_, columns()};
}

template <class T>
void AttendFold<T>::flush() {
  if (filled_ == 0) return;
  if (!shared_.step.normalise) return flush_plainly();
  for (Part& part : parts_) prepare_part(part);
  // Biases may rise far within a block.
  const bool biased = parts_.front().bias != nullptr;
  const std::int64_t raw = !empty_ ? 0 : biased ? filled_ : std::min(filled_, kFirstKeys);
  if (raw > 0) raise_references(raw, true);
  score_all(raw);
  Drift drift = shared_.functions.judge(work_.sums, vectors_);
  if (drift == Drift::invalid) {
    // Perhaps a key that the program hides met NaN or infinity in the dot product.
    for (Part& part : parts_) {
      if (part.bias != nullptr && part.form->linear) evaluate_general(part);
    }
    score_all(0);
    drift = shared_.functions.judge(work_.sums, vectors_);
  }
  if (drift == Drift::large || drift == Drift::invalid) {
    raise_references(filled_, false);
    score_all(0);
  }
  if (shared_.scores.factor() != nullptr) drift = apply_factor(drift);
  add_values();
  for (std::int64_t r = 0; r < lanes(); ++r) state_.total[r] += static_cast<double>(work_.sums[r]);
  if (drift == Drift::small) shift_references();
  parts_.clear();
  filled_ = 0;
}

/// Lanes beyond the last row compute with zeros.
template <class T>
void AttendFold<T>::clear_bias() {
  if (rows_ < width() && !bias_cleared_) std::fill_n(work_.bias, kKeyBlock * width(), T{0});
  bias_cleared_ = true;
}

template <class T>
void AttendFold<T>::prepare_part(Part& part) {
  if (part.form->plain()) return;
  if (!part.form->linear) return evaluate_general(part);
  const AttendBox all = box(part.key, part.keys);
  const bool simple = part.form->by_difference && shared_.scores.is_simple(all);
  const std::byte* const known = shared_.scores.differences_of(*part.form, batch_);
  const std::int64_t difference =
      part.key % shared_.keys.run() - row_ % shared_.rows.run();  // of the first key and row
  if (simple && known != nullptr) {
    part.bias = reinterpret_cast<const T*>(known) + part.form->differences.most - difference;
    part.bias_step = -1;
    return;
  }
  clear_bias();
  const kernel::TileProgram& program = *part.form->program;
  prepare(program);
  T* const bias = work_.bias + part.at * width();
  auto* const out = reinterpret_cast<std::byte*>(bias);
  std::int64_t count = part.keys * width();
  part.bias = bias;
  part.bias_step = width();
  // Lines of a Toeplitz matrix lie in one array, each a step before the last. It pays from two keys
  // on, and needs no more room than they have.
  if (simple && part.keys > 1) {
    const auto& functions = shared_.functions;
    count = (part.keys - 1 + width() + functions.lanes - 1) / functions.lanes * functions.lanes;
    const std::int64_t most = difference + part.keys - 1;
    shared_.scores.evaluate_differences(program, all, most, count, out, sizeof(T), work_.program);
    part.bias = bias + part.keys - 1;
    part.bias_step = -1;
  } else {
    shared_.scores.evaluate(program, all, nullptr, {width(), 1}, out, sizeof(T), work_.program);
  }
  if (!shared_.functions.moderate(bias, count)) evaluate_general(part);
}

/// All of the scores, as the program writes them.
template <class T>
void AttendFold<T>::evaluate_general(Part& part) {
  clear_bias();
  const ScoreForm& form = part.form->linear ? shared_.scores.general() : *part.form;
  const kernel::TileProgram& program = *form.program;
  T* const dots = work_.weights + part.at * width();
  T* const scores = work_.bias + part.at * width();
  shared_.functions.scores({.q = queries(1),
                            .k = keys_.k,
                            .k_at = keys_.k_at + part.key,
                            .inner = inner(),
                            .keys = part.keys,
                            .out = dots},
                           vectors_);
  prepare(program);
  shared_.scores.evaluate(program, box(part.key, part.keys),
                          reinterpret_cast<const std::byte*>(dots), {width(), 1},
                          reinterpret_cast<std::byte*>(scores), sizeof(T), work_.program);
  part.form = &form;
  part.first_vector = 0;
  part.vectors = vectors_;
  part.bias = scores;
  part.bias_step = width();
}

template <class T>
void AttendFold<T>::score_part(const Part& part, std::int64_t first, std::int64_t last,
                               bool exponentials) {
  const bool linear = part.form->linear;
  const double cap = linear ? part.form->cap : 0;
  const std::int64_t at = part.at + first, row = row_of(part);
  shared_.functions.scores(
      {.q = linear ? queries(part.form->factor * (cap == 0 ? std::numbers::log2e : 1)) + row
                   : nullptr,
       .k = keys_.k,
       .k_at = keys_.k_at + part.key + first,
       .inner = linear ? inner() : 0,
       .keys = last - first,
       .bias = part.bias == nullptr ? nullptr : part.bias + first * part.bias_step + row,
       .bias_step = part.bias_step,
       .reference = exponentials ? state_.reference + row : nullptr,
       .cap = static_cast<T>(cap * std::numbers::log2e),
       .out = work_.weights + at * width() + row,
       .sums = work_.sums + row,
       .ahead = exponentials ? ahead_of(k_ahead_, at) : kernel::Ahead<T>{}},
      part.vectors);
}

template <class T>
void AttendFold<T>::score_all(std::int64_t raw) {
  std::fill_n(work_.sums, width(), T{0});
  for (const Part& part : parts_) {
    const std::int64_t first = std::clamp<std::int64_t>(raw - part.at, 0, part.keys);
    const std::int64_t row = row_of(part);
    shared_.functions.weigh(work_.weights + part.at * width() + row, first, state_.reference + row,
                            work_.sums + row, part.vectors);
    score_part(part, first, part.keys, true);
  }
}

template <class T>
void AttendFold<T>::raise_references(std::int64_t keys, bool all) {
  std::fill_n(work_.largest, width(), kMinusInfinity<T>);
  for (const Part& part : parts_) {
    const std::int64_t count = std::min(part.keys, keys - part.at);
    if (count <= 0) break;
    score_part(part, 0, count, false);
    const std::int64_t row = row_of(part);
    shared_.functions.largest(work_.weights + part.at * width() + row, count, part.vectors,
                              work_.largest + row);
  }
  bool moved = false;
  for (std::int64_t r = 0; r < lanes(); ++r) {
    work_.factors[r] = 1;
    const bool moves = all || !(work_.sums[r] <= static_cast<T>(kernel::kHugeSum));
    if (!moves || !(work_.largest[r] > kMinusInfinity<T>)) continue;
    const T reference = std::max(state_.reference[r], std::ceil(work_.largest[r]));
    if (reference == state_.reference[r]) continue;
    if (state_.total[r] != 0) {
      work_.factors[r] = std::exp2(state_.reference[r] - reference);
      moved = true;
    }
    state_.reference[r] = reference;
  }
  if (moved) scale_state();
}

/// Sums above kMostSum move into the reference, by exact powers of two.
template <class T>
void AttendFold<T>::shift_references() {
  for (std::int64_t r = 0; r < lanes(); ++r) {
    work_.factors[r] = 1;
    if (!(work_.sums[r] > static_cast<T>(kernel::kMostSum))) continue;
    const int exponent = std::ilogb(work_.sums[r]);
    state_.reference[r] += static_cast<T>(exponent);
    work_.factors[r] = std::ldexp(T{1}, -exponent);
  }
  scale_state();
}

template <class T>
void AttendFold<T>::scale_state() {
  for (std::int64_t r = 0; r < lanes(); ++r)
    state_.total[r] *= static_cast<double>(work_.factors[r]);
  if (empty_) return;
  shared_.functions.scale(state_.output, columns(), work_.factors, vectors_);
}

template <class T>
void AttendFold<T>::add_values() {
  if (selecting_) return add_selected();
  for (const Part& part : parts_) {
    std::copy_n(keys_.v_at + part.key, part.keys, work_.v_at + part.at);
  }
  // Parts that the same rows see go together.
  for (std::size_t p = 0; p < parts_.size();) {
    const Part& part = parts_[p];
    std::int64_t keys = 0;
    for (; p < parts_.size() && parts_[p].first_vector == part.first_vector &&
           parts_[p].vectors == part.vectors;
         ++p) {
      keys += parts_[p].keys;
    }
    if (empty_ && part.vectors != vectors_) {
      std::fill_n(state_.output, columns() * width(), T{0});
      empty_ = false;
    }
    const std::int64_t row = row_of(part);
    shared_.functions.values({.weights = work_.weights + part.at * width() + row,
                              .v = keys_.v,
                              .v_at = work_.v_at + part.at,
                              .columns = columns(),
                              .keys = keys,
                              .first = empty_,
                              .out = state_.output + row,
                              .ahead = ahead_of(v_ahead_, part.at)},
                             part.vectors);
    empty_ = false;
  }
}

/// As add_values, but products with a value that is not finite are left out where the key is
/// hidden.
template <class T>
void AttendFold<T>::add_selected() {
  if (empty_) std::fill_n(state_.output, columns() * width(), T{0});
  empty_ = false;
  const kernel::TileProgram& program = *shared_.scores.visible();
  bool* const visible = reinterpret_cast<bool*>(work_.bias);  // its scores are weights by now
  T* const dots = work_.bias + width();
  std::int64_t finite_keys = 0;
  for (const Part& part : parts_) {
    for (std::int64_t j = 0; j < part.keys; ++j) {
      T* const all = work_.weights + (part.at + j) * width();
      const std::int64_t seen = row_of(part), end = seen + part.vectors * shared_.functions.lanes;
      std::fill(all, all + seen, T{0});
      std::fill(all + end, all + width(), T{0});
      const std::int64_t key = part.key + j;
      const T* const values = keys_.v + keys_.v_at[key];
      const T* const weights = work_.weights + (part.at + j) * width();
      if (std::all_of(values, values + columns(), [](T x) { return std::isfinite(x); })) {
        std::copy_n(weights, width(), work_.weights + finite_keys * width());
        work_.v_at[finite_keys++] = keys_.v_at[key];
        continue;
      }
      prepare(program);
      shared_.functions.scores({.q = queries(1),
                                .k = keys_.k,
                                .k_at = keys_.k_at + key,
                                .inner = inner(),
                                .keys = 1,
                                .out = dots},
                               vectors_);
      shared_.scores.evaluate(program, box(key, 1), reinterpret_cast<const std::byte*>(dots),
                              {width(), 1}, reinterpret_cast<std::byte*>(visible), 1,
                              work_.program);
      for (std::int64_t c = 0; c < columns(); ++c) {
        for (std::int64_t r = 0; r < rows_; ++r) {
          if (visible[r]) state_.output[c * width() + r] += weights[r] * values[c];
        }
      }
    }
  }
  shared_.functions.values({.weights = work_.weights,
                            .v = keys_.v,
                            .v_at = work_.v_at,
                            .columns = columns(),
                            .keys = finite_keys,
                            .first = false,
                            .out = state_.output},
                           vectors_);
  bias_cleared_ = false;
}

template <class T>
void AttendFold<T>::merge(const AttendFold& other) {
  if (other.empty_) return;
  for (std::int64_t r = 0; r < lanes(); ++r) {
    const T mine = state_.reference[r], theirs = other.state_.reference[r];
    const T most = mine >= theirs ? mine : theirs;
    // Equal references differ by 0 even where they are infinite.
    work_.factors[r] = mine == most ? T{1} : std::exp2(mine - most);
    work_.sums[r] = theirs == most ? T{1} : std::exp2(theirs - most);
    state_.reference[r] = most;
    state_.total[r] = state_.total[r] * static_cast<double>(work_.factors[r]) +
                      other.state_.total[r] * static_cast<double>(work_.sums[r]);
  }
  for (std::int64_t c = 0; c < columns(); ++c) {
    T* const to = state_.output + c * width();
    const T* const from = other.state_.output + c * width();
    if (empty_) {
      for (std::int64_t r = 0; r < lanes(); ++r) to[r] = from[r] * work_.sums[r];
    } else {
      for (std::int64_t r = 0; r < lanes(); ++r)
        to[r] = to[r] * work_.factors[r] + from[r] * work_.sums[r];
    }
  }
  empty_ = false;
}

template <class T>
bool AttendFold<T>::finish(bool keep_finite) {
  if (empty_) std::fill_n(state_.output, columns() * width(), T{0});
  for (std::int64_t r = 0; r < lanes(); ++r) {
    work_.factors[r] = unit_of(shared_, state_.reference[r], state_.total[r]);
  }
  if (!shared_.functions.scale(state_.output, columns(), work_.factors, vectors_) && keep_finite)
    return false;

  write_rows(state_.output, width(), out_of_batch(), row_, rows_, shared_.frame.kernels.copy);
  write_logsumexp(shared_, batch_, row_, rows_, state_.reference, state_.total);
  return true;
}

template class AttendFold<float>;
template class AttendFold<double>;

}  // namespace einkern::exec
