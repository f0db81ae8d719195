// SPDX-License-Identifier: Apache-2.0
// The one header a user includes: tensors and einsum, the words, and attention.
#pragma once

#include "attention/attention.h"
#include "engine/base/error.h"
#include "engine/graph/compiled.h"
#include "engine/graph/expr.h"
#include "engine/program/program.h"
#include "engine/tensor/borrow.h"
#include "engine/tensor/create.h"
#include "engine/tensor/io/npy.h"
#include "engine/tensor/io/npz.h"
#include "engine/tensor/io/safetensors.h"
#include "engine/tensor/storage.h"
#include "engine/tensor/tensor.h"
#include "ops/ops.h"

namespace einkern {

/// "major.minor.patch" of the library that is linked.
const char* version() noexcept;

/// The words of programs: the engine's own, those of ops, and the functions of attention.
const Words& words();

}  // namespace einkern
