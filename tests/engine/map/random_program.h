// SPDX-License-Identifier: Apache-2.0
// Random programs with boxes and ranges of inputs, and random elements within them.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "../../../engine/map/interval.h"
#include "element.h"

namespace einkern::test {

using Random = std::mt19937_64;

/// A program and everything that says which elements it is evaluated at.
struct RandomProgram {
  map::Program program;
  std::vector<map::IndexRange> axes;
  std::vector<DType> input_dtypes;
  std::vector<map::Range> inputs;
  std::vector<map::Scalar> scalars;
};

/// Mostly small programs over all operations and dtypes; half of them end as a mask does, with a
/// selection of -inf.
RandomProgram random_program(Random& random);

/// An element within the ranges: often at an end of one, NaN where a range allows it.
Element random_element(const RandomProgram& random_program, Random& random);

}  // namespace einkern::test
