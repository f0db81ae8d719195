// SPDX-License-Identifier: Apache-2.0
// Reusable plans over placeholders.
#include "compiled.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "../base/error.h"
#include "../exec/execute.h"
#include "../spec/equation.h"
#include "align.h"
#include "call.h"
#include "extent.h"
#include "key.h"
#include "plan_cache.h"
#include "walk.h"

namespace einkern {
namespace graph {

/// A plan for inputs and outputs of certain layouts, with the leaves that are not inputs.
struct Specialised {
  std::vector<NodePtr> roots;
  SmallVector<const Type*, 4> types;  // of the roots
  std::vector<map::Scalar> scalars;
  std::vector<NodePtr> leaves;
  std::vector<std::size_t> source;  // per leaf: which input, or kOwn
  std::shared_ptr<const Prepared> contiguous;
};

}  // namespace graph
namespace {

using graph::Node;
using graph::NodePtr;
using graph::Specialised;
using graph::Type;

constexpr std::size_t kOwn = static_cast<std::size_t>(-1);

/// The plan with what it reads; `given` and `plan` outlive the call.
graph::Call bind(const Specialised& plan, const std::vector<Tensor>& given) {
  graph::Call call{*plan.contiguous, {}, plan.scalars};
  for (std::size_t i = 0; i < plan.source.size(); ++i) {
    call.leaves.push_back(plan.source[i] == kOwn ? &std::get<graph::Leaf>(plan.leaves[i]->op).tensor
                                                 : &given[plan.source[i]]);
  }
  return call;
}

/// What dyn extents turned out to be.
struct DynSize {
  std::int64_t extent, size;
};
using DynSizes = SmallVector<DynSize, 8>;

void check_input(std::size_t i, const Tensor& tensor, const Type& type, DynSizes& sizes) {
  if (tensor.dtype() != type.dtype) {
    fail<TypeError>(fmt::format("compiled: input {} is {} but was declared {}", i,
                                name_of(tensor.dtype()), name_of(type.dtype)));
  }
  bool fits = tensor.rank() == type.shape.size();
  for (std::size_t d = 0; fits && d < type.shape.size(); ++d) {
    const std::int64_t declared = type.shape[d];
    const std::int64_t given = tensor.shape()[d];
    if (!graph::is_dyn(declared)) {
      fits = declared == given;
      continue;
    }
    const auto* known = std::find_if(sizes.begin(), sizes.end(),
                                     [&](const auto& size) { return size.extent == declared; });
    if (known == sizes.end()) {
      sizes.push_back({declared, given});
    } else if (known->size != given) {
      fail<ShapeError>(fmt::format("compiled: size '{}' is {} but axis {} of input {} is {}",
                                   graph::extent_text(declared), known->size, d, i, given));
    }
  }
  if (!fits) {
    fail<ShapeError>(fmt::format("compiled: input {} is {} but was declared {}", i,
                                 to_string(tensor.shape()), graph::axes_text(type)));
  }
}

void put(graph::Key& key, const Dims& dims) {
  for (const std::int64_t value : dims) key.put(value);
}

}  // namespace

struct Compiled::State {
  std::vector<NodePtr> inputs;
  std::vector<NodePtr> outputs;
  mutable graph::PlanCache<Specialised> plans{64};

  /// Checks the inputs and finds (or makes) the plan for their shapes and strides.
  std::shared_ptr<const Specialised> specialise(const std::vector<Tensor>& given, bool fuse) const;
};

std::shared_ptr<const Specialised> Compiled::State::specialise(const std::vector<Tensor>& given,
                                                               bool fuse) const {
  if (given.size() != inputs.size()) {
    fail<ShapeError>(
        fmt::format("compiled: {} inputs given for {} declared", given.size(), inputs.size()));
  }
  DynSizes sizes;
  graph::Key key;
  key.put(exec::current_target().name);
  key.put(std::int64_t{fuse});
  for (std::size_t i = 0; i < given.size(); ++i) {
    check_input(i, given[i], inputs[i]->type, sizes);
    put(key, given[i].shape());
    put(key, given[i].strides());
  }
  if (auto found = plans.find(key.view())) return found;

  auto made = std::make_shared<Specialised>();
  std::unordered_map<std::int64_t, std::size_t> position;  // input id -> position
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    position[std::get<graph::Input>(inputs[i]->op).id] = i;
  }
  made->roots = graph::transform(
      outputs,
      [&](const NodePtr& node, const Node&) -> NodePtr {
        const auto* input = std::get_if<graph::Input>(&node->op);
        if (input == nullptr) return node;
        Type type = node->type;
        type.shape = given[position.at(input->id)].shape();
        if (type.shape == node->type.shape) return node;
        return std::make_shared<const Node>(*input, std::vector<NodePtr>{}, std::move(type));
      },
      graph::rebuild);
  for (const NodePtr& root : made->roots) made->types.push_back(&root->type);
  const graph::Collected collected = graph::collect(made->roots);
  made->scalars = collected.scalars;
  std::vector<Layout> layouts;
  for (const NodePtr* leaf : collected.leaves) {
    made->leaves.push_back(*leaf);
    if (const auto* own = std::get_if<graph::Leaf>(&(*leaf)->op)) {
      made->source.push_back(kOwn);
      layouts.push_back(own->tensor.layout());
    } else {
      made->source.push_back(position.at(std::get<graph::Input>((*leaf)->op).id));
      layouts.push_back(given[made->source.back()].layout());
    }
  }
  made->contiguous = graph::prepare(made->roots, collected,
                                    {fuse, layouts, graph::contiguous_layouts(made->types)});
  return plans.insert(std::string(key.view()), std::move(made));
}

std::vector<Tensor> Compiled::operator()(const std::vector<Tensor>& inputs,
                                         const EvalOptions& options) const {
  const auto plan = state_->specialise(inputs, options.fuse);
  return graph::run(bind(*plan, inputs), plan->types, options.threads);
}

void Compiled::into(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                    const EvalOptions& options) const {
  const auto plan = state_->specialise(inputs, options.fuse);
  if (outputs.size() != plan->types.size()) {
    fail<ShapeError>(fmt::format("compiled: {} outputs given for {} compiled", outputs.size(),
                                 plan->types.size()));
  }
  bool direct = true;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    graph::check_out("compiled", outputs[i], *plan->types[i]);
    direct &= outputs[i].is_contiguous();
  }
  const graph::Call call = bind(*plan, inputs);
  direct = direct && !graph::may_share_memory(outputs, call.leaves);
  if (direct && !graph::may_fail_half_way(call)) {
    return graph::run_into(call, outputs, options.threads);
  }
  const std::vector<Tensor> values = graph::run(call, plan->types, options.threads);
  for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i].assign(values[i]);
}

std::int64_t dyn(std::string_view name) { return graph::dyn_extent(name); }

Expr input(DType dtype, const Shape& shape, std::string_view term) {
  static std::atomic<std::int64_t> next{0};
  Type type;
  type.dtype = dtype;
  type.shape = shape;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] < 0 && !graph::is_symbol(shape[d])) {
      fail<ShapeError>(
          fmt::format("input: size {} of axis {} is negative; one that is not known yet is "
                      "dyn(\"name\")",
                      shape[d], d));
    }
  }
  if (!term.empty()) {
    std::vector<std::string> labels = parse_term(term, "input");
    if (labels.size() != shape.size()) {
      fail<ShapeError>(
          fmt::format("input: {} labels in '{}' for {} axes", labels.size(), term, shape.size()));
    }
    type.labels = Labels(std::move(labels));
  }
  return Expr(
      std::make_shared<const Node>(graph::Input{next++}, std::vector<NodePtr>{}, std::move(type)));
}

Compiled compile(const std::vector<Expr>& inputs, const std::vector<Expr>& outputs) {
  auto state = std::make_shared<Compiled::State>();
  std::unordered_set<std::int64_t> known;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto* op = std::get_if<graph::Input>(&inputs[i].node()->op);
    if (op == nullptr) {
      fail<ValueError>(fmt::format("compile: input {} is not a placeholder made by input()", i));
    }
    if (!known.insert(op->id).second) {
      fail<ValueError>(fmt::format("compile: input {} is listed twice", i));
    }
    state->inputs.push_back(inputs[i].node());
  }
  for (const Expr& output : outputs) {
    output.shape();  // refuses open axes
    state->outputs.push_back(output.node());
  }
  for (const NodePtr& node : graph::topological_order(state->outputs)) {
    const auto* op = std::get_if<graph::Input>(&node->op);
    if (op != nullptr && !known.contains(op->id)) {
      fail<ValueError>(fmt::format("compile: an output uses a placeholder {} that is not an input",
                                   graph::axes_text(node->type)));
    }
  }
  return Compiled(std::move(state));
}

}  // namespace einkern
