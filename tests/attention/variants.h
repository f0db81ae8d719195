// SPDX-License-Identifier: Apache-2.0
// How variants of attention are checked: both dtypes, both routes, and what their plans say.
#pragma once

#include <functional>

#include "../../attention/attention.h"
#include "fusion.h"
#include "oracle.h"

namespace einkern::test {

/// Heads of queries and keys, positions and features, at odd sizes.
struct VariantSizes {
  std::int64_t batch = 2, heads = 6, groups = 6, queries = 37, keys = 53, width = 10, values = 7;
};

/// Queries (b,h,q,d), keys (b,g,k,d) and values (b,g,k,e) that every float dtype holds exactly.
struct VariantArrays {
  VariantSizes n;
  Array q, k, v;
  explicit VariantArrays(const VariantSizes& sizes = {}, unsigned seed = 1);
};

/// Operands of a variant in one dtype: other arrays are converted by `tensor`.
struct VariantOperands {
  DType dtype;
  Expr q, k, v;
  Expr tensor(const Array& array) const { return to_tensor(array, dtype); }
};

/// Output, and perhaps weights and logsumexp, of a variant.
using Variant = std::function<AttentionResult(const VariantOperands&)>;

/// The output equals that of `want` in f32 and f64, fused and plain, and so do logsumexp and the
/// weights; the output alone, and with its logsumexp, runs as a streamed pass no step of which
/// writes as much as the scores have.
void check_variant(const char* name, const VariantArrays& arrays, const Variant& variant,
                   const OracleResult& want);

/// A dense mask or bias (b, h, q, k), by place.
Array dense(const VariantSizes& n, const std::function<double(const ScoreAt&)>& f);

}  // namespace einkern::test
