// SPDX-License-Identifier: Apache-2.0
// Problems of the attention benchmark: a line of a file as tensors, options and visible positions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "../attention/attention.h"
#include "../engine/tensor/tensor.h"

namespace einkern::tools {

/// One row: `name variant B Hq Hkv Nq Nk dk dv options`, tab-separated.
struct AttentionProblem {
  std::string name, variant;
  std::int64_t batch = 1, heads = 1, kv_heads = 1, queries = 1, keys = 1, dk = 1, dv = 1;
  std::optional<Causal> causal;
  std::optional<Window> window;
  std::optional<double> softcap;
  std::vector<std::int64_t> lengths;  // by batch entry
  std::optional<Tensor> mask;         // (q, k)
  bool alibi = false;
  bool positions_first = false;  // (batch, position, head, dim)
  std::optional<DType> stored;   // dtype of keys and values, where the row names one
  std::int64_t page = 0;         // keys of a page, when they lie in pages without an order

  /// Does query i of batch entry b attend to key j?
  bool visible(std::int64_t b, std::int64_t i, std::int64_t j) const;
  /// Multiply-adds of both contractions over visible positions, counted as two operations each.
  double visible_flops() const;
  /// Bytes of q, the output, and the keys and values that a query sees, each once; k and v in
  /// `dtype` unless the row names another.
  double bytes(DType dtype) const;
};

/// The rows of the set `attention` or of a file whose first line names the columns. IoError naming
/// the file and line.
std::vector<AttentionProblem> read_attention_problems(const std::string& source);

/// The operands of a problem, uniform in [-1, 1), and the lazy output (batch, head, query, dim). Of
/// f16 and bf16 only k and v are made, as where the row names their dtype; the rest is f32.
struct AttentionOperands {
  Tensor q, k, v;
  std::optional<Tensor> slopes;
  Expr output;

  AttentionOperands(const AttentionProblem& problem, DType dtype, std::uint64_t seed);
};

/// Compares sampled rows of `out` with a float64 loop over the definition. Returns the largest
/// error relative to max|V|; CheckFailed beyond 5e-6 (f32) or 1e-12 (f64).
double check_attention(const AttentionProblem& problem, const AttentionOperands& operands,
                       const Tensor& out);

}  // namespace einkern::tools
