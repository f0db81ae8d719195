// SPDX-License-Identifier: Apache-2.0
// libFuzzer's entry into one target, EINKERN_FUZZ_TARGET; built where the compiler has libFuzzer.
#include "targets.h"

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  einkern::test::EINKERN_FUZZ_TARGET({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
