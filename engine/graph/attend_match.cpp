// SPDX-License-Identifier: Apache-2.0
// Gives every axis of a pair of contractions its role.
#include "attend_match.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "../plan/term.h"
#include "attend_operands.h"
#include "hidden_keys.h"
#include "taken.h"
#include "walk.h"

namespace einkern::graph {
namespace {

using Role = plan::ScoreAxis::Role;
using List = std::vector<std::int32_t>;

/// The dot products that scores are made of, and their axes.
struct FoundDot {
  NodePtr node;
  AxisMap axes;
};

/// The same positions, to lie on axes of one size?
bool is_same_check(const Node& a, const Node& b) {
  const auto &x = std::get<Bounded>(a.op), &y = std::get<Bounded>(b.op);
  return a.inputs == b.inputs && x.low == y.low && x.high == y.high && x.message == y.message;
}

class Matcher {
 public:
  Matcher(const Candidate& candidate, std::string& why)
      : candidate_(candidate), axes_(candidate.weights.scores->type.shape), why_(why) {}

  NodePtr match() {
    // Every cut makes some axis finer, so this ends.
    for (;;) {
      wanted_.reset();
      if (NodePtr found = attempt()) return found;
      if (!wanted_) return nullptr;
      axes_.cut(*wanted_);
    }
  }

 private:
  const NodePtr& scores() const { return candidate_.weights.scores; }
  bool stop(std::string why) {
    why_ = std::move(why);
    return false;
  }

  NodePtr attempt() {
    op_ = Attend{};
    streamed_.assign(axes_.sizes().size(), false);
    for (const std::size_t axis : candidate_.weights.axes) stream(axes_.scores()[axis]);
    if (!follow_path()) return nullptr;
    if (!candidate_.normalise) stream_contracted();
    const std::optional<FoundDot> dot = find_dot();
    if (!dot || !read_sum() || !read_dot(*dot) || !read_division() || !read_tables()) {
      return nullptr;
    }
    if (candidate_.normalise ? are_few() : !is_worthwhile(*dot)) return nullptr;
    return build(*dot);
  }

  /// Do three steps of their own cost less than setting up a stream? At 16 scores of one head, or
  /// one key, they take 0.8 to 0.95 of its time; at 8 scores of two heads, 1.2.
  bool are_few() {
    constexpr std::int64_t kFewScores = 16;
    std::int64_t scores = 1, keys = 1, batches = 1;
    for (const Attend::Axis& axis : op_.axes) {
      if (is_dyn(axis.size)) return false;
      scores *= axis.size;
      if (axis.role == Role::streamed) keys *= axis.size;
      if (axis.role == Role::batch) batches *= axis.size;
    }
    const bool few = keys == 1 || (batches == 1 && scores <= kFewScores);
    return few && !stop("so few scores (one key, or 16 of one head) cost less apart");
  }

  void stream(const List& axes) {
    for (const std::int32_t axis : axes) streamed_[static_cast<std::size_t>(axis)] = true;
  }

  /// The axes of the contraction's operand, and of the factor on the way.
  bool follow_path() {
    weights_ = axes_.scores();
    for (const PathStep& step : candidate_.path) {
      const Node& node = *step.node;
      if (const auto* op = std::get_if<Elementwise>(&node.op)) {
        AxisMap next(node.type.shape.size());
        std::vector<bool> covered(next.size(), false);
        const Alignment& alignment = op->alignment[step.input];
        const Dims& shape = node.inputs[step.input]->type.shape;
        for (std::size_t d = 0; d < shape.size(); ++d) {
          const auto axis = static_cast<std::size_t>(alignment.axes[d]);
          covered[axis] = shape[d] == node.type.shape[axis];
          next[axis] = weights_[d];
        }
        for (std::size_t axis = 0; axis < next.size(); ++axis) {
          if (!covered[axis] && node.type.shape[axis] != 1) {
            return stop("a factor after the softmax has axes that the weights lack");
          }
        }
        weights_ = std::move(next);
      } else {
        auto next = axes_.outwards(node, weights_, wanted_);
        if (!next) {
          return wanted_ ? false
                         : stop(std::holds_alternative<Slice>(node.op)
                                    ? "only a slice of the weights is summed"
                                    : "a view of the weights takes axes apart that stay together");
        }
        weights_ = std::move(*next);
      }
      if (step.node == candidate_.factor.get()) op_.factor = weights_;
    }
    return true;
  }

  /// Without a softmax, the streamed axes are those that the contraction sums over.
  void stream_contracted() {
    const Einsum& sum = *candidate_.sum;
    const List& labels = sum.inputs()[candidate_.operand];
    for (std::size_t d = 0; d < labels.size(); ++d) {
      if (!holds(sum.output(), labels[d])) stream(weights_[d]);
    }
  }

  /// Looks through elementwise nodes and views for the one contraction that has all streamed axes.
  std::optional<FoundDot> find_dot() {
    std::optional<FoundDot> found;
    // A tensor may well meet the scores in two orientations (segments of queries and of keys).
    constexpr std::size_t kMostOrientations = 8;
    std::unordered_map<const Node*, std::vector<AxisMap>> seen;
    std::vector<Place> pending{{scores(), axes_.scores()}};
    while (!pending.empty()) {
      Place place = std::move(pending.back());
      pending.pop_back();
      const Node& node = *place.node;
      std::vector<AxisMap>& orientations = seen[&node];
      if (holds(orientations, place.axes)) continue;
      orientations.push_back(place.axes);
      if (orientations.size() > kMostOrientations) {
        stop("one tensor is part of the scores in many orientations");
        return std::nullopt;
      }
      if (std::holds_alternative<Einsum>(node.op)) {
        List all;
        for (const List& list : place.axes) all.insert(all.end(), list.begin(), list.end());
        bool complete = true;
        for (std::size_t a = 0; a < streamed_.size(); ++a) {
          complete &= !streamed_[a] || holds(all, static_cast<std::int32_t>(a));
        }
        if (!complete) continue;
        if (found) {
          stop(found->node == place.node ? "one product is part of the scores in two orientations"
                                         : "the scores are made of two products");
          return std::nullopt;
        }
        found = FoundDot{place.node, std::move(place.axes)};
      } else if (std::holds_alternative<Elementwise>(node.op)) {
        for (std::size_t i = 0; i < node.inputs.size(); ++i) {
          if (!node.inputs[i]->type.open.empty()) continue;
          pending.push_back(input_place(place, i, axes_, wanted_));
          if (wanted_) return std::nullopt;
        }
      } else if (is_view(node)) {
        const NodePtr before = place.node;
        place = behind_views(std::move(place), axes_, wanted_);
        if (wanted_) return std::nullopt;
        if (place.node != before) pending.push_back(std::move(place));
      }
    }
    if (!found) stop("no einsum with all the axes that are summed makes the scores");
    return found;
  }

  /// The weighted sum: which labels are streamed, kept or columns.
  bool read_sum() {
    const Einsum& sum = *candidate_.sum;
    const std::size_t w = candidate_.operand, v = 1 - w;
    if (plan::repeats(sum.inputs()[w]) || plan::repeats(sum.inputs()[v]) ||
        plan::repeats(sum.output())) {
      return stop("a label is repeated in the einsum that sums the weights");
    }
    const auto& inputs = candidate_.node->inputs;
    const auto sizes = label_sizes(sum, inputs);
    const Dims& w_shape = inputs[w]->type.shape;
    const Dims& v_shape = inputs[v]->type.shape;
    std::unordered_map<std::int32_t, List> made_of;  // labels of the weights
    for (std::size_t d = 0; d < w_shape.size(); ++d) {
      const std::int32_t label = sum.inputs()[w][d];
      if (w_shape[d] != sizes.at(label)) continue;  // broadcasts: the label is the values' own
      made_of[label] = weights_[d];
      const bool kept = holds(sum.output(), label);
      const bool in_values = holds(sum.inputs()[v], label);
      for (const std::int32_t axis : weights_[d]) {
        const bool streamed = streamed_[static_cast<std::size_t>(axis)];
        if (streamed && kept) return stop("the einsum keeps an axis that the softmax runs over");
        if (!streamed && !kept) {
          return stop("the einsum sums over an axis that the softmax does not run over");
        }
        if (!kept && !in_values) return stop("the weights are summed without values");
      }
    }
    op_.v.clear();
    for (std::size_t d = 0; d < v_shape.size(); ++d) {
      const std::int32_t label = sum.inputs()[v][d];
      if (const auto at = made_of.find(label); at != made_of.end()) {
        const bool alone = v_shape[d] != sizes.at(label);
        if (alone && !holds(sum.output(), label)) {
          return stop("the values broadcast along an axis that is summed");
        }
        op_.v.push_back(alone ? List{} : at->second);
        continue;
      }
      if (!holds(sum.output(), label)) return stop("the values have an axis of their own to sum");
      op_.v.push_back({~static_cast<std::int32_t>(op_.columns.size())});
      made_of[label] = op_.v.back();
      op_.columns.push_back(v_shape[d]);
    }
    for (const std::int32_t label : sum.output()) op_.out.push_back(made_of.at(label));
    values_ = behind_copies({inputs[v], op_.v}, axes_, wanted_);
    if (wanted_) return false;
    op_.v = values_.axes;
    return true;
  }

  /// The first contraction: which operand holds the keys, and the roles of the remaining axes.
  bool read_dot(const FoundDot& dot) {
    if (dot.node->type.dtype != candidate_.node->type.dtype) {
      return stop("the scores are cast to another dtype");
    }
    std::optional<DotOperands> operands = read_operands(dot.node, dot.axes, streamed_, why_);
    if (!operands) return false;
    op_.inner = operands->inner;
    scales_.clear();
    Place* const sides[] = {&operands->q, &operands->k};
    for (Place* side : sides) {
      take_scales(side->node, dot.node->type.dtype, scales_);
      *side = behind_copies(std::move(*side), axes_, wanted_);
      if (wanted_) return false;
    }
    queries_ = std::move(operands->q);
    keys_ = std::move(operands->k);
    op_.q = queries_.axes;
    op_.k = keys_.axes;
    for (std::size_t a = 0; a < streamed_.size(); ++a) {
      const auto axis = static_cast<std::int32_t>(a);
      const auto in = [&](const AxisMap& map) {
        return std::any_of(map.begin(), map.end(),
                           [&](const List& list) { return holds(list, axis); });
      };
      if (!streamed_[a] && axes_.sizes()[a] != 1 && in(op_.k) && !in(op_.v)) {
        return stop("the keys have an axis that the values lack, as of other heads");
      }
      const Role role = streamed_[a]             ? Role::streamed
                        : in(op_.k) || in(op_.v) ? Role::batch
                                                 : Role::row;
      op_.axes.push_back({role, axes_.sizes()[a]});
    }
    return true;
  }

  /// A division behind the contraction: by the sum of these very exponentials.
  bool read_division() {
    if (!candidate_.division) return true;
    const Division& division = *candidate_.division;
    AxisMap lists = op_.out;
    for (const Node* view : division.views) {
      auto next = axes_.outwards(*view, lists, wanted_);
      if (!next) return false;
      lists = std::move(*next);
    }
    const Quotient& quotient = division.quotient;
    const auto divisor = divisor_place({division.node, std::move(lists)}, quotient, axes_, wanted_);
    bool guarded = false;
    if (wanted_) return false;
    if (!divisor ||
        !is_sum_of(*divisor, candidate_.core, candidate_.weights, axes_, guarded, wanted_)) {
      return wanted_ ? false : stop("the sum is divided by something that is not the weights' sum");
    }
    empty_is_zero_ = guarded && is_replaced(candidate_.weights);
    return true;
  }

  /// Keys and values that a table picks are read through it.
  bool read_tables() {
    tables_.clear();
    for (auto [operand, taken] : {std::pair{&keys_, &op_.k_taken}, {&values_, &op_.v_taken}}) {
      auto found = behind_take(*operand, candidate_.node->type.dtype, axes_, streamed_, wanted_);
      if (wanted_) return false;
      if (!found) continue;
      *operand = {std::move(found->from), found->taken.in};
      *taken = std::move(found->taken);
      const bool again = !tables_.empty() && is_same_check(*tables_[0], *found->table);
      tables_.push_back(again ? tables_[0] : std::move(found->table));
    }
    return true;
  }

  /// Without a softmax, a pair of products may well be faster apart.
  bool is_worthwhile(const FoundDot& dot) {
    // Tiles of scores reach nine tenths of what a matrix product does; beyond this width that costs
    // more than the scores' way through memory.
    constexpr std::int64_t kMostWidth = 512;
    // Rows that pay for a copy of keys whose inner labels do not lie side by side.
    // A small copy always does.
    constexpr std::int64_t kRowsForCopy = 256, kSmallCopy = 4096;
    std::int64_t inner = 1, columns = 1, rows = 1, keys = 1;
    for (const std::int64_t size : op_.inner) inner *= size;
    for (const std::int64_t size : op_.columns) columns *= size;
    for (const Attend::Axis& axis : op_.axes) (axis.role == Role::row ? rows : keys) *= axis.size;
    if (inner + columns > kMostWidth) return stop("products as wide as these are faster apart");
    if (rows < kRowsForCopy && keys * inner > kSmallCopy && !lies_dense(keys_)) {
      return stop("for so few rows it does not pay to rearrange the keys");
    }
    std::unordered_set<const Node*> dependent{dot.node.get()};
    for (const NodePtr& node : topological_order({scores()})) {
      const bool depends =
          std::any_of(node->inputs.begin(), node->inputs.end(),
                      [&](const NodePtr& input) { return dependent.contains(input.get()); });
      if (!depends) continue;
      dependent.insert(node.get());
      if (!std::holds_alternative<Elementwise>(node->op) && !is_view(*node)) {
        return stop("the weights depend on the whole of a row");
      }
    }
    return true;
  }

  NodePtr build(const FoundDot& dot) {
    NodePtr products = std::make_shared<const Node>(Dot{}, std::vector<NodePtr>{}, dot.node->type);
    for (const Scale& scale : scales_) products = scaled(products, scale);
    const auto with = [&](const NodePtr& root, const NodePtr& from, const NodePtr& to) {
      return transform({root}, [&](const NodePtr& node, const Node& original) {
        return &original == from.get() ? to : node;
      })[0];
    };
    const NodePtr parted = with(scores(), dot.node, products);
    const Weights& weights = candidate_.weights;
    op_.scores = axes_.scores();
    op_.normalised = weights.axes;
    op_.normalise = candidate_.normalise;
    op_.nan_when_empty = weights.nan_when_empty && !empty_is_zero_;
    op_.floor = weights.floor;
    op_.sink = weights.sink_alignment;
    op_.replaced = scores();
    std::vector<NodePtr> inputs;
    inputs.reserve(9);  // GCC 12 warns of bounds where this list grows from four
    inputs = {queries_.node, keys_.node, values_.node, parted};
    if (candidate_.factor != nullptr) {
      op_.has_factor = true;
      inputs.push_back(
          with(candidate_.factor, candidate_.core,
               std::make_shared<const Node>(Dot{}, std::vector<NodePtr>{}, candidate_.core->type)));
    }
    if (std::holds_alternative<SelectEinsum>(candidate_.node->op)) {
      if (NodePtr visible = visible_part(parted, false)) {
        op_.has_visible = true;
        inputs.push_back(std::move(visible));
      }
    }
    inputs.insert(inputs.end(), tables_.begin(), tables_.end());
    if (weights.sink != nullptr) {
      op_.has_sink = true;
      inputs.push_back(weights.sink);
    }
    return std::make_shared<const Node>(std::move(op_), std::move(inputs), candidate_.node->type);
  }

  const Candidate& candidate_;
  ScoreAxes axes_;
  std::string& why_;
  std::optional<Cut> wanted_;
  std::vector<bool> streamed_;  // by finer axis
  AxisMap weights_;             // of the contraction's operand
  Place queries_, keys_, values_;
  std::vector<NodePtr> tables_;  // of keys and values that are taken
  std::vector<Scale> scales_;
  bool empty_is_zero_ = false;
  Attend op_;
};

}  // namespace

NodePtr match_attend(const Candidate& candidate, std::string& why) {
  return Matcher(candidate, why).match();
}

}  // namespace einkern::graph
