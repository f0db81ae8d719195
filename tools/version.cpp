// SPDX-License-Identifier: Apache-2.0
// What this build of einkern is and what it makes of this machine.
#include "version.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "../einkern.h"
#include "../engine/exec/parallel.h"
#include "../engine/kernel/kernels.h"

namespace einkern::tools {
namespace {

std::string compiler() {
#if defined(__clang__)
  return fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return fmt::format("GCC {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

}  // namespace

bool is_debug_build() noexcept {
#if defined(NDEBUG) && defined(__OPTIMIZE__)
  return false;
#else
  return true;
#endif
}

std::string version_text() {
  std::vector<std::string_view> supported;
  for (const kernel::Kernels* table : kernel::supported_kernels()) {
    supported.push_back(table->target.name);
  }
  return fmt::format(
      "einkern {}\ncompiler   {}, {} build\ntargets    compiled {}; supported here {}; chosen {}\n"
      "threads    {}\n",
      version(), compiler(), is_debug_build() ? "debug" : "release",
      fmt::join(kernel::compiled_targets(), " "), fmt::join(supported, " "),
      kernel::kernels().target.name, exec::concurrency());
}

}  // namespace einkern::tools
