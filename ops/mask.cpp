// SPDX-License-Identifier: Apache-2.0
// Masks as comparisons of positions, and their application to scores as selections of -inf.
#include "mask.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "../engine/base/error.h"
#include "../engine/graph/build.h"
#include "elementwise.h"

namespace einkern {
namespace {

using map::Op;

/// Size of an axis of the scores, which must be known by now.
std::int64_t size_of_axis(const Expr& s, const Axis& axis) {
  const std::int64_t size = s.shape()[graph::resolve_axes("causal", s, {axis})[0]];
  if (size < 0) {
    fail<ShapeError>(
        "causal: bottom_right needs sizes that are known when the expression is built");
  }
  return size;
}

/// An axis of truth that covers any size, for a bound that is open on both sides.
BoolExpr anywhere(const Axis& axis) { return index(axis) >= 0; }

bool is_labelled(const Expr& x) {
  const std::vector<std::string> labels = x.labels().to_vector(x.rank());
  return std::none_of(labels.begin(), labels.end(), [](const auto& l) { return l.empty(); });
}

Expr by_name(const char* function, const Expr& x) {
  return graph::relabel(function, x, x.labels().to_vector(x.rank()), true);
}

}  // namespace

Mask::Mask(Kind kind, std::optional<Expr> expr, std::optional<Axis> q, std::optional<Axis> k)
    : kind_(kind), expr_(std::move(expr)), q_(std::move(q)), k_(std::move(k)) {}

Mask::Mask(const Expr& visible) : kind_(Kind::visible), expr_(visible) {
  if (visible.dtype() != boolean) {
    fail<TypeError>(fmt::format("mask: a mask is {}, not bool; give numbers to add as bias(...)",
                                name_of(visible.dtype())));
  }
}

Mask::Mask(const Tensor& visible) : Mask(Expr(visible)) {}

BoolExpr Mask::resolve(const Expr& s) const {
  switch (kind_) {
    case Kind::visible:
      return BoolExpr(*expr_);
    case Kind::bias:
      return *expr_ != -inf;
    case Kind::bottom_right:
      break;
  }
  return causal_by(*q_, *k_, size_of_axis(s, *k_) - size_of_axis(s, *q_));
}

BoolExpr causal(const Axis& q, const Axis& k) { return index(k) <= index(q); }

// Positions are subtracted, so that an offset or a bound of any size cannot overflow.
BoolExpr causal_by(const Axis& q, const Axis& k, std::int64_t offset) {
  return index(k) - index(q) <= offset;
}

BoolExpr causal() { return causal(-2, -1); }

Mask causal(const Axis& q, const Axis& k, const Causal& placed) {
  if (placed.align == Align::bottom_right) return {Mask::Kind::bottom_right, {}, q, k};
  return placed.offset == 0 ? causal(q, k) : causal_by(q, k, placed.offset);
}

BoolExpr window(const Axis& q, const Axis& k, std::int64_t left, std::int64_t right) {
  if (left < -1 || right < -1) {
    fail<ValueError>(
        fmt::format("window: bounds are {} and {}; -1 is open, below is not a bound", left, right));
  }
  const BoolExpr from = left < 0 ? anywhere(q) && anywhere(k) : index(q) - index(k) <= left;
  return right < 0 ? from : from && index(k) - index(q) <= right;
}

BoolExpr lengths(const Expr& lengths, std::string_view b, const Axis& k) {
  if (!is_integer(lengths.dtype())) {
    fail<TypeError>(fmt::format("lengths: lengths are {}, not integers", name_of(lengths.dtype())));
  }
  if (lengths.rank() != 1) {
    fail<ShapeError>(fmt::format("lengths: lengths have shape {}; one axis is needed, for '{}'",
                                 to_string(lengths.shape()), b));
  }
  return index(k) < graph::relabel("lengths", lengths, {std::string(b)}, true);
}

BoolExpr segments(const Expr& segments_q, const Expr& segments_k) {
  const std::size_t q = segments_q.rank(), k = segments_k.rank();
  if (q == 0 || k == 0) {
    fail<ShapeError>("segments: a segment number for every position is needed, not a scalar");
  }
  if (is_labelled(segments_q) && is_labelled(segments_k)) {
    return by_name("segments", segments_q) == by_name("segments", segments_k);
  }
  if (!segments_q.labels().empty() || !segments_k.labels().empty()) {
    fail<ShapeError>("segments: either all axes of both operands carry labels, or none does");
  }
  return graph::expand("segments", segments_q, q, "", 1) ==
         graph::expand("segments", segments_k, k - 1, "", 1);
}

Mask bias(const Expr& b) {
  if (b.dtype() == boolean) {
    fail<TypeError>("bias: truth values cannot be added; give them to mask as they are");
  }
  return {Mask::Kind::bias, b};
}

Expr mask(const Expr& s, const std::vector<Mask>& masks) {
  Expr scores = s;
  for (const Mask& m : masks) {
    if (m.kind_ == Mask::Kind::bias) {
      scores = graph::elementwise("mask", Op::add, {scores, *m.expr_});
    }
  }
  for (const Mask& m : masks) {
    // Integers are never -inf.
    if (m.kind_ == Mask::Kind::bias && !is_float(m.expr_->dtype())) continue;
    scores = graph::elementwise("mask", Op::select, {m.resolve(s), scores, -inf});
  }
  return scores;
}

}  // namespace einkern
