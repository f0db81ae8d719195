// SPDX-License-Identifier: Apache-2.0
// A table of programs that stream: their operands, their formulas, and the check of one.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "fusion.h"

namespace einkern::test {

/// The operands of a form.
struct Operands {
  PairSizes n;
  Expr q, k, v;  // (b,h,q,d), (b,g,k,d), (b,g,k,e)
  std::map<std::string, Tensor> more;

  const Tensor& operator[](const std::string& name) const { return more.at(name); }
  /// The scaled scores of as many heads of keys as of queries.
  Expr scores() const;
  /// The end of most forms.
  Expr sum(const Expr& weights) const;
};

/// More operands, by name.
struct Extras {
  Array slope, bias, key_bias, gate, mask, additive, lengths, sinks, width;
  explicit Extras(const PairSizes& n);
};

struct Form {
  std::string name;
  std::function<Expr(const Operands&)> build;
  std::function<PairFormula(const Extras&)> formula;
  PairSizes sizes = {};
};

/// A formula that differs from softmax attention in its scores only.
PairFormula scored(std::function<double(double, const ScoreAt&)> score);
/// Softmax of half the dot products; with rows of NaN where it is written by hand.
PairFormula half(const Extras&);
PairFormula half_by_hand(const Extras&);
/// The same where k <= q, and where k <= q - 2: then the first two queries see nothing.
PairFormula causal_half(const Extras&);
PairFormula late(const Extras&);
PairFormula late_by_hand(const Extras&);
Expr late_scores(const Operands& x);

/// Six heads of queries that share two of keys, and their dot products (b,g,r,q,k).
inline const PairSizes kGrouped{.heads = 6, .groups = 2};
Expr grouped(const Operands& x, const Expr& q);

/// Builds a form in both dtypes, and in f32 over keys and values in f16: it streams, and equals the
/// oracle on both routes.
void check_form(const Form& form);

}  // namespace einkern::test
