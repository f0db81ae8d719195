// SPDX-License-Identifier: Apache-2.0
// Nodes of words, checked and typed when they are built.
#include "build.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "../base/error.h"
#include "align.h"
#include "extent.h"
#include "node.h"
#include "promote.h"

namespace einkern::graph {
namespace {

Expr make(Operation op, std::vector<NodePtr> inputs, Type type) {
  return Expr(std::make_shared<const Node>(std::move(op), std::move(inputs), std::move(type)));
}

const Type& closed_type(const char* function, const Expr& x) {
  const Type& type = x.node()->type;
  if (!type.open.empty()) {
    const OpenAxis& open = type.open.front();
    fail<ShapeError>(open.label.empty()
                         ? fmt::format("{}: index({}) has met no axis yet", function, open.position)
                         : fmt::format("{}: index(\"{}\") has met no axis '{}' yet", function,
                                       open.label, open.label));
  }
  return type;
}

/// The axes of `type` under new shape and labels, as an ordinary operand.
Type reshaped(const Type& type, Dims shape, std::vector<std::string> labels) {
  return {type.dtype, type.weak, std::move(shape), Labels(std::move(labels)), {}, false};
}

}  // namespace

Expr elementwise(const char* function, map::Op op, const std::vector<Expr>& operands) {
  std::vector<ElementType> types;
  std::vector<NodePtr> inputs;
  for (const Expr& operand : operands) {
    types.push_back({operand.node()->type.dtype, operand.node()->type.weak});
    inputs.push_back(operand.node());
  }
  const ElementType element = result_type(function, op, types);
  Elementwise node{op, std::vector<Alignment>(operands.size())};
  Type type;
  if (operands.size() == 1) {
    Aligned aligned = align(function, inputs[0]->type, Type{});
    node.alignment = {std::move(aligned.first)};
    type = std::move(aligned.type);
  } else {
    // select: its branches meet first, then the condition meets them.
    const std::size_t x = operands.size() == 3 ? 1 : 0;
    Aligned pair = align(function, inputs[x]->type, inputs[x + 1]->type);
    node.alignment[x] = pair.first;
    node.alignment[x + 1] = pair.second;
    if (operands.size() == 3) {
      Aligned all = align(function, pair.type, inputs[0]->type);
      node.alignment = {all.second, compose(pair.first, all.first),
                        compose(pair.second, all.first)};
      pair = std::move(all);
    }
    type = std::move(pair.type);
  }
  type.dtype = element.dtype;
  type.weak = element.weak;
  return make(std::move(node), std::move(inputs), std::move(type));
}

Expr cast(const Expr& x, DType dtype) {
  Aligned aligned = align("astype", x.node()->type, Type{});
  aligned.type.dtype = dtype;
  aligned.type.weak = false;
  return make(Elementwise{map::Op::cast, {std::move(aligned.first)}}, {x.node()},
              std::move(aligned.type));
}

Expr open_index(const Axis& axis) {
  OpenAxis open;
  if (axis.is_label()) {
    open.label = axis.label();
    if (open.label.empty()) fail<ShapeError>("index: empty label");
  } else {
    open.position = axis.number();
    if (open.position >= 0) {
      fail<ShapeError>(fmt::format(
          "index: position {} counts from the left of an unknown rank; give a negative one",
          open.position));
    }
  }
  Type type{DType::i64, true, {}, {}, {open}, true};
  return make(Index{}, {}, std::move(type));
}

std::vector<std::size_t> resolve_axes(const char* function, const Expr& x,
                                      const std::vector<Axis>& axes) {
  const Type& type = closed_type(function, x);
  std::vector<std::size_t> result;
  for (const Axis& axis : axes) {
    const std::size_t at = axis.resolve(function, type.shape.size(), type.labels);
    if (std::find(result.begin(), result.end(), at) != result.end()) {
      fail<ShapeError>(fmt::format("{}: axis {} is named twice", function, at));
    }
    result.push_back(at);
  }
  return result;
}

Expr reduce(const char* function, plan::ReduceOp op, const Expr& x,
            const std::vector<std::size_t>& axes, bool keep) {
  const Type& type = closed_type(function, x);
  std::vector<std::size_t> sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  Dims shape;
  std::vector<std::string> labels;
  for (std::size_t d = 0; d < type.shape.size(); ++d) {
    const bool reduced = std::binary_search(sorted.begin(), sorted.end(), d);
    const bool extreme = op == plan::ReduceOp::max || op == plan::ReduceOp::min;
    if (reduced && extreme && type.shape[d] == 0) {
      fail<ValueError>(fmt::format("{}: axis {} of {} is empty and has no {}", function, d,
                                   axes_text(type), plan::name_of(op)));
    }
    if (reduced && !keep) continue;
    shape.push_back(reduced ? 1 : type.shape[d]);
    labels.push_back(type.labels[d]);
  }
  Type result = reshaped(type, std::move(shape), std::move(labels));
  result.dtype = compute_dtype(type.dtype);
  return make(Reduce{op, std::move(sorted), keep}, {x.node()}, std::move(result));
}

Expr softmax(const char* function, plan::SoftmaxKind kind, const Expr& s,
             const std::vector<std::size_t>& axes, const std::optional<Expr>& sink) {
  const Type& type = closed_type(function, s);
  if (axes.empty()) fail<ShapeError>(fmt::format("{}: no axis to normalise over", function));
  Softmax node{kind, axes, {}};
  std::sort(node.axes.begin(), node.axes.end());
  Dims remaining;
  std::vector<std::string> labels;
  for (std::size_t d = 0; d < type.shape.size(); ++d) {
    if (std::binary_search(node.axes.begin(), node.axes.end(), d)) continue;
    remaining.push_back(type.shape[d]);
    labels.push_back(type.labels[d]);
  }
  const DType dtype = float_dtype(type.dtype);
  Type row = reshaped(type, std::move(remaining), std::move(labels));
  std::vector<NodePtr> inputs{s.node()};
  if (sink) {
    const Aligned aligned = align(function, row, closed_type(function, *sink));
    if (!(aligned.type.shape == row.shape)) {
      fail<ShapeError>(fmt::format("{}: sink {} does not fit the rows {}", function,
                                   axes_text(sink->node()->type), axes_text(row)));
    }
    node.sink = aligned.second;
    inputs.push_back(sink->node());
  }
  Type result = kind == plan::SoftmaxKind::logsumexp
                    ? row
                    : reshaped(type, type.shape, type.labels.to_vector(type.shape.size()));
  result.dtype = dtype;
  result.weak = false;
  return make(std::move(node), std::move(inputs), std::move(result));
}

Expr permute(const char* function, const Expr& x, const std::vector<std::size_t>& order) {
  const Type& type = closed_type(function, x);
  std::vector<std::size_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::size_t> all(type.shape.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  if (sorted != all) {
    fail<ShapeError>(fmt::format("{}: the order [{}] is not one of all {} axes of {}", function,
                                 fmt::join(order, ", "), all.size(), axes_text(type)));
  }
  Dims shape;
  std::vector<std::string> labels;
  for (const std::size_t axis : order) {
    shape.push_back(type.shape[axis]);
    labels.push_back(type.labels[axis]);
  }
  return make(Permute{order}, {x.node()}, reshaped(type, std::move(shape), std::move(labels)));
}

Expr slice(const char* function, const Expr& x, std::size_t axis, std::optional<std::int64_t> start,
           std::optional<std::int64_t> stop, std::int64_t step) {
  const Type& type = closed_type(function, x);
  if (step == 0) fail<ValueError>(fmt::format("{}: step is 0", function));
  Type result = reshaped(type, type.shape, type.labels.to_vector(type.shape.size()));
  const std::int64_t size = type.shape[axis];
  if (is_dyn(size)) {
    if (start || stop || step != 1) {
      const auto text = [](const std::optional<std::int64_t>& bound) {
        return bound ? std::to_string(*bound) : std::string();
      };
      result.shape[axis] =
          dyn_extent(fmt::format("{}[{}:{}:{}]", extent_text(size), text(start), text(stop), step));
    }
  } else {
    result.shape[axis] = slice_range(size, start, stop, step).size;
  }
  return make(Slice{axis, start, stop, step}, {x.node()}, std::move(result));
}

Expr pick(const char* function, const Expr& x, std::size_t axis, std::int64_t position) {
  const Type& type = closed_type(function, x);
  const std::int64_t size = type.shape[axis];
  if (!is_dyn(size) && (position < -size || position >= size)) {
    fail<ValueError>(fmt::format("{}: position {} is outside of axis {} of {}", function, position,
                                 axis, axes_text(type)));
  }
  const std::int64_t at = is_dyn(size) || position >= 0 ? position : position + size;
  const std::size_t rank = type.shape.size();
  // Only a gather takes the one element of a vector, and what it takes is not known to be there
  // before a plan is called.
  if (is_dyn(size) && at < 0) {
    fail<ValueError>(
        fmt::format("{}: position {} counts from the end of axis {}, whose size {} is not known",
                    function, position, axis, extent_text(size)));
  }
  if (is_dyn(size) || rank == 1) return take(function, x, Expr(at), axis);
  // An axis of one element joins a neighbour, which keeps its label: a view.
  const std::size_t first = axis + 1 < rank ? axis : axis - 1;
  const std::string label = type.labels[axis + 1 < rank ? axis + 1 : axis - 1];
  return merge(function, slice(function, x, axis, at, at + 1, 1), first, 2, label);
}

Expr split(const char* function, const Expr& x, std::size_t axis,
           const std::vector<std::string>& labels, const std::vector<std::int64_t>& sizes) {
  const Type& type = closed_type(function, x);
  if (labels.size() != sizes.size() || sizes.empty()) {
    fail<ShapeError>(
        fmt::format("{}: {} labels for {} sizes", function, labels.size(), sizes.size()));
  }
  std::int64_t known = 1;
  std::optional<std::size_t> open;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == -1 && !open) {
      open = i;
    } else if (sizes[i] < 0) {
      fail<ShapeError>(fmt::format("{}: sizes ({}) have {}", function, fmt::join(sizes, ", "),
                                   sizes[i] == -1 ? "two of -1" : "a negative one"));
    } else {
      known = multiply_extents(known, sizes[i]);
    }
  }
  const std::int64_t size = type.shape[axis];
  std::vector<std::int64_t> parts = sizes;
  if (is_dyn(size)) {
    if (!open) {
      fail<ShapeError>(fmt::format("{}: sizes ({}) cannot be known to multiply to {}", function,
                                   fmt::join(sizes, ", "), extent_text(size)));
    }
    parts[*open] = known == 1 ? size : dyn_extent(fmt::format("{}/{}", extent_text(size), known));
  } else {
    if (open && known != 0 && size % known == 0) parts[*open] = size / known;
    std::int64_t product = 1;
    for (const std::int64_t part : parts) product = part < 0 ? -1 : multiply_extents(product, part);
    if (product != size) {
      fail<ShapeError>(fmt::format("{}: axis {} of size {} does not split into ({})", function,
                                   axis, size, fmt::join(sizes, ", ")));
    }
  }
  Dims shape;
  std::vector<std::string> names;
  for (std::size_t d = 0; d < type.shape.size(); ++d) {
    if (d == axis) {
      for (std::size_t i = 0; i < parts.size(); ++i) {
        shape.push_back(parts[i]);
        names.push_back(labels[i]);
      }
    } else {
      shape.push_back(type.shape[d]);
      names.push_back(type.labels[d]);
    }
  }
  return make(Split{axis, labels, sizes}, {x.node()},
              reshaped(type, std::move(shape), std::move(names)));
}

Expr merge(const char* function, const Expr& x, std::size_t first, std::size_t count,
           const std::string& label) {
  const Type& type = closed_type(function, x);
  if (count == 0 || first + count > type.shape.size()) {
    fail<ShapeError>(fmt::format("{}: {} axes from axis {} are not among {}", function, count,
                                 first, axes_text(type)));
  }
  Dims shape;
  std::vector<std::string> labels;
  for (std::size_t d = 0; d < type.shape.size(); ++d) {
    if (d > first && d < first + count) {
      shape.back() = multiply_extents(shape.back(), type.shape[d]);
    } else {
      shape.push_back(type.shape[d]);
      labels.push_back(d == first ? label : type.labels[d]);
    }
  }
  return make(Merge{first, count, label}, {x.node()},
              reshaped(type, std::move(shape), std::move(labels)));
}

Expr expand(const char* function, const Expr& x, std::size_t at, const std::string& label,
            std::int64_t size) {
  const Type& type = closed_type(function, x);
  if (at > type.shape.size()) {
    fail<ShapeError>(
        fmt::format("{}: position {} is beyond the rank of {}", function, at, axes_text(type)));
  }
  if (size < 0 && !is_symbol(size)) {
    fail<ShapeError>(fmt::format("{}: size {} is negative", function, size));
  }
  Dims shape = type.shape;
  std::vector<std::string> labels = type.labels.to_vector(shape.size());
  shape.insert(at, size);
  labels.insert(labels.begin() + static_cast<std::ptrdiff_t>(at), label);
  return make(Expand{at, label, size}, {x.node()},
              reshaped(type, std::move(shape), std::move(labels)));
}

Expr relabel(const char* function, const Expr& x, const std::vector<std::string>& labels,
             bool by_name) {
  const Type& type = closed_type(function, x);
  if (labels.size() != type.shape.size()) {
    fail<ShapeError>(fmt::format("{}: {} labels ({}) for the {} axes of {}", function,
                                 labels.size(), fmt::join(labels, ", "), type.shape.size(),
                                 axes_text(type)));
  }
  Type result = reshaped(type, type.shape, labels);
  result.named = by_name;
  return make(Relabel{labels, by_name}, {x.node()}, std::move(result));
}

Expr concat(const char* function, const std::vector<Expr>& parts, std::size_t axis) {
  if (parts.empty()) fail<ShapeError>(fmt::format("{}: nothing to join", function));
  const Type& first = closed_type(function, parts[0]);
  const std::size_t rank = first.shape.size();
  if (axis >= rank) {
    fail<ShapeError>(fmt::format("{}: axis {} is not among {}", function, axis, axes_text(first)));
  }
  Dims shape = first.shape;
  std::vector<std::string> labels = first.labels.to_vector(rank);
  ElementType element{first.dtype, first.weak};
  std::vector<NodePtr> inputs{parts[0].node()};
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const Type& type = closed_type(function, parts[i]);
    bool fits = type.shape.size() == rank;
    for (std::size_t d = 0; fits && d < rank; ++d) {
      fits = d == axis || type.shape[d] == shape[d] || is_dyn(type.shape[d]) || is_dyn(shape[d]);
      if (!labels[d].empty() && !type.labels[d].empty() && labels[d] != type.labels[d])
        fits = false;
      if (labels[d].empty()) labels[d] = type.labels[d];
    }
    if (!fits) {
      fail<ShapeError>(fmt::format("{}: part {} is {} but part 0 is {}; only axis {} may differ",
                                   function, i, axes_text(type), axes_text(first), axis));
    }
    if (is_dyn(shape[axis]) || is_dyn(type.shape[axis])) {
      shape[axis] = dyn_extent(extent_text(shape[axis]) + "+" + extent_text(type.shape[axis]));
    } else {
      shape[axis] += type.shape[axis];
    }
    element = combine(element, {type.dtype, type.weak});
    inputs.push_back(parts[i].node());
  }
  Type result{element.dtype, false, std::move(shape), Labels(std::move(labels)), {}, false};
  return make(Concat{axis}, std::move(inputs), std::move(result));
}

Expr take(const char* function, const Expr& x, const Expr& at, std::size_t axis) {
  const Type& type = closed_type(function, x);
  const Type& places = closed_type(function, at);
  if (!is_integer(places.dtype)) {
    fail<TypeError>(
        fmt::format("{}: positions are {}, not integers", function, name_of(places.dtype)));
  }
  Dims shape = type.shape;
  std::vector<std::string> labels = type.labels.to_vector(shape.size());
  shape.erase(axis);
  labels.erase(labels.begin() + static_cast<std::ptrdiff_t>(axis));
  for (std::size_t d = 0; d < places.shape.size(); ++d) {
    const std::string& label = places.labels[d];
    const bool used = std::find(labels.begin(), labels.end(), label) != labels.end();
    shape.insert(axis + d, places.shape[d]);
    labels.insert(labels.begin() + static_cast<std::ptrdiff_t>(axis + d),
                  used ? std::string() : label);
  }
  Type result = reshaped(type, std::move(shape), std::move(labels));
  result.weak = false;
  return make(Take{axis}, {x.node(), at.node()}, std::move(result));
}

Expr toeplitz(const char* function, const Expr& x, std::size_t axis, std::int64_t queries,
              const std::vector<std::string>& labels) {
  const Type& type = closed_type(function, x);
  const std::int64_t size = type.shape[axis];
  std::int64_t keys = 0;
  if (is_symbol(queries) || (is_dyn(size) && queries >= 1)) {
    keys = queries == 1
               ? size
               : dyn_extent(fmt::format("{}-{}+1", extent_text(size), extent_text(queries)));
  } else if (queries < 1 || queries > size + 1) {
    fail<ShapeError>(fmt::format("{}: {} diagonals in axis {} of {} do not hold {} rows", function,
                                 extent_text(size), axis, axes_text(type), queries));
  } else {
    keys = size - queries + 1;
  }
  Dims shape = type.shape;
  std::vector<std::string> names = type.labels.to_vector(shape.size());
  shape[axis] = queries;
  shape.insert(axis + 1, keys);
  names[axis] = labels[0];
  names.insert(names.begin() + static_cast<std::ptrdiff_t>(axis) + 1, labels[1]);
  return make(Toeplitz{axis, queries, labels}, {x.node()},
              reshaped(type, std::move(shape), std::move(names)));
}

Expr scan(const char* function, const Expr& x, const std::optional<Expr>& gate, std::size_t axis) {
  const Type& type = closed_type(function, x);
  ElementType element{type.dtype, false};
  Scan node{axis, {}};
  std::vector<NodePtr> inputs{x.node()};
  if (gate) {
    const Type& gates = closed_type(function, *gate);
    Aligned aligned = align(function, type, gates);
    if (!(aligned.type.shape == type.shape)) {
      fail<ShapeError>(fmt::format("{}: the gate {} does not broadcast to {}", function,
                                   axes_text(gates), axes_text(type)));
    }
    node.gate = std::move(aligned.second);
    element = combine(element, {gates.dtype, gates.weak});
    inputs.push_back(gate->node());
  }
  Type result = reshaped(type, type.shape, type.labels.to_vector(type.shape.size()));
  result.dtype = float_dtype(element.dtype);
  result.weak = false;
  return make(std::move(node), std::move(inputs), std::move(result));
}

Expr bounded(const Expr& x, std::int64_t low, std::int64_t high, const std::string& message) {
  return make(Bounded{low, high, message}, {x.node()}, closed_type("bounded", x));
}

bool has_open_axes(const Expr& x) { return !x.node()->type.open.empty(); }

}  // namespace einkern::graph
