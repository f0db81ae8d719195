// SPDX-License-Identifier: Apache-2.0
// Numbers into the words that NumPy prints for them: alone, or as the columns of an array.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "../base/dtype.h"

namespace einkern {

/// A number on its own: "0.1", "1e+16", "3", "True". Floats show the shortest digits that read back
/// as the same value of their dtype.
template <Element T>
std::string scalar_word(T value);

/// The elements of an array, all of one width: at most 8 digits after the point, shared by all; an
/// exponent for all when some magnitude is below 1e-4 or from 1e8 up (f32 1e6, f16 1e3, bf16 1e2:
/// the digits they guarantee), or when the largest is over 1000 times the smallest that is not
/// zero.
template <Element T>
std::vector<std::string> aligned_words(std::span<const T> values);

}  // namespace einkern
