// SPDX-License-Identifier: Apache-2.0
// What this build of einkern is and what it makes of this machine.
#pragma once

#include <string>

namespace einkern::tools {

/// Was this compiled without optimisation or with assertions on?
bool is_debug_build() noexcept;

/// Version, compiler, SIMD targets (compiled, supported, chosen) and threads, a line each.
std::string version_text();

}  // namespace einkern::tools
