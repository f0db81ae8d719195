// SPDX-License-Identifier: Apache-2.0
// Paged attention: pages in the order of the table, then attention with lengths; the streamed pass
// reads them through the table.
#include "paged.h"

#include <fmt/format.h>

#include "../../engine/base/error.h"
#include "../../engine/graph/build.h"
#include "../../ops/ops.h"
#include "../attend.h"
#include "../visibility.h"

namespace einkern {
namespace {

constexpr const char* kPagedAttention = "paged_attention";

void check(const Expr& q, const Pages& p) {
  const auto fits = [](bool holds, const char* first, const Expr& a, const char* second,
                       const Expr& b) {
    if (!holds) {
      fail<ShapeError>(fmt::format("{}: {} {} and {} {} disagree", kPagedAttention, first,
                                   to_string(a.shape()), second, to_string(b.shape())));
    }
  };
  fits(q.rank() == 4 && p.keys.rank() == 4, "q", q, "keys", p.keys);
  fits(p.values.rank() == 4 && p.values.shape()[0] == p.keys.shape()[0] &&
           p.values.shape()[1] == p.keys.shape()[1] && p.values.shape()[2] == p.keys.shape()[2],
       "keys", p.keys, "values", p.values);
  fits(p.table.rank() == 2 && p.table.shape()[0] == q.shape()[0], "q", q, "table", p.table);
  fits(p.lengths.rank() == 1 && p.lengths.shape()[0] == q.shape()[0], "q", q, "lengths", p.lengths);
}

}  // namespace

AttentionResult paged_attention(const Expr& q, const Pages& pages,
                                const AttentionOptions& options) {
  refuse_weights(kPagedAttention, options);
  check(q, pages);
  if (options.lengths)
    fail<ValueError>(fmt::format("{}: lengths are those of the pages", kPagedAttention));
  const std::int64_t size = pages.keys.shape()[2];
  // What no token needs is read from page 0: a table may hold anything there.
  const Expr table =
      unnamed(where(index("t") * size < named(unnamed(pages.lengths), "b"),
                    graph::relabel(kPagedAttention, pages.table, {"b", "t"}, false), 0));
  const auto gathered = [&](const Expr& x) {  // (b, g, blocks size, d)
    const Expr rows = take(permute(unnamed(x), {1, 0, 2, 3}), table, 1);
    return merge(permute(rows, {1, 0, 2, 3, 4}), {2, 3});
  };
  AttentionOptions with = options;
  with.lengths = pages.lengths;
  return attend(kPagedAttention, q, gathered(pages.keys), gathered(pages.values), with);
}

}  // namespace einkern
