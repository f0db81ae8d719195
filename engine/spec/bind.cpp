// SPDX-License-Identifier: Apache-2.0
// A resolved equation and shapes to a Spec: one size per label.
#include <fmt/format.h>

#include <utility>

#include "../base/error.h"
#include "diagnose.h"
#include "spec.h"

namespace einkern {
namespace {

// An axis of an operand; `operand` is kNone before a label was seen.
struct Place {
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::size_t operand = kNone, axis = 0;
};

class Binder {
 public:
  Binder(const ResolvedEquation& equation, std::span<const Shape* const> shapes,
         const char* function)
      : equation_(equation),
        shapes_(shapes),
        function_(function),
        sizes_(equation.names.size(), 1),
        decided_(equation.names.size()),
        last_(equation.names.size()) {}

  Dims sizes() && {
    for (std::size_t p = 0; p < shapes_.size(); ++p) {
      element_count(*shapes_[p], function_);
      EINKERN_CHECK(shapes_[p]->size() == equation_.inputs[p].size());
      for (std::size_t i = 0; i < shapes_[p]->size(); ++i) see({p, i});
    }
    return std::move(sizes_);
  }

 private:
  void see(Place place) {
    const auto label = static_cast<std::size_t>(equation_.inputs[place.operand][place.axis]);
    const std::int64_t size = size_at(place);
    const Place last = std::exchange(last_[label], place);
    if (last.operand == place.operand && size_at(last) != size) fail_inside(label, last, place);
    if (size == 1) return;  // broadcasts against other operands
    if (decided_[label].operand == Place::kNone) {
      decided_[label] = place;
      sizes_[label] = size;
    } else if (sizes_[label] != size) {
      fail_across(label, decided_[label], place);
    }
  }

  [[noreturn]] void fail_inside(std::size_t label, Place first, Place second) const {
    fail_at<ShapeError>(function_,
                        fmt::format("{} is {} and {} in operand {}", title(label), size_at(first),
                                    size_at(second), first.operand),
                        equation_.text, {span_at(first), span_at(second)});
  }

  [[noreturn]] void fail_across(std::size_t label, Place first, Place second) const {
    fail_at<ShapeError>(function_,
                        fmt::format("{} is {} in operand {} but {} in operand {}", title(label),
                                    size_at(first), first.operand, size_at(second), second.operand),
                        equation_.text, {span_at(first), span_at(second)});
  }

  // What messages call a label; the axes of an ellipsis count from the right, as they align.
  std::string title(std::size_t label) const {
    if (label < equation_.ellipsis_rank) {
      return fmt::format("ellipsis axis -{}", equation_.ellipsis_rank - label);
    }
    if (equation_.integer_labels) return "label " + equation_.names[label];
    return fmt::format("label '{}'", equation_.names[label]);
  }

  std::int64_t size_at(Place place) const { return (*shapes_[place.operand])[place.axis]; }
  Span span_at(Place place) const { return equation_.spans[place.operand][place.axis]; }

  const ResolvedEquation& equation_;
  std::span<const Shape* const> shapes_;
  const char* function_;
  Dims sizes_;                     // by label
  SmallVector<Place, 6> decided_;  // by label: the first axis whose size is not 1
  SmallVector<Place, 6> last_;     // by label: the latest axis
};

}  // namespace

Dims bind_sizes(const ResolvedEquation& equation, std::span<const Shape* const> shapes,
                const char* function) {
  EINKERN_CHECK(shapes.size() == equation.inputs.size());
  return Binder(equation, shapes, function).sizes();
}

Spec bind(const ResolvedEquation& equation, const std::vector<Shape>& shapes,
          const char* function) {
  SmallVector<const Shape*, 8> places;
  for (const Shape& shape : shapes) places.push_back(&shape);
  const Dims sizes = bind_sizes(equation, places, function);
  Spec spec;
  spec.sizes.assign(sizes.begin(), sizes.end());
  spec.inputs = equation.inputs;
  spec.output = equation.output;
  spec.names = equation.names;
  if (equation.integer_labels) spec.names.assign(equation.names.size(), "");
  spec.shapes = shapes;
  element_count(spec.output_shape(), function);
  return spec;
}

}  // namespace einkern
