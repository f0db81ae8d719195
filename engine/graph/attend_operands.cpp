// SPDX-License-Identifier: Apache-2.0
// Brings the operands of scores to two, and peels what the fused step does itself off them.
#include "attend_operands.h"

#include "build.h"
#include "scalar_facts.h"
#include "walk.h"

namespace einkern::graph {
namespace {

using List = std::vector<std::int32_t>;

/// The einsum of some operands of `whole` under its labels `output`.
NodePtr product_of(const NodePtr& whole, const std::vector<std::size_t>& operands,
                   const List& output,
                   const std::unordered_map<std::int32_t, std::int64_t>& sizes) {
  const auto& einsum = std::get<Einsum>(whole->op);
  ResolvedEquation part;
  part.output = output;
  part.names = einsum.names();
  std::vector<NodePtr> inputs;
  for (const std::size_t p : operands) {
    part.inputs.push_back(einsum.inputs()[p]);
    inputs.push_back(whole->inputs[p]);
  }
  Type type{whole->type.dtype, false, {}, {}, {}, false};
  std::vector<std::string> labels;
  for (const std::int32_t label : output) {
    type.shape.push_back(sizes.at(label));
    labels.push_back(einsum.names()[static_cast<std::size_t>(label)]);
  }
  type.labels = Labels(std::move(labels));
  return std::make_shared<const Node>(Einsum(std::move(part)), std::move(inputs), std::move(type));
}

}  // namespace

std::unordered_map<std::int32_t, std::int64_t> label_sizes(const Einsum& einsum,
                                                           const std::vector<NodePtr>& inputs) {
  std::unordered_map<std::int32_t, std::int64_t> sizes;
  for (std::size_t p = 0; p < einsum.inputs().size(); ++p) {
    for (std::size_t d = 0; d < einsum.inputs()[p].size(); ++d) {
      std::int64_t& size = sizes.try_emplace(einsum.inputs()[p][d], 1).first->second;
      if (inputs[p]->type.shape[d] != 1) size = inputs[p]->type.shape[d];
    }
  }
  return sizes;
}

std::optional<DotOperands> read_operands(const NodePtr& dot, const AxisMap& axes,
                                         const std::vector<bool>& streamed, std::string& why) {
  const auto& einsum = std::get<Einsum>(dot->op);
  const auto miss = [&](const char* text) {
    why = text;
    return std::nullopt;
  };
  const auto sizes = label_sizes(einsum, dot->inputs);
  std::unordered_map<std::int32_t, List> made_of;
  for (std::size_t d = 0; d < einsum.output().size(); ++d) {
    if (!made_of.try_emplace(einsum.output()[d], axes[d]).second) {
      return miss("the scores are the diagonal of a product");
    }
  }
  const auto is_streamed = [&](std::size_t p, std::size_t d) {
    const auto at = made_of.find(einsum.inputs()[p][d]);
    if (at == made_of.end()) return false;
    if (dot->inputs[p]->type.shape[d] != sizes.at(einsum.inputs()[p][d])) return false;
    return std::any_of(at->second.begin(), at->second.end(),
                       [&](std::int32_t axis) { return streamed[static_cast<std::size_t>(axis)]; });
  };
  std::vector<std::size_t> sides[2];  // queries, keys
  for (std::size_t p = 0; p < einsum.inputs().size(); ++p) {
    bool key = false;
    for (std::size_t d = 0; d < einsum.inputs()[p].size(); ++d) key |= is_streamed(p, d);
    sides[key ? 1 : 0].push_back(p);
  }
  if (sides[0].empty()) return miss("no operand of the scores is without an axis that is summed");
  if (sides[1].empty()) return miss("no operand of the scores has the axes that are summed");

  // What a side keeps: labels of the scores and of the other side, as far as they are not 1 there.
  DotOperands result;
  List labels[2];
  for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
    const auto stretches = [&](std::size_t s, std::int32_t label) {
      for (const std::size_t p : sides[s]) {
        for (std::size_t d = 0; d < einsum.inputs()[p].size(); ++d) {
          if (einsum.inputs()[p][d] == label && dot->inputs[p]->type.shape[d] == sizes.at(label)) {
            return true;
          }
        }
      }
      return false;
    };
    for (const std::size_t p : sides[side]) {
      for (const std::int32_t label : einsum.inputs()[p]) {
        if (holds(labels[side], label) || !stretches(side, label)) continue;
        if (made_of.contains(label) || stretches(1 - side, label)) labels[side].push_back(label);
      }
    }
  }
  Place* const places[2] = {&result.q, &result.k};
  for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
    const std::vector<std::size_t>& operands = sides[side];
    Place& place = *places[side];
    const List& own = einsum.inputs()[operands[0]];
    const DType dtype = dot->inputs[operands[0]]->type.dtype;
    bool simple = operands.size() == 1 && (dtype == dot->type.dtype || is_half_float(dtype));
    for (std::size_t d = 0; d < own.size(); ++d) {
      const std::int64_t size = dot->inputs[operands[0]]->type.shape[d];
      simple &= std::count(own.begin(), own.end(), own[d]) == 1 &&
                (holds(labels[side], own[d]) || size == 1);
    }
    const List& kept = simple ? own : labels[side];
    place.node = simple ? dot->inputs[operands[0]] : product_of(dot, operands, kept, sizes);
    for (const std::int32_t label : kept) {
      if (!holds(labels[side], label)) {
        place.axes.push_back({});  // size 1, which broadcasts
        continue;
      }
      if (!made_of.contains(label)) {
        made_of[label] = {~static_cast<std::int32_t>(result.inner.size())};
        result.inner.push_back(sizes.at(label));
      }
      place.axes.push_back(made_of.at(label));
    }
  }
  return result;
}

Place behind_copies(Place place, const ScoreAxes& axes, std::optional<Cut>& wanted) {
  bool repeats = false;
  const Node* at = place.node.get();
  for (; is_view(*at) && !std::holds_alternative<Slice>(at->op); at = at->inputs[0].get()) {
    const auto* expand = std::get_if<Expand>(&at->op);
    repeats |= expand != nullptr && expand->size != 1;
  }
  return repeats ? behind_views(std::move(place), axes, wanted) : place;
}

bool lies_dense(const Place& operand) {
  std::vector<const Node*> views;  // from the operand inwards
  const Node* node = operand.node.get();
  for (; is_view(*node); node = node->inputs[0].get()) views.push_back(node);
  const auto* leaf = std::get_if<Leaf>(&node->op);
  Layout layout = leaf != nullptr ? leaf->tensor.layout() : contiguous(node->type.shape);
  for (auto view = views.rbegin(); view != views.rend(); ++view) {
    auto next = view_layout(**view, layout);
    if (!next) return true;  // copied anyway
    layout = std::move(*next);
  }
  std::int64_t least = 0;
  for (std::size_t d = 0; d < layout.rank(); ++d) {
    const auto& list = operand.axes[d];
    const bool inner =
        std::any_of(list.begin(), list.end(), [](std::int32_t axis) { return axis < 0; });
    if (!inner || layout.shape[d] == 1) continue;
    if (least == 0 || layout.strides[d] < least) least = layout.strides[d];
  }
  return least == 0 || least == 1;
}

void take_scales(NodePtr& operand, DType dtype, std::vector<Scale>& scales) {
  for (;;) {
    std::vector<NodePtr> views;  // from the operand inwards
    NodePtr node = operand;
    while (is_view(*node)) {
      views.push_back(node);
      node = node->inputs[0];
    }
    const auto* op = std::get_if<Elementwise>(&node->op);
    if (op == nullptr) return;
    NodePtr inside;
    Scale scale{op->op, nullptr};
    if (op->op == map::Op::neg) {
      inside = node->inputs[0];
    } else if (op->op == map::Op::mul || op->op == map::Op::div) {
      if (is_scalar(node->inputs[1])) {
        inside = node->inputs[0];
        scale.by = node->inputs[1];
      } else if (op->op == map::Op::mul && is_scalar(node->inputs[0])) {
        inside = node->inputs[1];
        scale.by = node->inputs[0];
      }
    }
    if (inside == nullptr || inside->type.dtype != dtype || inside->type.shape != node->type.shape)
      return;
    for (auto view = views.rbegin(); view != views.rend(); ++view) {
      inside = with_inputs(**view, {inside});
    }
    operand = inside;
    scales.push_back(scale);
  }
}

NodePtr scaled(const NodePtr& x, const Scale& scale) {
  std::vector<Expr> operands{Expr(x)};
  if (scale.by != nullptr) operands.emplace_back(scale.by);
  return elementwise("scale", scale.op, operands).node();
}

}  // namespace einkern::graph
