// SPDX-License-Identifier: Apache-2.0
// An equation met with shapes: integer labels per axis of every operand, one size per label.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../base/layout.h"
#include "equation.h"

namespace einkern {

using LabelId = std::int32_t;  // index into Spec::sizes

/// A contraction with every question of notation answered: ellipses are labels, the output is
/// explicit, every label has one size. `inputs[p][i]` is the label of axis i of operand p; an axis
/// of size 1 may stand for a label of any size (it broadcasts), which `shapes` tells.
struct Spec {
  std::vector<std::vector<LabelId>> inputs;
  std::vector<LabelId> output;
  std::vector<std::int64_t> sizes;  // by label
  std::vector<std::string> names;   // by label; empty for ellipsis axes and unnamed integer labels
  std::vector<Shape> shapes;        // of the operands, as bound

  /// Sizes of the output axes.
  Shape output_shape() const;
  /// Names of the output axes.
  std::vector<std::string> output_names() const;
  /// Canonical text such as `ab,bc->ac` (labels renamed in order of appearance when they have no
  /// one-character name).
  std::string str() const;
};

/// The labels of every axis once ranks are known: ellipses expanded, output explicit, no sizes.
struct ResolvedEquation {
  std::vector<std::vector<LabelId>> inputs;
  std::vector<LabelId> output;
  std::vector<std::string> names;        // by label; empty for ellipsis axes
  std::vector<std::vector<Span>> spans;  // where each axis of each operand stands in the text
  std::string text;
  // Labels 0..ellipsis_rank-1 are the axes of the ellipsis, outermost first.
  std::size_t ellipsis_rank = 0;
  bool integer_labels = false;  // names are the caller's integers, kept for messages only
};

/// Expands ellipses for operands of these ranks and makes the output explicit: ellipsis axes first,
/// then labels that occur once over all terms, in code-point order. Errors: ShapeError (number of
/// operands, more or fewer labels than axes).
ResolvedEquation resolve(const Equation& equation, const std::vector<std::size_t>& ranks,
                         const char* function = "einsum");

/// Gives every label its size. 1 broadcasts across operands (0 with 1 gives 0), never inside one.
/// Errors: ShapeError naming the label, both operands and both sizes.
Spec bind(const ResolvedEquation& equation, const std::vector<Shape>& shapes,
          const char* function = "einsum");

/// The sizes by label alone, for operands whose shapes are elsewhere. Errors: as `bind`.
Dims bind_sizes(const ResolvedEquation& equation, std::span<const Shape* const> shapes,
                const char* function = "einsum");

/// parse, resolve and bind in one call.
Spec make_spec(std::string_view equation, const std::vector<Shape>& shapes,
               const char* function = "einsum");

/// The same from integer labels: any number of labels, any values. `kEllipsis` stands for `...`.
/// `output` absent: implicit, in increasing order of the labels.
inline constexpr std::int64_t kEllipsis = INT64_MIN;
Spec make_spec(const std::vector<std::vector<std::int64_t>>& inputs,
               const std::optional<std::vector<std::int64_t>>& output,
               const std::vector<Shape>& shapes, const char* function = "einsum");

}  // namespace einkern
