// SPDX-License-Identifier: Apache-2.0
// Evaluates expressions: collect, look the plan up or make it, run it.
#include <fmt/format.h>

#include <cmath>

#include "../base/error.h"
#include "../exec/execute.h"
#include "../plan/builder.h"
#include "build.h"
#include "call.h"
#include "expr.h"
#include "plan_cache.h"

namespace einkern {
namespace {

using graph::Call;
using graph::Collected;
using graph::NodePtr;
using graph::Prepared;
using graph::Type;

/// Plans of eager evaluations, shared by the process.
graph::PlanCache<Prepared>& cache() {
  static graph::PlanCache<Prepared> plans(512);
  return plans;
}

struct Evaluation {
  std::vector<NodePtr> roots;
  std::vector<Type> types;
  Collected collected;
  std::vector<Tensor> leaves;

  explicit Evaluation(const std::vector<Expr>& exprs) {
    for (const Expr& expr : exprs) {
      expr.shape();  // refuses open axes
      roots.push_back(expr.node());
      types.push_back(expr.node()->type);
    }
    collected = graph::collect(roots);
    for (const NodePtr& leaf : collected.leaves) {
      const auto* tensor = std::get_if<graph::Leaf>(&leaf->op);
      if (tensor == nullptr) {
        fail<ValueError>("eval: the expression has placeholders; compile it and call the result");
      }
      leaves.push_back(tensor->tensor);
    }
  }

  /// The plan that writes outputs of these layouts.
  std::shared_ptr<const Prepared> plan(const std::vector<Layout>& outs, bool fuse) const {
    std::string key = collected.key;
    key += fuse ? 'f' : 'p';
    key += exec::current_target().name;
    for (const Layout& out : outs) {
      for (const std::int64_t stride : out.strides) {
        key.append(reinterpret_cast<const char*>(&stride), sizeof stride);
      }
    }
    if (auto found = cache().find(key)) return found;
    auto made = graph::prepare(roots, collected, {fuse, graph::layouts_of(leaves), outs});
    return cache().insert(std::move(key), std::move(made));
  }

  std::vector<Tensor> run(const EvalOptions& options) const {
    const Call call{plan(graph::contiguous_layouts(types), options.fuse), leaves,
                    collected.scalars};
    return graph::run(call, types, options.threads);
  }
};

void into(const char* function, const Tensor& out, const Expr& expr, const EvalOptions& options) {
  const Evaluation evaluation({expr});
  graph::check_out(function, out, evaluation.types[0]);
  if (graph::needs_detour({out}, evaluation.collected, evaluation.leaves)) {
    out.assign(evaluation.run(options)[0]);
    return;
  }
  const Call call{evaluation.plan({out.layout()}, options.fuse), evaluation.leaves,
                  evaluation.collected.scalars};
  graph::run_into(call, {out}, options.threads);
}

}  // namespace

std::vector<Tensor> eval(const std::vector<Expr>& exprs, const EvalOptions& options) {
  return Evaluation(exprs).run(options);
}

Tensor eval(const Expr& expr, const EvalOptions& options) {
  return Evaluation({expr}).run(options)[0];
}

void eval_into(const Tensor& out, const Expr& expr, const EvalOptions& options) {
  into("eval_into", out, expr, options);
}

void einsum_into(const Tensor& out, std::string_view equation, const std::vector<Expr>& operands,
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
  const Evaluation evaluation(exprs);
  const auto prepared = evaluation.plan(graph::contiguous_layouts(evaluation.types), options.fuse);
  return plan::explain(prepared->plan, prepared->target);
}

std::string explain_json(const std::vector<Expr>& exprs, const EvalOptions& options) {
  const Evaluation evaluation(exprs);
  const auto prepared = evaluation.plan(graph::contiguous_layouts(evaluation.types), options.fuse);
  return plan::explain_json(prepared->plan, prepared->target);
}

std::int64_t plans_made() { return graph::prepared_count(); }

}  // namespace einkern
