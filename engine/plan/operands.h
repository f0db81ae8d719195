// SPDX-License-Identifier: Apache-2.0
// Which operands a step reads and which one it writes.
#pragma once

#include <vector>

#include "step.h"

namespace einkern::plan {

/// Operands that the step reads, in the order of its fields; an absent one (a softmax without a
/// sink) is left out.
std::vector<Operand> reads_of(const Step& step);

/// The operand that the step writes.
const Operand& written_by(const Step& step);

/// Calls `f` with every operand that a step writes: its result, and logsumexp where it is asked
/// for.
template <class F>
void each_written(const Step& step, const F& f) {
  if (std::holds_alternative<Check>(step)) return;
  f(written_by(step));
  const auto* attend = std::get_if<Attend>(&step);
  if (attend != nullptr && attend->logsumexp.value >= 0) f(attend->logsumexp);
}

/// The same as a list.
std::vector<Operand> writes_of(const Step& step);

}  // namespace einkern::plan
