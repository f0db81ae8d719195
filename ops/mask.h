// SPDX-License-Identifier: Apache-2.0
// What hides keys from queries: causal, window, lengths, segments, dense masks and biases.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "../engine/graph/expr.h"
#include "index.h"

namespace einkern {

/// Where the diagonal of a causal mask ends when there are more keys than queries: the first query
/// at the first key (`k <= q`), or the last query at the last key (`k <= q + Nk - Nq`).
enum class Align { top_left, bottom_right };
inline constexpr Align top_left = Align::top_left;
inline constexpr Align bottom_right = Align::bottom_right;

/// How a causal mask is placed: an alignment, or an offset (`k <= q + offset`, may be negative).
struct Causal {
  Causal(Align alignment) : align(alignment) {}
  template <std::integral T>
  requires(!std::same_as<T, char> && !std::same_as<T, bool>) Causal(T diagonal)
      : offset(static_cast<std::int64_t>(diagonal)) {}

  Align align = Align::top_left;
  std::int64_t offset = 0;  // read when `align` is top_left
};

/// One argument of `mask`: truth values (true: attend), a bias, or a rule that waits for the sizes
/// of the scores.
class Mask {
 public:
  /// TypeError unless the dtype is bool.
  Mask(const Expr& visible);
  Mask(const Tensor& visible);

 private:
  enum class Kind { visible, bias, bottom_right };
  Mask(Kind kind, std::optional<Expr> expr, std::optional<Axis> q = {}, std::optional<Axis> k = {});
  /// Which elements of the scores `s` stay.
  BoolExpr resolve(const Expr& s) const;

  Kind kind_;
  std::optional<Expr> expr_;  // truth values, or the bias
  std::optional<Axis> q_, k_;

  friend Mask bias(const Expr& b);
  friend Mask causal(const Axis& q, const Axis& k, const Causal& placed);
  friend Expr mask(const Expr& s, const std::vector<Mask>& masks);
};

/// Visible where k <= q, by position along the two axes: top-left.
BoolExpr causal(const Axis& q, const Axis& k);
/// The same by place: the last axis is k, the one before it q.
BoolExpr causal();
/// Visible where k <= q + offset, for any integer.
BoolExpr causal_by(const Axis& q, const Axis& k, std::int64_t offset);
template <std::integral T>
requires(!std::same_as<T, char> && !std::same_as<T, bool>) BoolExpr
    causal(const Axis& q, const Axis& k, T offset) {
  return causal_by(q, k, static_cast<std::int64_t>(offset));
}
/// Placed by an alignment, `Align::bottom_right` included, which takes the sizes from the scores
/// that it is given to; therefore an argument of `mask` only.
Mask causal(const Axis& q, const Axis& k, const Causal& placed);

/// Visible where q - left <= k <= q + right; -1 is open. W tokens that include the token itself:
/// `left = W - 1`. Errors: ValueError for a bound below -1.
BoolExpr window(const Axis& q, const Axis& k, std::int64_t left, std::int64_t right);

/// Visible where k < lengths[b]: `lengths` holds one integer for every entry of the axis labelled
/// `b`. Errors: TypeError unless it is an integer, ShapeError unless it has one axis.
BoolExpr lengths(const Expr& lengths, std::string_view b, const Axis& k);

/// Visible where both belong to the same segment: segments_q[..., q] == segments_k[..., k].
/// Labelled operands align by their labels (`segments(ids["bq"], ids["bk"])`); unlabelled ones from
/// the right, as
/// (..., q, 1) and (..., 1, k). Errors: ShapeError for a scalar, or when only one of them is
/// labelled.
BoolExpr segments(const Expr& segments_q, const Expr& segments_k);

/// A bias for `mask`: added to the scores; where it is -inf it hides.
Mask bias(const Expr& b);

/// Scores under masks: every bias is added, then -inf is selected wherever one of the masks is
/// false or one of the biases is -inf, whatever the score holds there. `mask(s, causal("q", "k"),
/// bias(b))`: where(k <= q, where(b == -inf, -inf, s + b), -inf). Errors: ShapeError when one does
/// not align with the scores.
Expr mask(const Expr& s, const std::vector<Mask>& masks);
template <class... M>
requires(sizeof...(M) > 0 && (std::convertible_to<const M&, Mask> && ...)) Expr
    mask(const Expr& s, const M&... masks) {
  return mask(s, std::vector<Mask>{Mask(masks)...});
}

}  // namespace einkern
