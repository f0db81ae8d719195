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

Verdict fuzz_program(std::span<const std::byte> bytes);
Verdict fuzz_npy(std::span<const std::byte> bytes);
Verdict fuzz_npz(std::span<const std::byte> bytes);
Verdict fuzz_safetensors(std::span<const std::byte> bytes);

using Bytes = std::vector<std::byte>;

/// Whole inputs to begin with.
std::vector<Bytes> program_seeds();
std::vector<Bytes> npy_seeds();
std::vector<Bytes> npz_seeds();
std::vector<Bytes> safetensors_seeds();

}  // namespace einkern::test
