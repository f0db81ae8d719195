// SPDX-License-Identifier: Apache-2.0
// A Spec from a text in one call, its output axes, and its canonical text.
#include "spec.h"

#include <fmt/format.h>

#include <unordered_set>

#include "grammar.h"

namespace einkern {
namespace {

// Names for labels that have no letter of their own: unused ASCII letters, then [52], [53], ...
class FreshNames {
 public:
  explicit FreshNames(const std::vector<std::string>& taken) : taken_(taken.begin(), taken.end()) {}

  std::string next() {
    constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    while (next_ < kLetters.size()) {
      const std::string_view letter = kLetters.substr(next_++, 1);
      if (!taken_.contains(letter)) return std::string(letter);
    }
    return fmt::format("[{}]", next_++);
  }

 private:
  std::unordered_set<std::string_view> taken_;
  std::size_t next_ = 0;
};

}  // namespace

Shape Spec::output_shape() const {
  Shape shape;
  for (const LabelId label : output) shape.push_back(sizes[static_cast<std::size_t>(label)]);
  return shape;
}

std::vector<std::string> Spec::output_names() const {
  std::vector<std::string> result;
  result.reserve(output.size());
  for (const LabelId label : output) result.push_back(names[static_cast<std::size_t>(label)]);
  return result;
}

std::string Spec::str() const {
  FreshNames fresh(names);
  std::vector<std::string> shown(sizes.size());
  std::string text;
  const auto append = [&](const std::vector<LabelId>& labels) {
    for (const LabelId label : labels) {
      const auto id = static_cast<std::size_t>(label);
      if (shown[id].empty()) shown[id] = is_letter(names[id]) ? names[id] : fresh.next();
      text += shown[id];
    }
  };
  for (std::size_t p = 0; p < inputs.size(); ++p) {
    if (p > 0) text += ',';
    append(inputs[p]);
  }
  text += "->";
  append(output);
  return text;
}

Spec make_spec(std::string_view equation, const std::vector<Shape>& shapes, const char* function) {
  const Equation parsed = parse_equation(equation, function);
  std::vector<std::size_t> ranks;
  ranks.reserve(shapes.size());
  for (const Shape& shape : shapes) ranks.push_back(shape.size());
  return einkern::bind(resolve(parsed, ranks, function), shapes, function);
}

}  // namespace einkern
