// SPDX-License-Identifier: Apache-2.0
// Attention as plain loops in double.
#include "oracle.h"

#include <cmath>

namespace einkern::test {
namespace {

using I = std::int64_t;

struct Position {
  I b, h, q, k;
};

bool is_visible(const Position& p, I queries, I keys, const OracleOptions& o) {
  if (o.mask && o.mask->at({p.b, p.h, p.q, p.k}) == 0) return false;
  if (o.bias && o.bias->at({p.b, p.h, p.q, p.k}) == -INFINITY) return false;
  if (o.lengths && static_cast<double>(p.k) >= o.lengths->at({p.b})) return false;
  if (o.segments && o.segments->first.at({p.b, p.q}) != o.segments->second.at({p.b, p.k})) {
    return false;
  }
  if (o.window) {
    const auto [left, right] = *o.window;
    if (left >= 0 && p.k < p.q - left) return false;
    if (right >= 0 && p.k > p.q + right) return false;
  }
  if (o.offset && p.k > p.q + *o.offset) return false;
  if (o.bottom_right) {
    const I length = o.lengths ? static_cast<I>(o.lengths->at({p.b})) : keys;
    if (p.k > p.q + length - queries) return false;
  }
  return true;
}

}  // namespace

OracleResult attention_oracle(const Array& q, const Array& k, const Array& v,
                              const OracleOptions& o) {
  const I batch = q.shape[0], heads = q.shape[1], queries = q.shape[2], width = q.shape[3];
  const I groups = k.shape[1], keys = k.shape[2], values = v.shape[3];
  OracleResult result{Array({batch, heads, queries, values}), Array({batch, heads, queries, keys}),
                      Array({batch, heads, queries})};
  const double scale = o.scale ? *o.scale : 1 / std::sqrt(static_cast<double>(width));
  for_each_index({batch, heads, queries}, [&](const Sizes& row) {
    const I b = row[0], h = row[1], i = row[2], g = h * groups / heads;
    std::vector<double> s(static_cast<std::size_t>(keys));
    std::vector<bool> seen(s.size());
    double top = o.sinks ? o.sinks->at({h}) : -INFINITY;
    bool nan = false;
    for (I j = 0; j < keys; ++j) {
      const auto at = static_cast<std::size_t>(j);
      seen[at] = is_visible({b, h, i, j}, queries, keys, o);
      if (!seen[at]) continue;
      double dot = 0;
      for (I d = 0; d < width; ++d) dot += q.at({b, h, i, d}) * k.at({b, g, j, d});
      dot *= scale;
      if (o.softcap) dot = *o.softcap * std::tanh(dot / *o.softcap);
      if (o.bias) dot += o.bias->at({b, h, i, j});
      s[at] = dot;
      nan = nan || std::isnan(dot);
      top = std::max(top, dot);
    }
    if (nan) top = NAN;
    double total = o.sinks ? std::exp(o.sinks->at({h}) - top) : 0;
    if (std::isinf(top) && top < 0) total = 0;
    for (I j = 0; j < keys; ++j) {
      const auto at = static_cast<std::size_t>(j);
      if (seen[at] && !(top == -INFINITY)) total += std::exp(s[at] - top);
    }
    result.logsumexp.at(row) = top == -INFINITY ? -INFINITY : top + std::log(total);
    for (I j = 0; j < keys; ++j) {
      const auto at = static_cast<std::size_t>(j);
      if (!seen[at] || top == -INFINITY) continue;
      const double weight = std::exp(s[at] - top) / total;
      result.weights.at({b, h, i, j}) = weight;
      for (I e = 0; e < values; ++e) {
        result.output.at({b, h, i, e}) += weight * v.at({b, g, j, e});
      }
    }
  });
  return result;
}

Array linear_oracle(const Array& x, const Array& w, const std::optional<Array>& bias) {
  Sizes shape = x.shape;
  shape.back() = w.shape[1];
  Array result(shape);
  for_each_index(shape, [&](const Sizes& i) {
    Sizes from = i;
    double total = bias ? bias->at({i.back()}) : 0;
    for (I d = 0; d < w.shape[0]; ++d) {
      from.back() = d;
      total += x.at(from) * w.at({d, i.back()});
    }
    result.at(i) = total;
  });
  return result;
}

Array heads_apart(const Array& x, I heads) {
  const I width = x.shape[2] / heads;
  Array result({x.shape[0], heads, x.shape[1], width});
  for_each_index(result.shape, [&](const Sizes& i) {
    result.at(i) = x.at({i[0], i[2], i[1] * width + i[3]});
  });
  return result;
}

Array heads_together(const Array& x) {
  Array result({x.shape[0], x.shape[2], x.shape[1] * x.shape[3]});
  for_each_index(x.shape, [&](const Sizes& i) {
    result.at({i[0], i[2], i[1] * x.shape[3] + i[3]}) = x.at(i);
  });
  return result;
}

}  // namespace einkern::test
