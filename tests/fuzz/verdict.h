// SPDX-License-Identifier: Apache-2.0
// What targets have in common.
#pragma once

#include <stdexcept>

#include "../../engine/base/error.h"
#include "targets.h"

namespace einkern::test {

inline void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

template <class Read>
Verdict tried(Read read) {
  try {
    read();
    return Verdict::read;
  } catch (const Error&) {
    return Verdict::refused;
  }
}

}  // namespace einkern::test
