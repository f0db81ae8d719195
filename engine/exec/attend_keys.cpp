// SPDX-License-Identifier: Apache-2.0
// Decides whether keys and values are read as they lie, and copies those that are not.
#include "attend_keys.h"

#include <algorithm>

#include "boxes.h"
#include "parallel.h"
#include "scratch.h"

namespace einkern::exec {
namespace {

// Copies alive at the same time; more batch positions take turns.
constexpr std::int64_t kCopiedBytes = std::int64_t{32} << 20;
// Rows of keys that one task copies.
constexpr std::int64_t kCopiedKeys = 256;
// Rows of queries that pay for a copy of keys whose rows are far apart (0.83 of peak instead of
// 0.87, 0.74 at a stride of 4 KiB).
constexpr std::int64_t kRowsForCopy = 256;

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

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

bool lie_dense(const plan::Loops& loops, std::int64_t plan::Loop::*stride) {
  std::int64_t inside = 1;
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
    if (loop->size != 1 && (*loop).*stride != inside) return false;
    inside *= loop->size;
  }
  return true;
}

template <class T>
std::int64_t AttendKeys<T>::Side::size() const noexcept {
  return std::ssize(elements);
}

template <class T>
const T* AttendKeys<T>::Side::of(std::int64_t position, std::int64_t offset) const noexcept {
  if (!copied) return data + offset;
  return static_cast<const T*>(copies->data()) + position * std::ssize(key_at) * size();
}

template <class T>
void AttendKeys<T>::Side::copy_rows(std::int64_t position, std::int64_t offset, std::int64_t first,
                                    std::int64_t last) const noexcept {
  T* to = const_cast<T*>(of(position, offset)) + first * size();
  for (std::int64_t key = first; key < last; ++key, to += size()) {
    const T* const from = data + offset + key_at[static_cast<std::size_t>(key)];
    if (dense) {
      std::copy_n(from, size(), to);
    } else {
      for (std::int64_t i = 0; i < size(); ++i) to[i] = from[elements[static_cast<std::size_t>(i)]];
    }
  }
}

template <class T>
typename AttendKeys<T>::Side AttendKeys<T>::make_side(const plan::Operand& operand,
                                                      const Frame& frame, const plan::Loops& loops,
                                                      const Dims& strides, const AttendAxes& rows,
                                                      const AttendAxes& keys) const {
  Side side;
  side.data = reinterpret_cast<const T*>(frame.address(operand));
  side.strides = strides;
  side.key_at = keys.offsets(strides);
  side.elements = loop_offsets(loops, &plan::Loop::b);
  side.dense = lie_dense(loops, &plan::Loop::b);
  const std::int64_t axis = keys.innermost();
  const bool apart = axis >= 0 && strides[static_cast<std::size_t>(axis)] != side.size();
  side.copied = !side.dense || (apart && rows.count() >= kRowsForCopy);
  if (side.copied) {
    for (std::int64_t key = 0; key < keys.count(); ++key) {
      side.copied_at.push_back(key * side.size());
    }
  }
  return side;
}

template <class T>
AttendKeys<T>::AttendKeys(const plan::Attend& step, const Frame& frame, const AttendAxes& batch,
                          const AttendAxes& rows, const AttendAxes& keys, const plan::Loops& inner,
                          const plan::Loops& columns)
    : batch_(batch),
      k_(make_side(step.k, frame, inner, axis_strides(step, &plan::ScoreAxis::k), rows, keys)),
      v_(make_side(step.v, frame, columns, axis_strides(step, &plan::ScoreAxis::v), rows, keys)),
      keys_(keys.count()),
      round_(batch.count()) {
  const auto bytes = [&](const Side& side) {
    return side.copied ? keys_ * side.size() * static_cast<std::int64_t>(sizeof(T)) : 0;
  };
  const std::int64_t both = bytes(k_) + bytes(v_);
  if (both == 0) return;
  round_ = std::clamp<std::int64_t>(kCopiedBytes / both, 1, batch.count());
  for (Side* side : {&k_, &v_}) {
    if (side->copied) {
      side->copies = allocate_scratch(static_cast<std::size_t>(round_ * bytes(*side)));
    }
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
      side->copy_rows(position, batch_.offset(first + position, side->strides), from,
                      std::min(keys_, from + kCopiedKeys));
    });
  }
}

template <class T>
KeysValues<T> AttendKeys<T>::at(std::int64_t batch) const noexcept {
  const auto table = [](const Side& side) {
    return side.copied ? side.copied_at.data() : side.key_at.data();
  };
  return {.k = k_.of(batch - first_, batch_.offset(batch, k_.strides)),
          .v = v_.of(batch - first_, batch_.offset(batch, v_.strides)),
          .k_at = table(k_),
          .v_at = table(v_)};
}

template class AttendKeys<float>;
template class AttendKeys<double>;

}  // namespace einkern::exec
