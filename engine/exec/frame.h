// SPDX-License-Identifier: Apache-2.0
// What a step sees while it runs: where each value lies, the scalars and the kernels.
#pragma once

#include <span>

#include "../base/dtype.h"
#include "../base/small_vector.h"
#include "../kernel/kernels.h"
#include "../plan/step.h"

namespace einkern::exec {

struct Frame {
  SmallVector<std::byte*, 16> values;  // first element of each value, by ValueId
  std::span<const map::Scalar> scalars;
  const kernel::Kernels& kernels;

  /// First element of an operand (its layout's offset applied).
  std::byte* address(const plan::Operand& operand) const {
    return values[static_cast<std::size_t>(operand.value)] +
           operand.layout.offset * static_cast<std::int64_t>(size_of(operand.dtype));
  }
};

// One file per step kind.
void run(const plan::Contract& step, const Frame& frame);
void run(const plan::SelectContract& step, const Frame& frame);
void run(const plan::Reduce& step, const Frame& frame);
void run(const plan::Map& step, const Frame& frame);
void run(const plan::Softmax& step, const Frame& frame);
void run(const plan::Copy& step, const Frame& frame);
void run(const plan::Fill& step, const Frame& frame);
void run(const plan::Attend& step, const Frame& frame);
void run(const plan::Check& step, const Frame& frame);
void run(const plan::Take& step, const Frame& frame);
void run(const plan::Scan& step, const Frame& frame);

}  // namespace einkern::exec
