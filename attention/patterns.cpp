// SPDX-License-Identifier: Apache-2.0
// Patterns of visibility as arithmetic on positions.
#include "patterns.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "../engine/base/error.h"
#include "../engine/graph/build.h"
#include "../ops/ops.h"

namespace einkern {
namespace {

void check_size(const char* function, const char* name, std::int64_t value, std::int64_t least) {
  if (value < least) {
    fail<ValueError>(
        fmt::format("{}: {} is {}; it must be at least {}", function, name, value, least));
  }
}

void check_bool(const char* function, const char* name, const Expr& x) {
  if (x.dtype() != boolean) {
    fail<TypeError>(fmt::format("{}: {} is {}, not bool", function, name, name_of(x.dtype())));
  }
}

}  // namespace

BoolExpr prefix_lm(const Expr& prefix) {
  if (!is_integer(prefix.dtype())) {
    fail<TypeError>(
        fmt::format("prefix_lm: prefix is {}, not an integer", name_of(prefix.dtype())));
  }
  return index("k") <= index("q") || index("k") < prefix;
}

BoolExpr dilated(std::int64_t left, std::int64_t right, std::int64_t step) {
  check_size("dilated", "step", step, 1);
  check_size("dilated", "left", left, -1);
  check_size("dilated", "right", right, -1);
  // Beyond all positions there is no bound.
  const auto reach = [step](std::int64_t count) {
    return count < 0 || count > INT64_MAX / step ? -1 : count * step;
  };
  return window("q", "k", reach(left), reach(right)) && mod(index("q") - index("k"), step) == 0;
}

BoolExpr local_global(std::int64_t left, std::int64_t right, std::int64_t globals) {
  check_size("local_global", "globals", globals, 0);
  return window("q", "k", left, right) || index("q") < globals || index("k") < globals;
}

BoolExpr local_global(std::int64_t left, std::int64_t right, const Expr& global_q,
                      const Expr& global_k) {
  check_bool("local_global", "global_q", global_q);
  check_bool("local_global", "global_k", global_k);
  return window("q", "k", left, right) || BoolExpr(global_q) || BoolExpr(global_k);
}

BoolExpr block_local(std::int64_t size, std::int64_t before) {
  check_size("block_local", "size", size, 1);
  check_size("block_local", "before", before, 0);
  const Expr own = floordiv(index("q"), size), seen = floordiv(index("k"), size);
  return seen <= own && own - seen <= before;
}

BoolExpr block_sparse(const Expr& blocks, std::int64_t size) {
  check_bool("block_sparse", "blocks", blocks);
  check_size("block_sparse", "size", size, 1);
  if (blocks.rank() < 2 || blocks.rank() > 4) {
    fail<ShapeError>(fmt::format("block_sparse: blocks {} need axes of queries and of keys",
                                 to_string(blocks.shape())));
  }
  const Expr spread = repeat(repeat(unnamed(blocks), -2, size), -1, size);
  std::vector<std::string> labels = {"b", "h", "q", "k"};
  labels.erase(labels.begin(), labels.end() - static_cast<std::ptrdiff_t>(blocks.rank()));
  return BoolExpr(graph::relabel("block_sparse", spread, labels, true));
}

}  // namespace einkern
