// SPDX-License-Identifier: Apache-2.0
// Products of a few rows and a large matrix that is read once, where it lies.
#pragma once

#include <cstdint>

#include "stored_rows.h"

namespace einkern::kernel {

/// c[few_at[i] + many_at[j]] = (or +=) sum_p few[i, p] many[j, p] for p in first .. first + steps:
/// the sums run along rows in memory, elements side by side in the lanes of a vector.
template <class T>
struct SkinnyDots {
  const T* few = nullptr;  // packed, [step / lanes][row][step % lanes], zeros behind the last step
  std::int64_t few_count = 0;
  StoredRows many;  // step 0 of every row
  std::int64_t many_count = 0;
  std::int64_t first = 0, steps = 0;  // first: whole vectors
  T* c = nullptr;
  const std::int64_t *few_at = nullptr, *many_at = nullptr;
  bool add = false;
};

/// c[few_at[i] + j] = (or +=) sum_p few[i, p] many[p, j] for p in first .. first + steps, j <
/// columns: weighted sums of rows in memory.
template <class T>
struct SkinnySums {
  const T* few = nullptr;  // packed in balanced panels of at most sum_rows rows, [panel][step][row]
  std::int64_t few_count = 0, few_steps = 0;  // few_steps: of a panel
  StoredRows many;                            // its list begins with step `first`
  std::int64_t columns = 0;
  std::int64_t first = 0, steps = 0;  // at most kSkinnySteps
  T* c = nullptr;
  const std::int64_t* few_at = nullptr;
  bool add = false;
  std::int64_t ahead = 0;  // rows after these that are asked into L2 meanwhile
};

/// Rows of a matrix that SkinnySums takes at once: their parts of two vectors stay in L1, and the
/// first level of the TLB holds their pages.
inline constexpr std::int64_t kSkinnySteps = 64;

template <class T>
struct SkinnyFunctions {
  std::int64_t sum_rows = 1, lanes = 1;  // rows of a panel; elements of a vector
  void (*dots)(const SkinnyDots<T>& block) noexcept = nullptr;
  void (*sums)(const SkinnySums<T>& block) noexcept = nullptr;
};

struct SkinnyKernels {
  SkinnyFunctions<float> f32;
  SkinnyFunctions<double> f64;

  template <class T>
  const SkinnyFunctions<T>& of() const noexcept {
    if constexpr (sizeof(T) == sizeof(float)) {
      return f32;
    } else {
      return f64;
    }
  }
};

/// Sets every pointer to the kernels of the target that Highway dispatches to now.
void fill_skinny(SkinnyKernels& kernels);

}  // namespace einkern::kernel
