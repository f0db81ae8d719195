// SPDX-License-Identifier: Apache-2.0
// Changes bytes at random, the same way for the same seed: the fuzzer where there is no libFuzzer.
#pragma once

#include <random>

#include "targets.h"

namespace einkern::test {

/// One or several changes: bits, bytes, numbers at the bounds of their types, pieces doubled, cut
/// out, moved in from another input, and words of `dictionary`.
Bytes mutated(const Bytes& bytes, const Bytes& other, const std::vector<std::string>& dictionary,
              std::mt19937& random);

}  // namespace einkern::test
