// SPDX-License-Identifier: Apache-2.0
// A contraction of any number of operands as steps of a plan.
#include "einsum.h"

#include <algorithm>
#include <utility>

#include "../base/error.h"
#include "loops.h"
#include "term.h"
#include "tree.h"

namespace einkern::plan {
namespace {

/// The same Spec with labels numbered in order of first appearance: everything after it breaks ties
/// by number and still does not depend on how labels are named.
Spec renumbered(const Spec& spec) {
  Spec result;
  result.shapes = spec.shapes;
  std::vector<LabelId> number(spec.sizes.size(), -1);
  const auto rename = [&](const LabelList& labels) {
    LabelList renamed;
    for (const LabelId label : labels) {
      LabelId& known = number[static_cast<std::size_t>(label)];
      if (known < 0) {
        known = static_cast<LabelId>(result.sizes.size());
        result.sizes.push_back(spec.sizes[static_cast<std::size_t>(label)]);
        const bool named = static_cast<std::size_t>(label) < spec.names.size();
        result.names.push_back(named ? spec.names[static_cast<std::size_t>(label)] : "");
      }
      renamed.push_back(known);
    }
    return renamed;
  };
  for (const LabelList& input : spec.inputs) result.inputs.push_back(rename(input));
  result.output = rename(spec.output);
  return result;
}

/// a * b elementwise.
map::Program product_program(DType dtype) {
  return {{{map::Op::load, dtype, -1, -1, -1, 0},
           {map::Op::load, dtype, -1, -1, -1, 1},
           {map::Op::mul, dtype, 0, 1, -1, 0}}};
}

class EinsumPlanner {
 public:
  EinsumPlanner(Builder& builder, const Spec& spec, const std::vector<Operand>& operands,
                const Operand& out)
      : builder_(builder),
        spec_(renumbered(spec)),
        printer_(spec_.names),
        dtype_(compute_dtype(out.dtype)),
        out_(make_term(out, spec_.output)) {
    for (std::size_t p = 0; p < operands.size(); ++p) {
      terms_.push_back(make_term(operands[p], spec_.inputs[p]));
    }
    drop_stretched_axes();
    if (element_count(out_.operand.layout.shape) != element_count(out.layout.shape)) {
      builder_.add(Fill{out, 0}, "off the diagonal");
    }
  }

  void plan(const PathChoice& choice) {
    const Path path = find_path(simplified(), choice);
    if (terms_.size() > 1) builder_.append_path(to_string(path));
    const LabelList output = by_stride(out_);
    tree_ = make_tree(terms_, output, spec_.sizes.size(), path);
    for (std::size_t i = terms_.size(); i < tree_.size(); ++i) add_pair(i);
    if (tree_.back().is_operand()) {
      Term last = is_direct(tree_.back()) ? use(tree_.size() - 1, &out_) : use(tree_.size() - 1);
      if (last.operand.value == out_.operand.value) return;
      terms_.back() = std::move(last);
    } else if (is_direct(tree_.back())) {
      return;
    }
    const Term& result = terms_.back();
    builder_.add(Copy{aligned(result, out_), out_.operand},
                 printer_.str({&result.labels}, out_.labels));
  }

 private:
  /// An axis of stride 0 says nothing that the other operands, or the output, do not say: it is
  /// treated as the axis of size 1 it was stretched from. Summed ones stay in one operand, which
  /// counts them.
  void drop_stretched_axes() {
    std::vector<std::int32_t> holders(spec_.sizes.size());
    for (const Term& term : terms_) {
      for (const LabelId label : term.labels) ++holders[static_cast<std::size_t>(label)];
    }
    for (const LabelId label : out_.labels) ++holders[static_cast<std::size_t>(label)];
    for (Term& term : terms_) {
      const LabelList labels = term.labels;
      for (const LabelId label : labels) {
        const auto at = std::find(term.labels.begin(), term.labels.end(), label);
        const auto axis = static_cast<std::size_t>(at - term.labels.begin());
        std::int32_t& left = holders[static_cast<std::size_t>(label)];
        if (term.operand.layout.strides[axis] != 0 || left == 1) continue;
        drop_label(term, label);
        --left;
      }
    }
  }

  /// What the path search sees: the terms as they are after squeezing.
  Spec simplified() const {
    Spec spec;
    spec.sizes = spec_.sizes;
    spec.output = out_.labels;
    for (const Term& term : terms_) {
      spec.inputs.push_back(term.labels);
      spec.shapes.push_back(term.operand.layout.shape);
    }
    return spec;
  }

  /// Can the last step write into the output as it is?
  bool is_direct(const Node& node) const {
    return out_.operand.dtype == dtype_ && node.labels.size() == out_.labels.size();
  }

  Term temporary(const LabelList& labels) {
    Shape shape;
    for (const LabelId label : labels) {
      shape.push_back(spec_.sizes[static_cast<std::size_t>(label)]);
    }
    return {builder_.add_temporary(dtype_, shape, printer_.str(labels)), labels};
  }

  /// A converted copy in the compute dtype. Axes of stride 0 are not written out.
  Term converted(const Term& term) {
    Term distinct = term;
    for (std::size_t axis = 0; axis < term.labels.size(); ++axis) {
      if (term.operand.layout.strides[axis] == 0) drop_label(distinct, term.labels[axis]);
    }
    const Term copy = temporary(by_stride(distinct));
    builder_.add(Copy{aligned(distinct, copy), copy.operand},
                 printer_.str({&distinct.labels}, copy.labels));
    return {aligned(copy, term), term.labels};
  }

  /// The term of a node, ready for a pair: an operand is converted when it must be and loses the
  /// labels that nothing else needs, into `target` when given.
  Term use(std::size_t node, const Term* target = nullptr) {
    Term term = terms_[node];
    const LabelList& summed = tree_[node].summed;
    if (term.operand.dtype != dtype_ && (!summed.empty() || tree_.size() > 1)) {
      // Perhaps the pair can do it.
      if (summed.empty() && is_half_float(term.operand.dtype)) return term;
      term = converted(term);
    }
    if (summed.empty()) return term;
    LabelList kept = by_stride(term);
    std::erase_if(kept, [&](LabelId label) { return contains(summed, label); });
    Term sum = target != nullptr ? *target : temporary(kept);
    add_sum(term, sum);
    return sum;
  }

  void add_sum(const Term& in, const Term& out) {
    AddressedLoops kept, reduced;
    for (std::size_t axis = 0; axis < in.labels.size(); ++axis) {
      AddressedLoop loop;
      loop.size = in.operand.layout.shape[axis];
      loop.a = in.operand.layout.strides[axis];
      const auto at = std::find(out.labels.begin(), out.labels.end(), in.labels[axis]);
      if (at == out.labels.end()) {
        reduced.push_back(loop);
      } else {
        loop.c = out.operand.layout.strides[static_cast<std::size_t>(at - out.labels.begin())];
        kept.push_back(loop);
      }
    }
    order_loops(kept, &Loop::c);
    order_loops(reduced, &Loop::a);
    fuse_loops(kept);
    fuse_loops(reduced);
    builder_.add(Reduce{ReduceOp::sum, in.operand, out.operand, plain(kept), plain(reduced)},
                 printer_.str({&in.labels}, out.labels));
  }

  void add_pair(std::size_t node) {
    Term a = use(static_cast<std::size_t>(tree_[node].left));
    Term b = use(static_cast<std::size_t>(tree_[node].right));
    const bool last = node + 1 == tree_.size() && is_direct(tree_[node]);
    const Term c = last ? out_ : temporary(tree_[node].labels);
    std::string note = printer_.str({&a.labels, &b.labels}, c.labels);
    const auto contract = [&] {
      return make_contract(a.operand, a.labels, b.operand, b.labels, c.operand, c.labels,
                           builder_.target());
    };
    const bool elementwise = is_elementwise(a, b, c);
    if (elementwise || !reads_halves(contract())) {
      for (Term* term : {&a, &b}) {
        if (term->operand.dtype != dtype_) *term = converted(*term);
      }
    }
    if (elementwise) {
      builder_.add(Map{product_program(dtype_), {aligned(a, c), aligned(b, c)}, c.operand},
                   std::move(note));
    } else {
      builder_.add(contract(), std::move(note));
    }
    terms_.push_back(c);
  }

  /// Nothing is summed, and the product is no large outer product: one operand has all labels, or
  /// the shared ones outweigh the others.
  bool is_elementwise(const Term& a, const Term& b, const Term& c) const {
    double shared = 1, own_a = 1, own_b = 1;
    for (const LabelId label : a.labels) {
      const auto size = static_cast<double>(spec_.sizes[static_cast<std::size_t>(label)]);
      if (!contains(c.labels, label)) return false;
      (contains(b.labels, label) ? shared : own_a) *= size;
    }
    for (const LabelId label : b.labels) {
      if (contains(a.labels, label)) continue;
      own_b *= static_cast<double>(spec_.sizes[static_cast<std::size_t>(label)]);
    }
    return own_a == 1 || own_b == 1 || shared > own_a * own_b;
  }

  Builder& builder_;
  Spec spec_;
  TermPrinter printer_;
  DType dtype_;
  Term out_;
  std::vector<Term> terms_;  // by node: operands, then results
  std::vector<Node> tree_;
};

}  // namespace

void add_einsum(Builder& builder, const Spec& spec, const std::vector<Operand>& operands,
                const Operand& out, const PathChoice& path) {
  EINKERN_CHECK(operands.size() == spec.inputs.size());
  EINKERN_CHECK(out.layout.rank() == spec.output.size());
  if (path.method == PathMethod::given) find_path(spec, path);  // checked even if nothing runs
  const auto is_zero = [](std::int64_t size) { return size == 0; };
  if (std::any_of(out.layout.shape.begin(), out.layout.shape.end(), is_zero)) return;
  if (operands.empty()) {
    builder.add(Fill{out, 1});  // the empty product
    return;
  }
  if (std::any_of(spec.sizes.begin(), spec.sizes.end(), is_zero)) {
    builder.add(Fill{out, 0});  // the empty sum
    return;
  }
  EinsumPlanner(builder, spec, operands, out).plan(path);
}

}  // namespace einkern::plan
