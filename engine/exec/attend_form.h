// SPDX-License-Identifier: Apache-2.0
// A score program as factor * dot + bias, or cap * tanh(factor * dot) + bias, where it is that.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "../kernel/map_tile.h"
#include "../map/program.h"

namespace einkern::exec {

/// score = factor * dot + bias, or unless `cap` is 0, cap * tanh(factor * dot) + bias.
struct LinearScore {
  double factor = 1, cap = 0;
  std::optional<map::Program> bias;  // reads no load 0
};

/// The linear form of a program (load 0 is the dot product), if it has one whose factor is an
/// ordinary number. -inf of a select becomes a bias of -inf. The bias may read one scalar more than
/// the program: 0, in place `scalars.size()`.
std::optional<LinearScore> linear_form(const map::Program& scores,
                                       std::span<const map::Scalar> scalars,
                                       const kernel::MapKernels& kernels);

/// Does a program depend on the positions along two axes through their difference alone?
/// `constant[i]`: load i does not move along either axis.
bool depends_on_difference(const map::Program& program, std::int64_t row_axis,
                           std::int64_t key_axis, const std::vector<bool>& constant);

}  // namespace einkern::exec
