// SPDX-License-Identifier: Apache-2.0
// An equation and ranks to integer labels per axis: ellipses expanded, output explicit.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "diagnose.h"
#include "label_ids.h"
#include "spec.h"

namespace einkern {
namespace {

std::string counted(std::size_t count, const char* one, const char* several) {
  return fmt::format("{} {}", count, count == 1 ? one : several);
}

void check_operand_count(const Equation& equation, std::size_t operands, const char* function) {
  const std::size_t terms = equation.inputs.size();
  if (terms == operands) return;
  // The first term without an operand, or the place where a further term is missing.
  const Span last = equation.inputs.back().span;
  const Span span =
      operands < terms ? equation.inputs[operands].span : Span{last.begin + last.size, 1};
  fail_at<ShapeError>(
      function,
      fmt::format("the equation has {} but {} {} given", counted(terms, "term", "terms"),
                  counted(operands, "operand", "operands"), operands == 1 ? "was" : "were"),
      equation.text, {{span.begin, std::max<std::size_t>(span.size, 1)}});
}

// Axes that the ellipsis of a term covers in an operand of this rank.
std::size_t covered_axes(const Equation& equation, std::size_t operand, std::size_t rank,
                         const char* function) {
  const Term& term = equation.inputs[operand];
  const bool ellipsis = term.has_ellipsis();
  const std::size_t labels = term.items.size() - (ellipsis ? 1 : 0);
  if (labels == rank || (ellipsis && labels < rank)) return rank - labels;
  fail_at<ShapeError>(
      function,
      fmt::format("operand {} has {} but its term has {}{}", operand, counted(rank, "axis", "axes"),
                  counted(labels, "label", "labels"), ellipsis ? " beside the ellipsis" : ""),
      equation.text, {{term.span.begin, std::max<std::size_t>(term.span.size, 1)}});
}

// Numbers the labels of an equation whose ellipsis covers `ellipsis_rank` axes.
class Resolver {
 public:
  Resolver(const Equation& equation, std::size_t ellipsis_rank, const char* function)
      : equation_(equation), function_(function) {
    result_.text = equation.text;
    result_.ellipsis_rank = ellipsis_rank;
    result_.names.resize(ellipsis_rank);
    occurrences_.resize(ellipsis_rank);
    result_.inputs.reserve(equation.inputs.size());
    result_.spans.reserve(equation.inputs.size());
  }

  // `covered` axes of this operand belong to the ellipsis: the last ones of it.
  void add_input(const Term& term, std::size_t covered) {
    std::vector<LabelId>& labels = result_.inputs.emplace_back();
    std::vector<Span>& spans = result_.spans.emplace_back();
    for (const TermItem& item : term.items) {
      if (item.is_ellipsis()) {
        append_ellipsis(labels, covered);
        spans.insert(spans.end(), covered, item.span);
        continue;
      }
      LabelId& id = ids_[item.label];
      if (id == LabelIds::kNone) {
        id = static_cast<LabelId>(result_.names.size());
        result_.names.push_back(item.label);
        occurrences_.push_back(0);
      }
      ++occurrences_[static_cast<std::size_t>(id)];
      labels.push_back(id);
      spans.push_back(item.span);
    }
  }

  ResolvedEquation finish() && {
    equation_.output ? explicit_output(*equation_.output) : implicit_output();
    return std::move(result_);
  }

 private:
  void append_ellipsis(std::vector<LabelId>& labels, std::size_t covered) const {
    for (std::size_t i = result_.ellipsis_rank - covered; i < result_.ellipsis_rank; ++i) {
      labels.push_back(static_cast<LabelId>(i));
    }
  }

  void explicit_output(const Term& term) {
    for (const TermItem& item : term.items) {
      if (item.is_ellipsis()) {
        append_ellipsis(result_.output, result_.ellipsis_rank);
        continue;
      }
      const LabelId id = ids_[item.label];
      if (id == LabelIds::kNone) fail_unknown_output(equation_, item, function_);
      result_.output.push_back(id);
    }
  }

  // Ellipsis axes, then labels that occur once. UTF-8 sorts by bytes as it does by code points.
  void implicit_output() {
    append_ellipsis(result_.output, result_.ellipsis_rank);
    for (std::size_t i = result_.ellipsis_rank; i < result_.names.size(); ++i) {
      if (occurrences_[i] == 1) result_.output.push_back(static_cast<LabelId>(i));
    }
    std::sort(result_.output.begin() + static_cast<std::ptrdiff_t>(result_.ellipsis_rank),
              result_.output.end(), [this](LabelId a, LabelId b) {
                return result_.names[static_cast<std::size_t>(a)] <
                       result_.names[static_cast<std::size_t>(b)];
              });
  }

  const Equation& equation_;
  const char* function_;
  ResolvedEquation result_;
  LabelIds ids_;
  std::vector<std::size_t> occurrences_;  // by label, over all inputs
};

}  // namespace

ResolvedEquation resolve(const Equation& equation, const std::vector<std::size_t>& ranks,
                         const char* function) {
  EINKERN_CHECK(!equation.inputs.empty());
  check_operand_count(equation, ranks.size(), function);
  std::vector<std::size_t> covered(ranks.size());
  for (std::size_t p = 0; p < ranks.size(); ++p) {
    covered[p] = covered_axes(equation, p, ranks[p], function);
  }
  const auto widest = std::max_element(covered.begin(), covered.end());
  Resolver resolver(equation, widest == covered.end() ? 0 : *widest, function);
  for (std::size_t p = 0; p < ranks.size(); ++p) {
    resolver.add_input(equation.inputs[p], covered[p]);
  }
  return std::move(resolver).finish();
}

}  // namespace einkern
