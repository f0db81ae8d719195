// SPDX-License-Identifier: Apache-2.0
// The process-wide table of dyn symbols and arithmetic on sizes.
#include "extent.h"

#include <mutex>
#include <vector>

#include "../base/error.h"

namespace einkern::graph {
namespace {

// Far from the negative numbers that callers mean as numbers.
constexpr std::int64_t kFirst = -(std::int64_t{1} << 40);

struct SymbolTable {
  std::mutex mutex;
  std::vector<std::string> names;
};

SymbolTable& symbols() {
  static SymbolTable table;
  return table;
}

}  // namespace

std::int64_t dyn_extent(std::string_view name) {
  SymbolTable& table = symbols();
  const std::lock_guard lock(table.mutex);
  for (std::size_t i = 0; i < table.names.size(); ++i) {
    if (table.names[i] == name) return kFirst - static_cast<std::int64_t>(i);
  }
  table.names.emplace_back(name);
  return kFirst - static_cast<std::int64_t>(table.names.size() - 1);
}

bool is_symbol(std::int64_t extent) {
  if (extent > kFirst) return false;
  SymbolTable& table = symbols();
  const std::lock_guard lock(table.mutex);
  return kFirst - extent < static_cast<std::int64_t>(table.names.size());
}

std::string extent_text(std::int64_t extent) {
  // A negative number that no symbol has comes from a caller: it is shown as it is.
  if (!is_symbol(extent)) return std::to_string(extent);
  SymbolTable& table = symbols();
  const std::lock_guard lock(table.mutex);
  return table.names[static_cast<std::size_t>(kFirst - extent)];
}

std::int64_t multiply_extents(std::int64_t a, std::int64_t b) {
  if (a == 1) return b;
  if (b == 1) return a;
  if (is_dyn(a) || is_dyn(b)) return dyn_extent(extent_text(a) + "*" + extent_text(b));
  if (a == 0 || b == 0) return 0;
  if (a > INT64_MAX / b) {
    fail<ShapeError>("merge: sizes " + extent_text(a) + " and " + extent_text(b) +
                     " multiply beyond 64 bits");
  }
  return a * b;
}

bool unify_extents(std::int64_t a, std::int64_t b, std::int64_t* result) {
  if (a != b && a != 1 && b != 1 && !is_dyn(a) && !is_dyn(b)) return false;
  // 1 is stretched to the other size, and a known size says what a dyn one must be.
  *result = b != 1 && (a == 1 || is_dyn(a)) ? b : a;
  return true;
}

}  // namespace einkern::graph
