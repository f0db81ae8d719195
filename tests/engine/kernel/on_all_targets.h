// SPDX-License-Identifier: Apache-2.0
// One check on the kernels of every SIMD target.
#pragma once

#include <doctest/doctest.h>

#include "../../../engine/kernel/kernels.h"

namespace einkern::test {

/// Calls check(table) for the kernels of every SIMD target that this machine can run.
template <class Check>
void on_all_targets(const Check& check) {
  for (const kernel::Kernels* table : kernel::supported_kernels()) {
    CAPTURE(table->target.name.data());
    check(*table);
  }
}

}  // namespace einkern::test
