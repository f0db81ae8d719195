// SPDX-License-Identifier: Apache-2.0
// How files of tensors are read.
#pragma once

namespace einkern {

/// How `load_npy`, `load_npz` and `load_safetensors` read.
struct LoadOptions {
  /// Map the file instead of reading it: elements arrive when they are first touched and the tensor
  /// is read-only. A mapped file must not be shortened in place; replacing it by a rename is
  /// harmless.
  bool mmap = true;
};

}  // namespace einkern
