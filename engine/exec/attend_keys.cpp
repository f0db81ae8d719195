// SPDX-License-Identifier: Apache-2.0
// Lists where keys and values lie, and copies those that are not read there.
#include "attend_keys.h"

#include <algorithm>
#include <cstring>

#include "boxes.h"
#include "parallel.h"
#include "parts.h"

namespace einkern::exec {
namespace {

// Rows of keys that one task copies.
constexpr std::int64_t kCopiedKeys = 256;

}  // namespace

Dims axis_strides(const plan::Attend& step, std::int64_t plan::ScoreAxis::*stride) {
  Dims strides;
  for (const plan::ScoreAxis& axis : step.axes) strides.push_back(axis.*stride);
  return strides;
}

std::vector<std::int64_t> loop_offsets(const plan::Loops& loops, std::int64_t plan::Loop::*stride) {
  std::vector<std::int64_t> offsets(static_cast<std::size_t>(extent(loops)));
  if (!offsets.empty()) list_offsets(loops, stride, offsets.data());
  return offsets;
}

template <class T>
T* AttendKeys<T>::Side::copy_of(std::int64_t position) const noexcept {
  return static_cast<T*>(copies->data()) + position * keys.count() * size();
}

template <class T>
std::vector<std::int64_t> AttendKeys<T>::Side::dense_rows() const {
  std::vector<std::int64_t> at(static_cast<std::size_t>(keys.count()));
  for (std::size_t key = 0; key < at.size(); ++key)
    at[key] = static_cast<std::int64_t>(key) * size();
  return at;
}

template <class T>
kernel::StoredRows AttendKeys<T>::rows(const Side& side, std::int64_t batch) const noexcept {
  if (side.copied) return {side.copy_of(batch - first_), dtype_of<T>, side.copied_at.data()};
  const std::int64_t offset = batch_.offset(batch, side.strides);
  return {side.data + offset * static_cast<std::int64_t>(size_of(side.dtype)), side.dtype,
          side.keys.of(batch)};
}

template <class T>
void AttendKeys<T>::copy_rows(const Side& side, std::int64_t batch, T* to, std::int64_t first,
                              std::int64_t last) const noexcept {
  const std::int64_t offset = batch_.offset(batch, side.strides), size = side.size();
  const std::int64_t* const key_at = side.keys.of(batch);
  dispatch(side.dtype, [&]<class S>(std::type_identity<S>) {
    for (std::int64_t key = first; key < last; ++key) {
      const S* const from = reinterpret_cast<const S*>(side.data) + offset + key_at[key];
      T* const row = to + key * size;
      if (!side.dense) {
        for (std::int64_t i = 0; i < size; ++i) {
          row[i] = static_cast<T>(widen(from[side.elements[static_cast<std::size_t>(i)]]));
        }
      } else if (side.convert != nullptr) {
        side.convert(from, nullptr, nullptr, row, size);
      } else {
        std::memcpy(row, from, side.elements.size() * sizeof(T));
      }
    }
  });
}

template <class T>
typename AttendKeys<T>::Side AttendKeys<T>::make_side(const plan::Operand& operand,
                                                      const std::optional<plan::TakenRows>& taken,
                                                      const Frame& frame, const plan::Loops& loops,
                                                      const Dims& strides, const AttendAxes& keys,
                                                      bool copied) const {
  Side side{.data = frame.address(operand),
            .dtype = operand.dtype,
            .strides = strides,
            .keys = taken ? KeyLists(*taken, frame, batch_, keys) : KeyLists(keys, strides)};
  if (operand.dtype != dtype_of<T>) {
    side.convert = frame.kernels.map.convert[static_cast<std::size_t>(operand.dtype)]
                                            [static_cast<std::size_t>(dtype_of<T>)];
  }
  side.elements = loop_offsets(loops, &plan::Loop::b);
  side.dense = plan::lie_dense(loops, &plan::Loop::b);
  side.copied = copied;
  if (side.copied) side.copied_at = side.dense_rows();
  return side;
}

template <class T>
AttendKeys<T>::AttendKeys(const plan::Attend& step, const plan::AttendCut& cut, const Frame& frame,
                          const AttendAxes& batch, const AttendAxes& keys, const plan::Loops& inner,
                          const plan::Loops& columns)
    : batch_(batch),
      k_(make_side(step.k, step.k_taken, frame, inner, axis_strides(step, &plan::ScoreAxis::k),
                   keys, cut.copies_keys)),
      v_(make_side(step.v, step.v_taken, frame, columns, axis_strides(step, &plan::ScoreAxis::v),
                   keys, cut.copies_values)),
      keys_(keys.count()),
      round_(cut.round) {
  for (Side* side : {&k_, &v_}) {
    if (!side->copied) continue;
    side->copies = allocate_scratch(static_cast<std::size_t>(round_) * side->copied_bytes());
  }
}

template <class T>
void AttendKeys<T>::load(std::int64_t first) {
  first_ = first;
  const std::int64_t chunks = divide_up(keys_, kCopiedKeys);
  const std::int64_t positions = std::min(round_, batch_.count() - first);
  for (const Side* side : {&k_, &v_}) {
    if (!side->copied || side->size() == 0) continue;
    const double work = static_cast<double>(positions) * static_cast<double>(keys_ * side->size());
    parallel_for(positions * chunks, work, [&](std::int64_t task) {
      const std::int64_t position = task / chunks, from = task % chunks * kCopiedKeys;
      copy_rows(*side, first + position, side->copy_of(position), from,
                std::min(keys_, from + kCopiedKeys));
    });
  }
}

template <class T>
StoredKeys AttendKeys<T>::at(std::int64_t batch) const noexcept {
  return {.k = rows(k_, batch), .v = rows(v_, batch)};
}

template <class T>
StoredKeys AttendKeys<T>::widened(std::int64_t batch, WidenedMemory& memory) const {
  StoredKeys keys = at(batch);
  const auto widen_side = [&](const Side& side, kernel::StoredRows& rows) {
    if (rows.dtype == dtype_of<T>) return;
    memory.copies.push_back(allocate_scratch(side.copied_bytes()));
    T* const to = static_cast<T*>(memory.copies.back()->data());
    copy_rows(side, batch, to, 0, keys_);
    memory.rows.push_back(side.dense_rows());
    rows = {to, dtype_of<T>, memory.rows.back().data()};
  };
  widen_side(k_, keys.k);
  widen_side(v_, keys.v);
  return keys;
}

template class AttendKeys<float>;
template class AttendKeys<double>;

}  // namespace einkern::exec
