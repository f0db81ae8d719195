// SPDX-License-Identifier: Apache-2.0
// Labelled operands: diagonals and squeezed axes as views, alignment by label, and their text.
#include "term.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <unordered_set>

#include "../base/caret.h"
#include "../base/error.h"

namespace einkern::plan {
Term make_term(const Operand& operand, const LabelList& labels) {
  EINKERN_CHECK(labels.size() == operand.layout.rank());
  Term term{{operand.value, operand.dtype, {{}, {}, operand.layout.offset}}, {}};
  for (std::size_t axis = 0; axis < labels.size(); ++axis) {
    const std::int64_t size = operand.layout.shape[axis], stride = operand.layout.strides[axis];
    if (size == 1) continue;
    const auto seen = std::find(term.labels.begin(), term.labels.end(), labels[axis]);
    if (seen == term.labels.end()) {
      term.labels.push_back(labels[axis]);
      term.operand.layout.shape.push_back(size);
      term.operand.layout.strides.push_back(stride);
    } else {
      const auto at = static_cast<std::size_t>(seen - term.labels.begin());
      EINKERN_CHECK(term.operand.layout.shape[at] == size);
      term.operand.layout.strides[at] += stride;
    }
  }
  return term;
}

void drop_label(Term& term, LabelId label) {
  const auto at = std::find(term.labels.begin(), term.labels.end(), label);
  EINKERN_CHECK(at != term.labels.end());
  const auto axis = static_cast<std::size_t>(at - term.labels.begin());
  term.operand.layout.shape.erase(axis);
  term.operand.layout.strides.erase(axis);
  term.labels.erase(at);
}

Operand aligned(const Term& term, const Term& like) {
  Operand view = term.operand;
  view.layout.shape = like.operand.layout.shape;
  view.layout.strides = Strides(like.labels.size(), 0);
  for (std::size_t axis = 0; axis < term.labels.size(); ++axis) {
    const auto at = std::find(like.labels.begin(), like.labels.end(), term.labels[axis]);
    EINKERN_CHECK(at != like.labels.end());
    view.layout.strides[static_cast<std::size_t>(at - like.labels.begin())] =
        term.operand.layout.strides[axis];
  }
  return view;
}

LabelList by_stride(const Term& term) {
  std::vector<std::size_t> axes(term.labels.size());
  for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = i;
  const Strides& strides = term.operand.layout.strides;
  std::stable_sort(axes.begin(), axes.end(), [&](std::size_t x, std::size_t y) {
    return std::abs(strides[x]) > std::abs(strides[y]);
  });
  LabelList labels;
  for (const std::size_t axis : axes) labels.push_back(term.labels[axis]);
  return labels;
}

bool contains(const LabelList& labels, LabelId label) noexcept {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

bool repeats(const LabelList& labels) noexcept {
  for (auto label = labels.begin(); label != labels.end(); ++label) {
    if (std::find(label + 1, labels.end(), *label) != labels.end()) return true;
  }
  return false;
}

TermPrinter::TermPrinter(std::vector<std::string> names) : names_(std::move(names)) {
  const std::unordered_set<std::string> taken(names_.begin(), names_.end());
  std::size_t next = 0;
  for (std::string& name : names_) {
    while (name.empty()) {
      // a ... z, A ... Z, then a1, b1, ...
      constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
      std::string made(1, kLetters[next % kLetters.size()]);
      if (next >= kLetters.size()) made += std::to_string(next / kLetters.size());
      ++next;
      if (!taken.contains(made)) name = std::move(made);
    }
  }
}

std::string TermPrinter::str(const LabelList& labels) const {
  std::vector<std::string> names;
  bool short_names = true;
  for (const LabelId label : labels) {
    names.push_back(names_[static_cast<std::size_t>(label)]);
    short_names = short_names && decode_utf8(names.back()).size() == 1;
  }
  return short_names ? fmt::format("{}", fmt::join(names, ""))
                     : fmt::format("[{}]", fmt::join(names, " "));
}

std::string TermPrinter::str(const std::vector<const LabelList*>& inputs,
                             const LabelList& output) const {
  std::vector<std::string> terms;
  for (const LabelList* input : inputs) terms.push_back(str(*input));
  return fmt::format("{}->{}", fmt::join(terms, ","), str(output));
}

}  // namespace einkern::plan
