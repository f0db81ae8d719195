// SPDX-License-Identifier: Apache-2.0
// One function per parser: any bytes in; an Error is fine, anything else that is thrown is a fault.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace einkern::test {

/// What becomes of the bytes: refused with an Error, or read.
enum class Verdict { refused, read };

using Target = Verdict (*)(std::span<const std::byte> bytes);

Verdict fuzz_equation(std::span<const std::byte> bytes);
Verdict fuzz_program(std::span<const std::byte> bytes);
Verdict fuzz_npy(std::span<const std::byte> bytes);
Verdict fuzz_npz(std::span<const std::byte> bytes);
Verdict fuzz_safetensors(std::span<const std::byte> bytes);

using Bytes = std::vector<std::byte>;

/// A target as fuzzers find it: whole inputs to begin with, and pieces to put into them.
struct FuzzTarget {
  std::string name;
  Target run;
  std::vector<Bytes> (*seeds)();
  std::vector<std::string> dictionary;
};

const std::vector<FuzzTarget>& fuzz_targets();

}  // namespace einkern::test
