// SPDX-License-Identifier: Apache-2.0
// The lazy handle that users hold: an expression, its evaluation, and einsum.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "../base/dtype.h"
#include "../plan/path.h"
#include "../tensor/tensor.h"

namespace einkern {

namespace graph {
struct Node;
using NodePtr = std::shared_ptr<const Node>;
}  // namespace graph

/// A cheap, immutable, shared handle to a node of a lazy expression. Nothing is computed until it
/// is converted to a Tensor or given to `eval`; evaluating twice computes twice.
class Expr {
 public:
  /// A leaf: the tensor's elements as they are when the expression is evaluated.
  Expr(const Tensor& tensor);
  /// A weak scalar: never widens the dtype of what it meets.
  template <std::floating_point T>
  Expr(T value) : Expr(static_cast<double>(value)) {}
  Expr(double value);
  template <std::integral T>
  requires(!std::same_as<T, char> && !std::same_as<T, bool>) Expr(T value)
      : Expr(static_cast<std::int64_t>(value), Integer{}) {}
  explicit Expr(graph::NodePtr node) : node_(std::move(node)) {}

  /// Computes the value: a new contiguous tensor that aliases nothing and keeps the labels. Errors
  /// that depend on data (integer overflow, a length out of range) are raised here.
  operator Tensor() const;

  DType dtype() const;
  std::size_t rank() const;
  /// Sizes; ShapeError while an axis is open (`index("k")` that has met no axis k). Sizes that are
  /// `dyn` are negative.
  const Shape& shape() const;
  const Labels& labels() const;

  /// The same elements under the labels of an einsum term, aligning by name (a named term).
  Expr operator[](std::string_view term) const;

  const graph::NodePtr& node() const noexcept { return node_; }

 protected:
  struct Integer {};
  Expr(std::int64_t value, Integer);
  graph::NodePtr node_;
};

/// An expression of truth values. Comparing one (`0 <= i < n`) does not compile.
class BoolExpr : public Expr {
 public:
  /// TypeError unless the dtype is bool.
  explicit BoolExpr(const Expr& expr);
  explicit BoolExpr(const Tensor& tensor);
};

template <class Text>
requires(std::convertible_to<const Text&, std::string_view> &&
         !std::integral<Text>) Expr Tensor::operator[](const Text& term) const {
  return Expr(*this)[std::string_view(term)];
}

/// How `einsum` contracts: the order of more than two operands.
struct EinsumOptions {
  PathChoice path = {};
};

/// Sum of products in the language of NumPy's einsum, extended (docs/language.md):
/// `einsum("bhqd,bhkd->bhqk", q, k)`: out[b,h,q,k] = sum_d q[b,h,q,d] k[b,h,k,d].
/// Operands are read by position whatever labels they carry; the result is labelled from the
/// output. Errors: SyntaxError with carets, ShapeError naming label, operands and sizes, TypeError
/// for bool.
Expr einsum(std::string_view equation, std::initializer_list<Expr> operands,
            const EinsumOptions& options = {});
Expr einsum(std::string_view equation, std::span<const Expr> operands,
            const EinsumOptions& options = {});
template <class... Operands>
requires(std::convertible_to<const Operands&, Expr>&&...) Expr
    einsum(std::string_view equation, const Operands&... operands) {
  const std::array<Expr, sizeof...(Operands)> given{Expr(operands)...};
  return einsum(equation, std::span<const Expr>(given));
}
/// The same from integer labels (`kEllipsis` for `...`); `output` absent: implicit.
Expr einsum(const std::vector<std::vector<std::int64_t>>& inputs,
            const std::optional<std::vector<std::int64_t>>& output,
            const std::vector<Expr>& operands, const EinsumOptions& options = {});

/// Options of `einsum_into`.
struct IntoOptions {
  double alpha = 1;
  double beta = 0;  // 0: `out` is never read
  PathChoice path = {};
  int threads = 0;  // as in EvalOptions
};

/// out = alpha * einsum(...) + beta * out, into any strided tensor of the right shape and dtype. An
/// `out` that overlaps an operand is handled. Errors: as einsum; ShapeError or TypeError for `out`,
/// ValueError for one that is read-only or overlaps itself.
void einsum_into(const Tensor& out, std::string_view equation, std::span<const Expr> operands,
                 const IntoOptions& options = {});
inline void einsum_into(const Tensor& out, std::string_view equation,
                        std::initializer_list<Expr> operands, const IntoOptions& options = {}) {
  einsum_into(out, equation, std::span<const Expr>(operands.begin(), operands.size()), options);
}

/// Options of `eval`.
struct EvalOptions {
  bool fuse = true;  // false: every node runs plainly; same answers
  int threads = 0;   // 0: docs/route.md, "Threads"
};

/// Computes several expressions together: equal sub-expressions once.
std::vector<Tensor> eval(const std::vector<Expr>& exprs, const EvalOptions& options = {});
inline std::vector<Tensor> eval(std::initializer_list<Expr> exprs,
                                const EvalOptions& options = {}) {
  return eval(std::vector<Expr>(exprs), options);
}
/// `auto [o, w] = eval(a, b)`.
template <class... E>
requires(sizeof...(E) > 1 &&
         (std::convertible_to<const E&, Expr> && ...)) auto eval(const E&... exprs) {
  const std::vector<Tensor> values = eval(std::vector<Expr>{Expr(exprs)...});
  return [&]<std::size_t... I>(std::index_sequence<I...>) { return std::tuple{values[I]...}; }
  (std::make_index_sequence<sizeof...(E)>{});
}
/// One expression, with options.
Tensor eval(const Expr& expr, const EvalOptions& options = {});
/// Writes the value of `expr` into `out` (same shape, same dtype, any strides).
void eval_into(const Tensor& out, const Expr& expr, const EvalOptions& options = {});

/// The plan that evaluating these would run, as text.
std::string explain(const std::vector<Expr>& exprs, const EvalOptions& options = {});
std::string explain_json(const std::vector<Expr>& exprs, const EvalOptions& options = {});

/// Plans made so far by this process, cache misses only; for tests of the plan cache.
std::int64_t plans_made();

}  // namespace einkern
