// SPDX-License-Identifier: Apache-2.0
// The nodes of the lazy graph: a closed variant of operations, each with its inferred type.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "../base/dtype.h"
#include "../base/labels.h"
#include "../base/layout.h"
#include "../map/program.h"
#include "../plan/path.h"
#include "../plan/step.h"
#include "../tensor/tensor.h"
#include "named_equation.h"

namespace einkern::graph {

struct Node;
using NodePtr = std::shared_ptr<const Node>;

/// An axis that waits for one of that name (or at that negative position) in what it meets.
struct OpenAxis {
  std::string label;          // empty: by position
  std::int64_t position = 0;  // negative, counted from the right
  friend bool operator==(const OpenAxis&, const OpenAxis&) = default;
};

/// What is known of a node before it runs.
struct Type {
  DType dtype = DType::f32;
  bool weak = false;  // made only of scalars and `index`: takes the dtype of what it meets
  Dims shape;         // negative: a dyn size (see extent.h)
  Labels labels;
  std::vector<OpenAxis> open;
  bool named = false;  // aligns by name
};

// Operations. Inputs are in Node::inputs.
struct Leaf {
  Tensor tensor;

  explicit Leaf(const Tensor& of) : tensor(of) {}
};
struct Input {
  std::int64_t id;  // unique in the process
};
struct Constant {
  map::Scalar value;
};
struct Index {};  // its one open axis is in the type
/// Where the axes of one operand of an elementwise node go: `axes[d]` is the result's axis for the
/// operand's axis d; `open[o]` is the result's axis that closes the operand's open axis o, or ~j
/// when it stays open as the result's open axis j.
struct Alignment {
  std::vector<std::int32_t> axes, open;
};
struct Elementwise {
  map::Op op;
  std::vector<Alignment> alignment;  // one per input
};
struct Einsum {
  std::shared_ptr<const NamedEquation> named;
  PathChoice path = {};

  Einsum(std::shared_ptr<const NamedEquation> equation, PathChoice choice)
      : named(std::move(equation)), path(std::move(choice)) {}
  explicit Einsum(ResolvedEquation equation)
      : named(std::make_shared<const NamedEquation>(std::move(equation))) {}

  const auto& inputs() const noexcept { return named->equation.inputs; }
  const auto& output() const noexcept { return named->equation.output; }
  const auto& names() const noexcept { return named->equation.names; }
};
struct Reduce {
  plan::ReduceOp op;
  std::vector<std::size_t> axes;  // increasing
  bool keep;
};
struct Softmax {
  plan::SoftmaxKind kind;
  std::vector<std::size_t> axes;  // increasing
  Alignment sink;                 // of input 1, when there is one, to the axes that remain
};
struct Permute {
  std::vector<std::size_t> order;
};
struct Slice {
  std::size_t axis;
  std::optional<std::int64_t> start, stop;
  std::int64_t step;
};
struct Split {
  std::size_t axis;
  std::vector<std::string> labels;
  std::vector<std::int64_t> sizes;
};
struct Merge {
  std::size_t first, count;
  std::string label;
};
struct Expand {
  std::size_t at;
  std::string label;
  std::int64_t size;
};
struct Relabel {
  std::vector<std::string> labels;
  bool by_name;
};
struct Concat {
  std::size_t axis;
};
/// The elements x[..., t[...], ...] of input 0 at the positions along one axis that input 1 holds:
/// the axes of input 1 stand in place of that axis.
struct Take {
  std::size_t axis;
};
/// t[..., k - q + queries - 1, ...] of one axis as two, q and k: a view along the diagonals.
struct Toeplitz {
  std::size_t axis;
  std::int64_t queries;
  std::vector<std::string> labels;  // of q and k
};
/// s[t] = gate[t] s[t - 1] + x[t] along one axis; input 1, when there is one, is the gate.
struct Scan {
  std::size_t axis;
  Alignment gate;
};
/// Its input, whose elements are checked to lie in low..high when the plan runs.
struct Bounded {
  std::int64_t low, high;
  std::string message;  // `{}`: the first element that does not
};
// Made by rules only.
/// Which elements of masked scores are visible: the conjunction of its inputs, each negated on
/// demand. Axes that no condition depends on have size 1.
struct Visible {
  std::vector<Alignment> alignment;  // one per condition
  std::vector<bool> negated;
};
/// An einsum that skips products of hidden weights. The last input is a Visible-like boolean with
/// one axis per axis of operand `weights`.
struct SelectEinsum {
  Einsum einsum;
  std::size_t weights;
};

/// The dot products of the Attend node whose scores this is part of, or the weights of one whose
/// factor it is part of: known only tile by tile.
struct Dot {};
/// Scores, softmax and weighted sum in one. Inputs: q, k, v, the scores (elementwise nodes and
/// views over a Dot), then the factor of the weights (over another Dot), `visible`, the tables of k
/// and of v, and the sink where there are such.
struct Attend {
  struct Axis {
    plan::ScoreAxis::Role role;
    std::int64_t size;
  };
  using Lists = std::vector<std::vector<std::int32_t>>;
  /// Keys or values are elements of their input at the positions along `axis` that a table holds.
  struct Taken {
    struct Part {
      std::size_t axis;
      std::int64_t size;
    };
    std::vector<Part> parts;  // `axes` in order, the streamed ones cut as fine as the table needs
    Lists in, at;  // what the axes of the input and of the table are made of: numbers of `parts`
    std::size_t axis = 0;
  };
  std::vector<Axis> axes;  // the axes of the scores, cut as fine as the views on the way need
  // What the axes of each tensor are made of, outermost first: numbers of `axes`, or ~i for the
  // i-th inner axis (of q and k) or column axis (of v and out); empty for an axis that broadcasts.
  Lists scores, q, k, v, out, factor;
  std::optional<Taken> k_taken, v_taken;     // then k and v are made of what the takes give
  std::vector<std::int64_t> inner, columns;  // sizes
  Alignment sink;                            // of the sink to the axes of the scores that remain
  std::vector<std::size_t> normalised;       // axes of the scores that do not
  bool has_factor = false, has_visible = false, has_sink = false;
  bool normalise = true;        // false: the scores are the weights
  bool nan_when_empty = false;  // rows that are -inf everywhere give NaN, else 0
  NodePtr floor;                // a scalar that the subtracted maximum never falls below, or null
  NodePtr replaced;  // the scores before they were taken apart, for others that share them
};
/// The logsumexp that the Attend node in input 0 finds on its way.
struct AttendLogsumexp {};

using Operation =
    std::variant<Leaf, Input, Constant, Index, Elementwise, Einsum, Reduce, Softmax, Permute, Slice,
                 Split, Merge, Expand, Relabel, Concat, Take, Toeplitz, Scan, Bounded, Visible,
                 SelectEinsum, Dot, Attend, AttendLogsumexp>;

/// One immutable node. Destroying the last handle of a deep graph does not recurse.
struct Node {
  Operation op;
  std::vector<NodePtr> inputs;
  Type type;

  // The operation is made in place: a tensor moved into it twice was 2 % of a small call.
  template <class O, class T>
  Node(O&& o, std::vector<NodePtr> in, T&& t)
      : op(std::forward<O>(o)), inputs(std::move(in)), type(std::forward<T>(t)) {}
  /// A leaf of this tensor.
  explicit Node(const Tensor& tensor) : op(std::in_place_type<Leaf>, tensor) {
    type.dtype = tensor.dtype();
    type.shape = tensor.shape();
    type.labels = tensor.labels();
  }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node();
};

}  // namespace einkern::graph
