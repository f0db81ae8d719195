// SPDX-License-Identifier: Apache-2.0
// Linear attention, retention and gated linear attention, as their formulas.
#include "linear.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "../engine/base/error.h"
#include "../engine/graph/build.h"
#include "../engine/tensor/create.h"
#include "../ops/ops.h"
#include "project.h"

namespace einkern {
namespace {

void check(const char* function, const Expr& q, const Expr& k, const Expr& v, bool causal) {
  const auto refuse = [function](const char* what, const char* first, const Expr& a,
                                 const char* second, const Expr& b) {
    fail<ShapeError>(fmt::format("{}: {} of {} {} and {} {} disagree", function, what, first,
                                 to_string(a.shape()), second, to_string(b.shape())));
  };
  const std::size_t rank = q.rank();
  if (rank < 2) {
    fail<ShapeError>(fmt::format("{}: q {} needs a position and a feature axis", function,
                                 to_string(q.shape())));
  }
  if (k.rank() != rank) refuse("ranks", "q", q, "k", k);
  if (v.rank() != rank) refuse("ranks", "q", q, "v", v);
  for (std::size_t d = 0; d + 2 < rank; ++d) {
    const std::string axis = fmt::format("axis {}", d);
    if (k.shape()[d] != q.shape()[d]) refuse(axis.c_str(), "q", q, "k", k);
    if (v.shape()[d] != q.shape()[d]) refuse(axis.c_str(), "q", q, "v", v);
  }
  if (k.shape()[rank - 1] != q.shape()[rank - 1]) refuse("features", "q", q, "k", k);
  if (v.shape()[rank - 2] != k.shape()[rank - 2]) refuse("positions", "k", k, "v", v);
  if (causal && k.shape()[rank - 2] != q.shape()[rank - 2]) refuse("positions", "q", q, "k", k);
  if (q.shape()[rank - 2] < 0 || q.shape()[rank - 1] < 0) {
    fail<ShapeError>(fmt::format("{}: positions and features must be known", function));
  }
}

Expr features_of(const Expr& x, FeatureMap map) {
  switch (map) {
    case FeatureMap::elu:
      return where(x > 0.0, x + 1.0, exp(minimum(x, 0.0)));
    case FeatureMap::relu:
      return relu(x);
    case FeatureMap::identity:
      break;
  }
  return x;
}

/// Zeros of the shape of x, with `size` positions along the axis at `from_right`.
Expr zeros_like(const Expr& x, std::size_t from_right, std::int64_t size) {
  Expr zero = 0.0;
  for (std::size_t d = x.rank(); d-- > 0;) {
    zero = expand(zero, "", d + from_right == x.rank() ? size : x.shape()[d]);
  }
  return zero;
}

/// (..., h, n, f) as (..., h, t, i, f): chunks of `chunk` positions, the last one filled with
/// zeros.
Expr in_chunks(const Expr& x, std::int64_t chunk, const char* position) {
  const std::int64_t n = x.shape()[x.rank() - 2], rest = (chunk - n % chunk) % chunk;
  const Expr whole = rest == 0 ? x : concat({x, zeros_like(x, 2, rest)}, -2);
  const Expr parted = split(whole, -2, {"", ""}, {-1, chunk});
  std::vector<std::string> labels(parted.rank());
  labels[parted.rank() - 2] = position;
  if (parted.rank() > 3) labels[parted.rank() - 4] = "h";
  return graph::relabel("linear_attention", parted, labels, false);
}

/// o[n] = sum_{m <= n} decay^(n - m) (q[n] . k[m]) v[m]; the decay is a number or named over h, or
/// absent for 1.
Expr causal_product(const Expr& q, const Expr& k, const Expr& v, const std::optional<Expr>& decay,
                    std::int64_t most) {
  const std::int64_t n = q.shape()[q.rank() - 2];
  if (n == 0) return einsum("...nd,...nd,...ne->...ne", q, k, v);
  const std::int64_t chunk = std::min(most, n);
  const Expr qs = in_chunks(q, chunk, "i"), ks = in_chunks(k, chunk, "j"),
             vs = unnamed(in_chunks(v, chunk, "j"));
  const auto decayed = [&](const Expr& x, const Expr& steps) {
    return decay ? x * pow(*decay, steps) : x;
  };
  // Within a chunk: a masked product, streamed.
  Expr s = einsum("...tid,...tjd->...tij", unnamed(qs), unnamed(ks));
  std::vector<std::string> labels(s.rank());
  labels[s.rank() - 2] = "i";
  labels[s.rank() - 1] = "j";
  if (s.rank() > 3) labels[s.rank() - 4] = "h";
  s = graph::relabel("linear_attention", s, labels, false);
  s = where(index("j") <= index("i"), decayed(s, index("i") - index("j")), 0.0);
  const Expr near = einsum("...tij,...tje->...tie", unnamed(s), vs);
  Expr o = near;
  if (chunk < n) {
    // Between chunks: what each leaves behind, decayed to its end, and the state before it.
    const Expr left = unnamed(decayed(ks, chunk - 1 - index("j")));
    Expr kept = einsum("...tjd,...tje->...tde", left, vs);
    std::optional<Expr> gate;
    if (decay) {
      gate = pow(*decay, chunk);
      if (gate->rank() == 1) {  // (h) meets (..., h, t, d, e)
        for (int axis = 0; axis < 3; ++axis) gate = graph::expand("", *gate, gate->rank(), "", 1);
        gate = unnamed(*gate);
      }
    }
    kept = scan(kept, -3, gate);
    const Expr before = concat({zeros_like(kept, 3, 1), slice(kept, -3, 0, -1)}, -3);
    const Expr far = unnamed(decayed(qs, index("i") + 1));
    o = near + einsum("...tid,...tde->...tie", far, before);
  }
  return slice(merge(o, {-3, -2}), -2, 0, n);
}

double scale_of(const Expr& q, const std::optional<double>& scale) {
  const auto width = static_cast<double>(std::max<std::int64_t>(1, q.shape().back()));
  return scale.value_or(1 / std::sqrt(width));
}

void check_chunk(const char* function, std::int64_t chunk) {
  if (chunk < 1)
    fail<ValueError>(fmt::format("{}: chunk is {}; it must be at least 1", function, chunk));
}

}  // namespace

Expr linear_attention(const Expr& q, const Expr& k, const Expr& v, const LinearOptions& options) {
  constexpr double kLeast = 1e-6;
  check("linear_attention", q, k, v, options.causal);
  check_chunk("linear_attention", options.chunk);
  const Expr fq = features_of(unnamed(q), options.features);
  const Expr fk = features_of(unnamed(k), options.features);
  // One column more sums the weights themselves.
  const Expr ones = zeros_like(v, 1, 1) + 1.0;
  const Expr values = options.normalise ? concat({unnamed(v), ones}, -1) : unnamed(v);
  const Expr o = options.causal
                     ? causal_product(fq, fk, values, {}, options.chunk)
                     : einsum("...qd,...de->...qe", fq, einsum("...kd,...ke->...de", fk, values));
  const Expr y = options.normalise ? slice(o, -1, 0, -1) / (slice(o, -1, -1) + kLeast) : o;
  return labelled_as(y, q, v.labels()[v.rank() - 1]);
}

Expr retention(const Expr& q, const Expr& k, const Expr& v, const Expr& decay,
               const std::optional<double>& scale, std::int64_t chunk) {
  constexpr const char* kName = "retention";
  check(kName, q, k, v, true);
  check_chunk(kName, chunk);
  if (decay.rank() > 1 ||
      (decay.rank() == 1 && (q.rank() < 3 || decay.shape()[0] != q.shape()[q.rank() - 3]))) {
    fail<ShapeError>(fmt::format("{}: decay {} is neither a number nor one for each head of q {}",
                                 kName, to_string(decay.shape()), to_string(q.shape())));
  }
  const Expr by = decay.rank() == 0 ? decay : named(unnamed(decay), "h");
  const Expr o = causal_product(unnamed(q) * scale_of(q, scale), unnamed(k), unnamed(v), by, chunk);
  return labelled_as(o, q, v.labels()[v.rank() - 1]);
}

Tensor retention_decays(std::int64_t heads, DType dtype) {
  if (heads < 1) fail<ValueError>(fmt::format("retention_decays: {} heads", heads));
  const Tensor decays = empty({heads}, f64);
  for (std::int64_t i = 0; i < heads; ++i) {
    decays.data<double>()[i] = 1 - std::exp2(-5 - static_cast<double>(i));
  }
  return decays.astype(dtype);
}

Expr gated_linear_attention(const Expr& q, const Expr& k, const Expr& v, const Expr& gate,
                            const std::optional<double>& scale) {
  check("gated_linear_attention", q, k, v, true);
  const Expr products = einsum("...nd,...ne->...nde", k, v);
  const Expr decay = graph::expand("gated_linear_attention", unnamed(gate), gate.rank(), "", 1);
  const Expr states =
      graph::scan("gated_linear_attention", unnamed(products), decay, products.rank() - 3);
  const Expr o = einsum("...nd,...nde->...ne", unnamed(q) * scale_of(q, scale), states);
  return labelled_as(o, q, v.labels()[v.rank() - 1]);
}

}  // namespace einkern
