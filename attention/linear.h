// SPDX-License-Identifier: Apache-2.0
// Attention without a softmax: kernels of features, retention and gated recurrences.
#pragma once

#include <cstdint>
#include <optional>

#include "../engine/graph/expr.h"

namespace einkern {

// All take queries and keys (..., n, d) and values (..., n, e) with the same leading axes, n and
// d known, and give (..., n, e). Errors: ShapeError naming what disagrees, ValueError for a chunk
// below 1.
//
// `chunk` positions are multiplied at once: within a chunk as a masked product that is never
// stored, between chunks by the state S (d, e), one for each chunk, in a scan. 1 is the recurrence
// itself, which stores a state for each position; n or more is one masked product. Sums are the
// same in another order.

/// Features of queries and keys whose products stand for exponentials.
enum class FeatureMap {
  identity,
  elu,   // elu(x) + 1: x + 1 above 0, exp(x) below
  relu,  // max(x, 0)
};

/// Options of linear attention.
struct LinearOptions {
  FeatureMap features = FeatureMap::elu;
  bool causal = false;
  bool normalise = true;  // divide by the sum of the weights (1e-6 keeps from dividing by 0)
  std::int64_t chunk = 64;
};

/// o[q] = f(q[q]) S / (f(q[q]) . z),  S = sum_k f(k[k])^T v[k],  z = sum_k f(k[k]), over all keys,
/// or over those with k <= q. Cost: linear in n. Without `causal` there may be other numbers of
/// keys than of queries. Source: Katharopoulos et al., "Transformers are RNNs", 2020.
Expr linear_attention(const Expr& q, const Expr& k, const Expr& v,
                      const LinearOptions& options = {});

/// o[q] = sum_{k <= q} decay^(q - k) (q[q] . k[k] scale) v[k]: S = decay S + k^T v. `decay` is a
/// number for all, or (h), one for each head, between 0 and 1. The scale is 1 / sqrt(d) unless
/// given. Source: Sun et al., "Retentive network", 2023, section 2.1 (without its rotations, group
/// norm and gate, which are `rope`, a norm and a product).
Expr retention(const Expr& q, const Expr& k, const Expr& v, const Expr& decay,
               const std::optional<double>& scale = {}, std::int64_t chunk = 64);

/// One decay for each head, as published: 1 - 2^(-5 - i), i = 0 .. heads - 1.
Tensor retention_decays(std::int64_t heads, DType dtype = f32);

/// S[t] = gate[t]^T S[t - 1] + k[t]^T v[t],  o[t] = q[t] scale S[t], the gate (..., n, d) or what
/// broadcasts to it: one decay for each feature of the keys and position. The scale is 1 / sqrt(d)
/// unless given. The recurrence itself: it stores a state (d, e) for each position. Source: Yang et
/// al., "Gated linear attention transformers with hardware-efficient training", 2023, section 3.
Expr gated_linear_attention(const Expr& q, const Expr& k, const Expr& v, const Expr& gate,
                            const std::optional<double>& scale = {});

}  // namespace einkern
