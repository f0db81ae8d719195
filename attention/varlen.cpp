// SPDX-License-Identifier: Apache-2.0
// Packed sequences as segments, and positions within them.
#include "varlen.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "../engine/base/error.h"
#include "../engine/graph/build.h"
#include "../ops/ops.h"
#include "attend.h"
#include "visibility.h"

namespace einkern {
namespace {

constexpr const char* kVarlen = "varlen_attention";

/// Of every position: which sequence it belongs to, its place in there, and how long that is.
struct Places {
  Expr sequence, place, length;
};

Places places_of(const char* name, const Expr& offsets, std::int64_t positions) {
  if (!is_integer(offsets.dtype())) {
    fail<TypeError>(fmt::format("{}: offsets of {} are {}, not integers", kVarlen, name,
                                name_of(offsets.dtype())));
  }
  if (offsets.rank() != 1 || (offsets.shape()[0] >= 0 && offsets.shape()[0] < 2)) {
    fail<ShapeError>(fmt::format("{}: offsets of {} have shape {}; (sequences + 1) are needed",
                                 kVarlen, name, to_string(offsets.shape())));
  }
  if (positions < 0) {
    fail<ShapeError>(fmt::format("{}: the number of {} must be known", kVarlen, name));
  }
  const Expr checked = graph::bounded(
      unnamed(offsets), 0, positions,
      fmt::format("{}: an offset of {} is {{}}, but there are {}", kVarlen, name, positions));
  // Sequence: how many ends lie at or before the position.
  const Expr ends = slice(checked, 0, 1);
  const Expr position = expand(Expr(0), "", positions) + index(-1);
  const Expr passed = graph::expand(kVarlen, ends, 1, "", 1) <= position;
  const Expr sequence = sum(passed, 0);
  // Behind the last end there is one sequence more, which begins there.
  const Expr begin = take(checked, sequence, 0);
  const Expr end = take(concat({ends, slice(ends, 0, -1)}, 0), sequence, 0);
  return {sequence, position - begin, end - begin};
}

}  // namespace

AttentionResult varlen_attention(const Expr& q, const Expr& k, const Expr& v, const Packed& offsets,
                                 const AttentionOptions& options) {
  refuse_weights(kVarlen, options);
  if (q.rank() < 2 || k.rank() < 2) {
    fail<ShapeError>(fmt::format("{}: q {} and k {} need a position and a feature axis", kVarlen,
                                 to_string(q.shape()), to_string(k.shape())));
  }
  if (options.segments || options.lengths) {
    fail<ValueError>(fmt::format("{}: option {} is given, but offsets say where sequences are",
                                 kVarlen, options.segments ? "segments" : "lengths"));
  }
  const Places at_q = places_of("q", offsets.q, q.shape()[q.rank() - 2]);
  const Places at_k = places_of("k", offsets.k.value_or(offsets.q), k.shape()[k.rank() - 2]);
  const auto over = [](const Expr& x, const char* label) { return named(x, label); };
  if (offsets.k && offsets.k->shape() != offsets.q.shape()) {
    fail<ShapeError>(fmt::format("{}: offsets of q {} and of k {} disagree", kVarlen,
                                 to_string(offsets.q.shape()), to_string(offsets.k->shape())));
  }
  const Expr padding = offsets.q.shape()[0] - 1;  // the number behind the last sequence
  std::vector<Mask> masks{over(at_q.sequence, "q") == over(at_k.sequence, "k"),
                          over(at_k.sequence, "k") < padding};

  AttentionOptions rest = options;
  rest.causal.reset();
  rest.window.reset();
  // How far a key lies behind the query, both counted within their sequence.
  const Expr ahead = over(at_k.place, "k") - over(at_q.place, "q");
  if (options.window) {
    const auto [left, right] = *options.window;
    window("q", "k", left, right);  // refuses bounds
    if (left >= 0) masks.emplace_back(ahead >= -left);
    if (right >= 0) masks.emplace_back(ahead <= right);
  }
  if (options.causal && options.causal->align == Align::bottom_right) {
    masks.emplace_back(ahead <= over(at_k.length, "k") - over(at_q.length, "q"));
  } else if (options.causal) {
    masks.emplace_back(ahead <= options.causal->offset);
  }
  return attend(kVarlen, q, k, v, rest, masks);
}

}  // namespace einkern
