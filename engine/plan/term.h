// SPDX-License-Identifier: Apache-2.0
// A labelled operand with every question of notation removed: no repeated label, no axis of size 1.
#pragma once

#include <string>
#include <vector>

#include "../spec/spec.h"
#include "step.h"

namespace einkern::plan {

using LabelList = std::vector<LabelId>;

/// A view whose axes have different labels and sizes other than 1.
struct Term {
  Operand operand;
  LabelList labels;
};

/// Repeated labels become the diagonal (strides added); axes of size 1, broadcast or not, are
/// dropped.
Term make_term(const Operand& operand, const LabelList& labels);

/// The term without the axis of `label`, at its first element.
void drop_label(Term& term, LabelId label);

/// The operand with exactly the axes of `like`, in that order: stride 0 where the term lacks the
/// label.
Operand aligned(const Term& term, const Term& like);

/// The labels of a term from its largest to its smallest stride; equal strides keep their order.
LabelList by_stride(const Term& term);

bool contains(const LabelList& labels, LabelId label) noexcept;
/// Whether a label occurs twice.
bool repeats(const LabelList& labels) noexcept;

/// How labels are printed in the notes of steps: `bhqd,bhkd->bhqk`, or `[batch q],[k q]->[k]` when
/// a name has several characters. Labels without a name get letters by order of first appearance.
class TermPrinter {
 public:
  /// `names` by label, in order of first appearance.
  explicit TermPrinter(std::vector<std::string> names);
  std::string str(const LabelList& labels) const;
  std::string str(const std::vector<const LabelList*>& inputs, const LabelList& output) const;

 private:
  std::vector<std::string> names_;
};

}  // namespace einkern::plan
