// SPDX-License-Identifier: Apache-2.0
// Evaluates expressions: collect, look the plan up or make it, run it.
#include <fmt/format.h>

#include <cmath>
#include <span>
#include <utility>

#include "../base/error.h"
#include "../exec/execute.h"
#include "../plan/builder.h"
#include "build.h"
#include "call.h"
#include "expr.h"
#include "key.h"
#include "plan_cache.h"

namespace einkern {
namespace {

using graph::Collected;
using graph::NodePtr;
using graph::Prepared;
using graph::Type;

/// Plans of eager evaluations, shared by the process.
graph::PlanCache<Prepared>& cache() {
  static graph::PlanCache<Prepared> plans(512);
  return plans;
}

/// The node of an expression without open axes.
const NodePtr& closed_node(const Expr& expr) {
  expr.shape();  // refuses open axes
  return expr.node();
}

/// One evaluation of expressions, which outlive it.
class Evaluation {
 public:
  explicit Evaluation(const Expr& expr) : Evaluation(std::span(&closed_node(expr), 1)) {}
  explicit Evaluation(std::vector<NodePtr> roots) : Evaluation(std::span<const NodePtr>(roots)) {
    held_ = std::move(roots);  // leaves them where they are
  }
  Evaluation(const Evaluation&) = delete;
  Evaluation& operator=(const Evaluation&) = delete;

  const Type& type(std::size_t root) const { return roots_[root]->type; }
  const std::vector<map::Scalar>& scalars() const { return collected_.scalars; }

  /// The plan that writes contiguous outputs, or the one output where `out` says.
  std::shared_ptr<const Prepared> plan(bool fuse, const Layout* out = nullptr) {
    if (out != nullptr && out->strides == contiguous_strides(out->shape)) out = nullptr;
    graph::Key& key = collected_.key;
    key.truncate(structure_bytes_);
    key.put(std::int64_t{fuse});
    key.put(exec::current_target().name);
    if (out != nullptr) {
      for (const std::int64_t stride : out->strides) key.put(stride);
    }
    if (auto found = cache().find(key.view())) return found;
    std::vector<Layout> layouts;
    for (const Tensor* leaf : leaves_) layouts.push_back(leaf->layout());
    auto made = graph::prepare(
        {roots_.begin(), roots_.end()}, collected_,
        {fuse, layouts, out != nullptr ? std::vector{*out} : graph::contiguous_layouts(types())});
    return cache().insert(std::string(key.view()), std::move(made));
  }

  std::vector<Tensor> run(const EvalOptions& options) {
    const auto prepared = plan(options.fuse);
    return graph::run(call(*prepared), types(), options.threads);
  }
  /// Of one expression.
  Tensor run_one(const EvalOptions& options) {
    const auto prepared = plan(options.fuse);
    return graph::run(call(*prepared), type(0), options.threads);
  }
  void run_into(const Tensor& out, const EvalOptions& options) {
    if (!graph::may_share_memory({&out, 1}, leaves_)) {
      const auto prepared = plan(options.fuse, &out.layout());
      const graph::Call into = call(*prepared);
      if (!graph::may_fail_half_way(into)) {
        return graph::run_into(into, {&out, 1}, options.threads);
      }
    }
    out.assign(run_one(options));
  }

 private:
  explicit Evaluation(std::span<const NodePtr> roots)
      : roots_(roots), collected_(graph::collect(roots)), structure_bytes_(collected_.key.size()) {
    for (const NodePtr* leaf : collected_.leaves) {
      const auto* own = std::get_if<graph::Leaf>(&(*leaf)->op);
      if (own == nullptr) {
        fail<ValueError>("eval: the expression has placeholders; compile it and call the result");
      }
      leaves_.push_back(&own->tensor);
    }
  }

  SmallVector<const Type*, 4> types() const {
    SmallVector<const Type*, 4> types;
    for (const NodePtr& root : roots_) types.push_back(&root->type);
    return types;
  }
  graph::Call call(const Prepared& prepared) const {
    return {prepared, leaves_, collected_.scalars};
  }

  std::vector<NodePtr> held_;  // several roots; one is held by its expression
  std::span<const NodePtr> roots_;
  Collected collected_;
  std::size_t structure_bytes_;  // of the key; what follows says how the plan is made
  graph::TensorPointers leaves_;
};

Evaluation evaluation_of(const std::vector<Expr>& exprs) {
  std::vector<NodePtr> roots;
  roots.reserve(exprs.size());
  for (const Expr& expr : exprs) roots.push_back(closed_node(expr));
  return Evaluation(std::move(roots));
}

void into(const char* function, const Tensor& out, const Expr& expr, const EvalOptions& options) {
  Evaluation evaluation(expr);
  graph::check_out(function, out, evaluation.type(0));
  evaluation.run_into(out, options);
}

}  // namespace

std::vector<Tensor> eval(const std::vector<Expr>& exprs, const EvalOptions& options) {
  return evaluation_of(exprs).run(options);
}

Tensor eval(const Expr& expr, const EvalOptions& options) {
  return Evaluation(expr).run_one(options);
}

void eval_into(const Tensor& out, const Expr& expr, const EvalOptions& options) {
  into("eval_into", out, expr, options);
}

void einsum_into(const Tensor& out, std::string_view equation, std::span<const Expr> operands,
                 const IntoOptions& options) {
  Expr value = einsum(equation, operands, {options.path});
  const auto scaled = [](double factor, const Expr& x) {
    // An integer tensor keeps its dtype under a whole factor, as it would under an integer scalar.
    const bool whole =
        x.dtype() == DType::i64 && factor == std::floor(factor) && std::fabs(factor) < 0x1p53;
    const Expr by = whole ? Expr(static_cast<std::int64_t>(factor)) : Expr(factor);
    return graph::elementwise("einsum_into", map::Op::mul, {by, x});
  };
  graph::check_out("einsum_into", out, value.node()->type);
  if (options.alpha != 1) value = scaled(options.alpha, value);
  if (options.beta != 0) {
    const Expr before = scaled(options.beta, Expr(out.with_labels({})));
    value = graph::elementwise("einsum_into", map::Op::add, {value, before});
  }
  into("einsum_into", out, value, {.threads = options.threads});
}

std::string explain(const std::vector<Expr>& exprs, const EvalOptions& options) {
  Evaluation evaluation = evaluation_of(exprs);
  const auto prepared = evaluation.plan(options.fuse);
  return plan::explain(prepared->plan, prepared->target, evaluation.scalars());
}

std::string explain_json(const std::vector<Expr>& exprs, const EvalOptions& options) {
  Evaluation evaluation = evaluation_of(exprs);
  const auto prepared = evaluation.plan(options.fuse);
  return plan::explain_json(prepared->plan, prepared->target, evaluation.scalars());
}

std::int64_t plans_made() { return graph::prepared_count(); }

}  // namespace einkern
