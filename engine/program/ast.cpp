// SPDX-License-Identifier: Apache-2.0
// When two trees say the same: places in the text do not count, NaN equals itself.
#include "ast.h"

#include <bit>

namespace einkern::program {

bool operator==(const Node& a, const Node& b) {
  return a.kind == b.kind && a.name == b.name && a.integer == b.integer &&
         std::bit_cast<std::uint64_t>(a.number) == std::bit_cast<std::uint64_t>(b.number) &&
         a.children == b.children && a.keywords == b.keywords && a.operators == b.operators;
}

bool operator==(const Statement& a, const Statement& b) {
  return a.kind == b.kind && a.targets == b.targets && a.values == b.values &&
         a.parameters == b.parameters && a.body == b.body && a.dtype == b.dtype &&
         a.sizes == b.sizes && a.above == b.above && a.beside == b.beside;
}

}  // namespace einkern::program
