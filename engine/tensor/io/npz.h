// SPDX-License-Identifier: Apache-2.0
// NumPy's .npz format, a ZIP archive of .npy files: files and bytes to named tensors and back.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "load_options.h"
#include "named_tensors.h"

namespace einkern {

/// The arrays of an .npz file under their names without `.npy`, in the order of the file's
/// directory; each as `load_npy` gives it. Takes stored and deflated members and ZIP64; check sums
/// are verified. Stored members that lie aligned are views of the mapped file, others copies.
/// IoError, naming the file and the member, for anything that is no such file: encrypted members,
/// archives in several files, names that stand twice, members that overlap, claim more than their
/// bytes can hold, or are no .npy file. Source: NumPy Enhancement Proposal 1.
NamedTensors load_npz(const std::filesystem::path& path, const LoadOptions& options = {});

/// One array; the others are neither inflated nor looked at. ValueError that lists the names when
/// this one is not among them.
Tensor load_npz(const std::filesystem::path& path, std::string_view name,
                const LoadOptions& options = {});

/// How `save_npz` writes.
struct NpzOptions {
  bool compress = false;  // deflated by zlib, as `numpy.savez_compressed` does
};

/// Writes an .npz file that NumPy reads, ZIP64 where sizes need it. Stored arrays begin at
/// multiples of 64 bytes, so that they can be mapped. Equal content gives equal bytes. The bytes go
/// to a temporary file that takes the place of `path` when it is complete, as in `save_npy`.
/// IoError for bf16, which the format lacks, and for names that are empty or longer than 4092
/// bytes.
void save_npz(const std::filesystem::path& path, const NamedTensors& tensors,
              const NpzOptions& options = {});

/// What `load_npz` would make of a file with these bytes, as tensors with memory of their own.
NamedTensors parse_npz(std::span<const std::byte> bytes);

/// What `save_npz` would write.
std::vector<std::byte> format_npz(const NamedTensors& tensors, const NpzOptions& options = {});

}  // namespace einkern
