// SPDX-License-Identifier: Apache-2.0
// The step that picks positions along an axis: blocks of what stands behind it, copied one by one.
#include <algorithm>
#include <cstring>

#include "../base/error.h"
#include "frame.h"
#include "parallel.h"
#include "scratch.h"
#include "space.h"

namespace einkern::exec {
namespace {

constexpr std::int64_t kTakeTaskBytes = 64 << 10;

/// The axes first, ..., first + count - 1 of two layouts that have the same sizes there.
Space part(const Layout& a, std::size_t a_first, const Layout& b, std::size_t b_first,
           std::size_t count) {
  const auto cut = [count](const Dims& dims, std::size_t first) {
    return Dims(dims.begin() + first, dims.begin() + first + count);
  };
  const Dims x = cut(a.strides, a_first), y = cut(b.strides, b_first);
  return make_space(cut(a.shape, a_first), {&x, &y});
}

/// The elements behind one position, from `in` to `out`; views of `space`: out, in.
struct Block {
  Space space;
  std::int64_t element;  // bytes
  std::size_t last = 0;
  std::int64_t run = 1, runs = 1, out_step = 1, in_step = 1;

  Block(Space s, std::int64_t bytes) : space(std::move(s)), element(bytes) {
    if (space.rank() == 0) return;
    last = space.rank() - 1;
    run = space.sizes[last];
    runs = space.size() / run;
    out_step = space.strides[0][last];
    in_step = space.strides[1][last];
  }

  void copy(const std::byte* in, std::byte* out) const {
    const auto bytes = static_cast<std::size_t>(element);
    for (std::int64_t r = 0; r < runs; ++r) {
      std::byte* const to = out + space.offset(0, r, last) * element;
      const std::byte* const from = in + space.offset(1, r, last) * element;
      if (out_step == 1 && in_step == 1) {
        std::memcpy(to, from, static_cast<std::size_t>(run) * bytes);
        continue;
      }
      for (std::int64_t i = 0; i < run; ++i) {
        std::memcpy(to + i * out_step * element, from + i * in_step * element, bytes);
      }
    }
  }
};

/// The positions as offsets into the input, in the order of `places` (views: out, at).
template <class T>
void list_offsets(const Space& places, const T* at, std::int64_t stride, std::int64_t* offsets) {
  const std::int64_t count = places.size();
  for (std::int64_t i = 0; i < count; ++i) {
    // NOLINTNEXTLINE(bugprone-signed-char-misuse): an i8 is a number, not a character.
    offsets[i] = static_cast<std::int64_t>(widen(at[places.offset(1, i)])) * stride;
  }
}

}  // namespace

void run(const plan::Take& step, const Frame& frame) {
  const Layout &in = step.in.layout, &at = step.at.layout, &out = step.out.layout;
  EINKERN_CHECK(out.rank() + 1 == in.rank() + at.rank());
  if (element_count(out.shape) == 0) return;
  const auto element = static_cast<std::int64_t>(size_of(step.out.dtype));
  const std::size_t behind = in.rank() - step.axis - 1;
  const Space outer = part(out, 0, in, 0, step.axis);
  const Space places = part(out, step.axis, at, 0, at.rank());
  const Block block(part(out, step.axis + at.rank(), in, step.axis + 1, behind), element);

  const std::int64_t count = places.size();
  const ScratchBlock memory(static_cast<std::size_t>(count) * sizeof(std::int64_t));
  auto* const offsets = memory.as<std::int64_t>();
  dispatch(step.at.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    list_offsets(places, reinterpret_cast<const T*>(frame.address(step.at)), in.strides[step.axis],
                 offsets);
  });

  std::byte* const to = frame.address(step.out);
  const std::byte* const from = frame.address(step.in);
  const std::int64_t size = block.space.size(), blocks = outer.size() * count;
  const std::int64_t group = std::max<std::int64_t>(1, kTakeTaskBytes / (size * element));
  const double work = static_cast<double>(blocks) * static_cast<double>(size);
  parallel_for((blocks + group - 1) / group, work, [&](std::int64_t task) {
    for (std::int64_t i = task * group; i < std::min(blocks, (task + 1) * group); ++i) {
      const std::int64_t o = i / count, t = i % count;
      block.copy(from + (outer.offset(1, o) + offsets[t]) * element,
                 to + (outer.offset(0, o) + places.offset(0, t)) * element);
    }
  });
}

}  // namespace einkern::exec
