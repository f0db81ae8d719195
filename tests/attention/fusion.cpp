// SPDX-License-Identifier: Apache-2.0
// The oracle of fused programs, and what their plans tell.
#include "fusion.h"

#include <cmath>

namespace einkern::test {
namespace {

/// The number behind `name` from `from` on, or -1; `from` moves behind it.
double number_after(const std::string& text, const std::string& name, std::size_t& from) {
  const std::size_t at = text.find(name, from);
  if (at == std::string::npos) return -1;
  from = at + name.size();
  return std::stod(text.substr(from, 32));
}

}  // namespace

Array short_noise(Sizes shape, unsigned seed) {
  Array result = noise(std::move(shape), seed);
  for (double& x : result.data) x = std::round(x * 1024) / 1024;
  return result;
}

PairArrays::PairArrays(const PairSizes& n, unsigned seed)
    : sizes(n),
      q(short_noise({n.batch, n.heads, n.queries, n.inner}, 3 * seed)),
      k(short_noise({n.batch, n.groups, n.keys, n.inner}, 3 * seed + 1)),
      v(short_noise({n.batch, n.groups, n.keys, n.columns}, 3 * seed + 2)) {}

Array pair_oracle(const PairArrays& arrays, const PairFormula& formula) {
  const PairSizes& n = arrays.sizes;
  Array out({n.batch, n.heads, n.queries, n.columns});
  for_each_index({n.batch, n.heads, n.queries}, [&](const Sizes& row) {
    const std::int64_t b = row[0], h = row[1], q = row[2], g = h * n.groups / n.heads;
    std::vector<double> weights;
    double top = -INFINITY;
    for (std::int64_t k = 0; k < n.keys; ++k) {
      double dot = 0;
      for (std::int64_t d = 0; d < n.inner; ++d) {
        dot += arrays.q.at({b, h, q, d}) * arrays.k.at({b, g, k, d});
      }
      weights.push_back(formula.score(dot, {b, h, q, k}));
      top = std::max(top, weights.back());
    }
    if (formula.normalise) {
      const double sink = formula.sink ? formula.sink({b, h, q, 0}) : -INFINITY;
      top = std::max(top, sink);
      double total = sink == -INFINITY ? 0 : std::exp(sink - top);
      for (double& w : weights) total += w = top == -INFINITY ? 0 : std::exp(w - top);
      const double empty = formula.nan_when_empty ? NAN : 0;
      for (double& w : weights) w = total == 0 ? empty : w / total;
    }
    for (std::int64_t k = 0; k < n.keys; ++k) {
      const double w = weights[static_cast<std::size_t>(k)] * formula.factor({b, h, q, k});
      for (std::int64_t e = 0; e < n.columns; ++e) {
        out.at({b, h, q, e}) += w * arrays.v.at({b, g, k, e});
      }
    }
  });
  return out;
}

std::string streaming_fault(const std::vector<Expr>& exprs, std::int64_t score_bytes) {
  const std::string plan = explain_json(exprs);
  if (plan.find("\"kind\": \"attend\"") == std::string::npos) return "no streamed pass";
  std::size_t at = 0;
  for (double written; (written = number_after(plan, "\"bytes_written\": ", at)) >= 0;) {
    if (written >= static_cast<double>(score_bytes)) return "a step writes all the scores";
  }
  return "";
}

}  // namespace einkern::test
