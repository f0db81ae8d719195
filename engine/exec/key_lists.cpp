// SPDX-License-Identifier: Apache-2.0
// Lists offsets of keys, a page of them at a time where a table tells where pages begin.
#include "key_lists.h"

#include "boxes.h"
#include "parallel.h"

namespace einkern::exec {
namespace {

/// The streamed axes of keys in a table as loops: stride a in the tensor, b in the table.
plan::Loops loops_of_parts(const plan::TakenRows& taken, const plan::AttendAxes& keys) {
  plan::Loops loops;
  keys.each([&](std::int64_t axis, std::int64_t) {
    for (const plan::TakenRows::Part& part : taken.parts) {
      if (part.axis != static_cast<std::size_t>(axis) || part.size == 1) continue;
      loops.push_back({part.size, part.in, part.at, 0});
    }
  });
  return loops;
}

}  // namespace

KeyLists::KeyLists(const plan::AttendAxes& keys, const Dims& strides) : count_(keys.count()) {
  allocate();
  keys.list_offsets(strides, offsets_->as<std::int64_t>());
}

KeyLists::KeyLists(const plan::TakenRows& taken, const Frame& frame, const plan::AttendAxes& batch,
                   const plan::AttendAxes& keys)
    : count_(keys.count()), batch_(&batch), list_strides_(taken.batch.size(), 0) {
  // Batch positions apart in the table have lists of their own.
  plan::Loops lists;
  batch.each([&](std::int64_t axis, std::int64_t size) {
    const auto a = static_cast<std::size_t>(axis);
    if (taken.batch[a] == 0) return;
    for (std::int64_t& stride : list_strides_) stride *= size;
    list_strides_[a] = 1;
    lists.push_back({size, 0, taken.batch[a], 0});
  });
  lists_ = extent(lists);
  allocate();
  if (count_ == 0 || lists_ == 0) return;

  // Keys behind one entry of the table are a page.
  plan::Loops pages = loops_of_parts(taken, keys), in_page;
  while (!pages.empty() && pages.back().b == 0) {
    in_page.insert(0, pages.back());
    pages.pop_back();
  }
  const OffsetList list_at(lists, &plan::Loop::b), page_at(pages, &plan::Loop::b),
      page_in(pages, &plan::Loop::a), key_in(in_page, &plan::Loop::a);
  const auto page_size = static_cast<std::int64_t>(key_in.size());
  dispatch(taken.at.dtype, [&]<class T>(std::type_identity<T>) {
    const T* const table = reinterpret_cast<const T*>(frame.address(taken.at));
    const double work = static_cast<double>(lists_) * static_cast<double>(count_);
    parallel_for(lists_, work, [&](std::int64_t list) {
      std::int64_t* to = offsets_->as<std::int64_t>() + list * count_;
      const T* const entries = table + list_at[static_cast<std::size_t>(list)];
      for (std::size_t page = 0; page < page_at.size(); ++page) {
        // NOLINTNEXTLINE(bugprone-signed-char-misuse): an i8 is a number, not a character.
        const auto entry = static_cast<std::int64_t>(widen(entries[page_at[page]]));
        const std::int64_t begin = page_in[page] + entry * taken.stride;
        for (std::int64_t i = 0; i < page_size; ++i) to[i] = begin + key_in.data()[i];
        to += page_size;
      }
    });
  });
}

}  // namespace einkern::exec
