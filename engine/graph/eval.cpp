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

class Evaluation {
 public:
  explicit Evaluation(std::span<const Expr> exprs) {
    roots_.reserve(exprs.size());
    for (const Expr& expr : exprs) {
      expr.shape();  // refuses open axes
      roots_.push_back(expr.node());
      types_.push_back(&expr.node()->type);
    }
    collected_ = graph::collect(roots_);
    structure_bytes_ = collected_.key.size();
    for (const NodePtr& leaf : collected_.leaves) {
      const auto* tensor = std::get_if<graph::Leaf>(&leaf->op);
      if (tensor == nullptr) {
        fail<ValueError>("eval: the expression has placeholders; compile it and call the result");
      }
      leaves_.push_back(&tensor->tensor);
    }
  }

  const Type& type(std::size_t root) const { return *types_[root]; }
  const std::vector<map::Scalar>& scalars() const { return collected_.scalars; }

  /// The plan that writes outputs of these layouts.
  std::shared_ptr<const Prepared> plan(const std::vector<Layout>& outs, bool fuse) {
    std::string& key = collected_.key;
    key.resize(structure_bytes_);
    key += fuse ? 'f' : 'p';
    key += exec::current_target().name;
    for (const Layout& out : outs) {
      for (const std::int64_t stride : out.strides) graph::put_number(key, stride);
    }
    if (auto found = cache().find(key)) return found;
    std::vector<Layout> layouts;
    for (const Tensor* leaf : leaves_) layouts.push_back(leaf->layout());
    auto made = graph::prepare(roots_, collected_, {fuse, layouts, outs});
    return cache().insert(key, std::move(made));
  }
  /// The plan that writes contiguous outputs.
  std::shared_ptr<const Prepared> plan(bool fuse) {
    return plan(graph::contiguous_layouts(types_), fuse);
  }

  std::vector<Tensor> run(const EvalOptions& options) {
    const auto prepared = plan(options.fuse);
    return graph::run({*prepared, leaves_, collected_.scalars}, types_, options.threads);
  }

  void run_into(const Tensor& out, const EvalOptions& options) {
    if (!graph::may_share_memory({out}, leaves_)) {
      const auto prepared = plan({out.layout()}, options.fuse);
      const graph::Call call{*prepared, leaves_, collected_.scalars};
      if (!graph::may_fail_half_way(call)) return graph::run_into(call, {out}, options.threads);
    }
    out.assign(run(options)[0]);
  }

 private:
  std::vector<NodePtr> roots_;
  SmallVector<const Type*, 4> types_;
  Collected collected_;
  std::size_t structure_bytes_ = 0;  // of the key; what follows says how the plan is made
  graph::TensorPointers leaves_;
};

void into(const char* function, const Tensor& out, const Expr& expr, const EvalOptions& options) {
  Evaluation evaluation(std::span(&expr, 1));
  graph::check_out(function, out, evaluation.type(0));
  evaluation.run_into(out, options);
}

}  // namespace

std::vector<Tensor> eval(const std::vector<Expr>& exprs, const EvalOptions& options) {
  return Evaluation(exprs).run(options);
}

Tensor eval(const Expr& expr, const EvalOptions& options) {
  return std::move(Evaluation(std::span(&expr, 1)).run(options)[0]);
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
  Evaluation evaluation(exprs);
  const auto prepared = evaluation.plan(options.fuse);
  return plan::explain(prepared->plan, prepared->target, evaluation.scalars());
}

std::string explain_json(const std::vector<Expr>& exprs, const EvalOptions& options) {
  Evaluation evaluation(exprs);
  const auto prepared = evaluation.plan(options.fuse);
  return plan::explain_json(prepared->plan, prepared->target, evaluation.scalars());
}

std::int64_t plans_made() { return graph::prepared_count(); }

}  // namespace einkern
