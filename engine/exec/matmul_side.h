// SPDX-License-Identifier: Apache-2.0
// The blocking of a packed matrix product in label space, and how boxes of its operands are packed.
#pragma once

#include <algorithm>
#include <cstdint>

#include "../base/machine.h"
#include "blocking.h"
#include "boxes.h"

namespace einkern::exec {

/// How a contraction is blocked. All sums are cut by `k` alone, which depends on the step and the
/// target only; m and n may be cut anyhow without changing a bit.
template <class T>
struct Blocking {
  std::int64_t mr, nr;
  Boxes k, m, n;
  std::int64_t batch;
  Cut cut;
  bool pack_a, pack_b;

  Blocking(const plan::Contract& step, const Target& target)
      : mr(sizeof(T) == 4 ? target.mr_f32 : target.mr_f64),
        nr(sizeof(T) == 4 ? target.nr_f32 : target.nr_f64),
        k(step.k, {&plan::Loop::a, &plan::Loop::b},
          {.line = kLine,
           .target = sizeof(T) == 4 ? target.kc_f32 : target.kc_f64,
           .multiple = kLine}),
        m(step.m, {&plan::Loop::a}, {.line = kLine}),
        n(step.n, {&plan::Loop::b}, {.line = kLine}),
        batch(extent(step.batch)) {
    const bool scattered = std::any_of(step.n.begin(), step.n.end(), [](const plan::Loop& loop) {
      return loop.b == 1 && loop.c != 1;
    });
    const bool plain_a = step.a.dtype == step.c.dtype && step.m.size() == 1 && step.k.size() == 1 &&
                         step.k[0].a == 1;
    const bool plain_b = step.b.dtype == step.c.dtype && step.n.size() == 1 && step.n[0].b == 1 &&
                         step.k.size() == 1 && step.k[0].b != 0;
    const Blocks blocks = choose_blocks({.rows = extent(step.m),
                                         .columns = extent(step.n),
                                         .steps = extent(step.k),
                                         .batch = batch,
                                         .element_bytes = sizeof(T),
                                         .kc = k.largest(),
                                         .k_boxes = k.count(),
                                         .scattered_columns = scattered,
                                         .plain_b = plain_b,
                                         .plain_a_stride = plain_a ? step.m[0].a : 0,
                                         .epilogue = step.epilogue.has_value()},
                                        {mr, nr}, machine());
    cut = blocks.cut;
    pack_a = blocks.pack_a || cut == Cut::sums;
    pack_b = blocks.pack_b || cut == Cut::sums;
    m = Boxes(step.m, {&plan::Loop::a}, {.line = kLine, .target = blocks.mc});
    n = Boxes(step.n, {&plan::Loop::c, &plan::Loop::b},
              {.line = kLine, .target = blocks.nc, .multiple = nr, .panel = nr});
  }

  /// Whether a box of b must be packed: tiles read whole vectors.
  bool packs_b(std::int64_t box) const { return pack_b || n.size(box) % (nr / 2) != 0; }

  static constexpr std::int64_t kLine = 64 / sizeof(T);
};

/// One operand of the product: where it lies and how its boxes are packed.
template <class T>
struct Side {
  const std::byte* data;
  DType dtype;
  StrideOf stride;  // of this operand
  const Boxes& boxes;
  std::int64_t width;
  bool padded;

  kernel::Panels panels(std::int64_t positions) const { return {positions, width, padded}; }
  /// Elements of the largest packed box.
  std::int64_t largest(const Boxes& k) const {
    return panels(boxes.largest()).packed_size(k.largest());
  }

  void pack(const kernel::MatmulFunctions<T>& functions, const Boxes& k, std::int64_t box,
            std::int64_t k_box, std::int64_t batch_offset, std::int64_t* lanes, std::int64_t* steps,
            T* to) const {
    const std::int64_t lane_count = boxes.offsets(box, stride, lanes);
    const std::int64_t step_count = k.offsets(k_box, stride, steps);
    functions.pack({.source = data + batch_offset * static_cast<std::int64_t>(size_of(dtype)),
                    .lanes = {lanes, lane_count, boxes.unit(box, stride)},
                    .steps = {steps, step_count, k.unit(k_box, stride)},
                    .panels = panels(lane_count),
                    .packed = to,
                    .dtype = dtype});
  }
};

}  // namespace einkern::exec
