// SPDX-License-Identifier: Apache-2.0
// Sizes of boxes and offsets of their positions.
#include "boxes.h"

#include <algorithm>

#include "parts.h"

namespace einkern::exec {
namespace {

/// Adds a loop outside the `filled` positions listed so far; returns how many there are then.
std::int64_t add_loop(std::int64_t* to, std::int64_t filled, std::int64_t size,
                      std::int64_t stride) {
  if (filled == 1) {  // by far the most frequent
    for (std::int64_t i = 1; i < size; ++i) to[i] = to[0] + i * stride;
    return size;
  }
  for (std::int64_t i = 1; i < size; ++i) {
    for (std::int64_t j = 0; j < filled; ++j) to[i * filled + j] = to[j] + i * stride;
  }
  return filled * size;
}

/// How many of the `size` positions of a loop go with the `others` inside it: about as many as the
/// target asks for, and such that the fewest panels are begun and not filled. 72 columns take three
/// panels of 32, four times 72 take nine: 0.68 and 0.89 of the roofline at fbea,cedf->dcba of TCCG.
std::int64_t filling_part(std::int64_t size, std::int64_t others, const BoxRules& rules) {
  const std::int64_t wanted = std::max<std::int64_t>(1, rules.target / others);
  std::int64_t best = even_part(size, wanted, 1);
  constexpr std::int64_t kFew = 16;  // of so many, the last panel is a small part
  if (others % rules.panel == 0 || wanted > kFew) return best;
  const auto panels = [&](std::int64_t part) {
    return size / part * divide_up(part * others, rules.panel) +
           divide_up(size % part * others, rules.panel);
  };
  std::int64_t fewest = panels(best);
  const std::int64_t most = std::min(size, 9 * rules.target / (4 * others));
  for (std::int64_t part = std::max<std::int64_t>(1, wanted / 2); part <= most; ++part) {
    if (even_part(size, part, 1) != part) continue;
    if (const std::int64_t count = panels(part); count < fewest) {
      fewest = count;
      best = part;
    }
  }
  return best;
}

}  // namespace

std::int64_t extent(const plan::Loops& loops) noexcept {
  std::int64_t product = 1;
  for (const plan::Loop& loop : loops) product *= loop.size;
  return product;
}

std::int64_t offset_at(const plan::Loops& loops, std::int64_t index, StrideOf stride) noexcept {
  std::int64_t offset = 0;
  for (std::size_t l = loops.size(); l-- > 0;) {
    offset += index % loops[l].size * (loops[l].*stride);
    index /= loops[l].size;
  }
  return offset;
}

void list_offsets(const plan::Loops& loops, StrideOf stride, std::int64_t* to) noexcept {
  std::int64_t filled = 1;
  to[0] = 0;
  for (std::size_t l = loops.size(); l-- > 0;) {
    filled = add_loop(to, filled, loops[l].size, loops[l].*stride);
  }
}

OffsetList::OffsetList(const plan::Loops& loops, StrideOf stride)
    : size_(static_cast<std::size_t>(extent(loops))) {
  if (size_ > kInline) block_.emplace(size_ * sizeof(std::int64_t));
  list_offsets(loops, stride, block_ ? block_->as<std::int64_t>() : inline_);
}

Boxes::Boxes(const plan::Loops& loops, std::initializer_list<StrideOf> units, const BoxRules& rules)
    : loops_(&loops), box_(loops.size(), 1) {
  // Four lines of the unit-stride loops where there is room for as many of each; a little more than
  // the target is better than runs cut short.
  std::int64_t run = 4 * rules.line;
  while (run > rules.line && run * run > rules.target + rules.target / 4) run /= 2;
  SmallVector<bool, 6> has_unit(loops.size(), false);
  for (const StrideOf stride : units) {
    for (std::size_t l = 0; l < loops.size(); ++l) {
      if (loops[l].*stride != 1) continue;
      has_unit[l] = true;
      box_[l] = std::min(loops[l].size, run);
    }
  }
  for (const std::int64_t size : box_) largest_ *= size;
  for (std::size_t l = loops.size(); l-- > 0;) {
    const std::int64_t others = largest_ / box_[l];
    if (others > 1 && !has_unit[l]) {
      box_[l] = filling_part(loops[l].size, others, rules);
    } else {
      const bool any = rules.multiple == 1 && !has_unit[l];
      box_[l] = even_part(loops[l].size, std::max(box_[l], rules.target / others),
                          any ? 1 : std::max(rules.multiple, rules.line));
    }
    largest_ = others * box_[l];
  }
  for (std::size_t l = 0; l < loops.size(); ++l) count_ *= divide_up(loops[l].size, box_[l]);
}

template <class F>
void Boxes::each_loop(std::int64_t box, const F& f) const noexcept {
  for (std::size_t l = loops_->size(); l-- > 0;) {
    const std::int64_t parts = divide_up((*loops_)[l].size, box_[l]);
    const std::int64_t start = box % parts * box_[l];
    f((*loops_)[l], start, std::min(box_[l], (*loops_)[l].size - start));
    box /= parts;
  }
}

std::int64_t Boxes::size(std::int64_t box) const noexcept {
  std::int64_t product = 1;
  each_loop(box, [&](const plan::Loop&, std::int64_t, std::int64_t size) { product *= size; });
  return product;
}

std::int64_t Boxes::first(std::int64_t box, StrideOf stride) const noexcept {
  std::int64_t offset = 0;
  each_loop(box, [&](const plan::Loop& loop, std::int64_t start, std::int64_t) {
    offset += start * (loop.*stride);
  });
  return offset;
}

std::int64_t Boxes::offsets(std::int64_t box, StrideOf stride, std::int64_t* to) const noexcept {
  std::int64_t filled = 1;
  to[0] = first(box, stride);
  each_loop(box, [&](const plan::Loop& loop, std::int64_t, std::int64_t size) {
    filled = add_loop(to, filled, size, loop.*stride);
  });
  return filled;
}

kernel::UnitRun Boxes::unit(std::int64_t box, StrideOf stride) const noexcept {
  kernel::UnitRun unit;
  std::int64_t inner = 1;
  each_loop(box, [&](const plan::Loop& loop, std::int64_t, std::int64_t size) {
    if (loop.*stride == 1 && unit.size == 1) unit = {.size = size, .inner = inner};
    inner *= size;
  });
  return unit;
}

}  // namespace einkern::exec
