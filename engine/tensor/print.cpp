// SPDX-License-Identifier: Apache-2.0
// A tensor into the text that NumPy prints for it: brackets, aligned columns, wrapped rows.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <ostream>
#include <utility>

#include "convert.h"
#include "tensor.h"
#include "words.h"

namespace einkern {
namespace {

// NumPy's defaults.
constexpr std::int64_t kThreshold = 1000;  // more elements are summarised
constexpr std::int64_t kEdgeItems = 3;     // shown at each end of a summarised axis
constexpr std::size_t kLineWidth = 75;

bool shortened(std::int64_t size, bool summarise) noexcept {
  return summarise && size > 2 * kEdgeItems;
}

// Words of the shown elements, in C order.
std::vector<std::string> shown_words(const Tensor& tensor, bool summarise) {
  Shape shape = tensor.shape();
  std::int64_t count = 1;
  for (std::int64_t& size : shape) {
    if (shortened(size, summarise)) size = 2 * kEdgeItems;
    count *= size;
  }
  return dispatch(tensor.dtype(), [&]<class T>(std::type_identity<T>) {
    const auto elements = std::make_unique<T[]>(static_cast<std::size_t>(count));
    for (std::int64_t flat = 0; flat < count; ++flat) {
      std::int64_t rest = flat, offset = 0;
      for (std::size_t axis = shape.size(); axis-- > 0;) {
        std::int64_t index = rest % shape[axis];
        rest /= shape[axis];
        if (shape[axis] != tensor.shape()[axis] && index >= kEdgeItems) {
          index += tensor.shape()[axis] - shape[axis];
        }
        offset += index * tensor.strides()[axis];
      }
      elements[static_cast<std::size_t>(flat)] =
          static_cast<T>(load(static_cast<const T*>(tensor.bytes()) + offset));
    }
    return aligned_words(std::span<const T>(elements.get(), static_cast<std::size_t>(count)));
  });
}

// Lays words out in nested brackets.
class Printer {
 public:
  Printer(const Shape& shape, bool summarise, std::vector<std::string> words)
      : shape_(shape), summarise_(summarise), words_(std::move(words)) {}

  // The text of all words below one index of the axes before `axis`. Lines after the first start
  // with one blank for every open bracket; every bracket that closes behind takes a column.
  std::string brackets(std::size_t axis) {
    return fmt::format("[{}]", axis + 1 == shape_.size() ? row(axis) : rows(axis));
  }

 private:
  std::string rows(std::size_t axis) {
    const std::string indent(axis + 1, ' ');
    const std::string separator(shape_.size() - axis - 1, '\n');
    std::string text;
    const auto put = [&](const std::string& nested) {
      if (!text.empty()) text += separator + indent;
      text += nested;
    };
    for_each_shown(
        axis, [&] { put(brackets(axis + 1)); }, [&] { put("..."); });
    return text;
  }

  std::string row(std::size_t axis) {
    const std::string indent(axis + 1, ' ');
    const std::size_t width = kLineWidth - std::min(kLineWidth, shape_.size());
    std::string text, line = indent;
    bool first = true;
    const auto put = [&](const std::string& word) {
      if (!first) line += ' ';
      first = false;
      // A word wider than a line stands alone: wrapping would not help it.
      if (line.size() + word.size() > width && line.size() > indent.size()) {
        line.resize(line.find_last_not_of(' ') + 1);
        text += line + "\n";
        line = indent;
      }
      line += word;
    };
    for_each_shown(
        axis, [&] { put(words_[next_++]); }, [&] { put("..."); });
    return (text + line).substr(indent.size());
  }

  template <class Item, class Gap>
  void for_each_shown(std::size_t axis, Item&& item, Gap&& gap) {
    const bool gapped = shortened(shape_[axis], summarise_);
    const std::int64_t count = gapped ? 2 * kEdgeItems : shape_[axis];
    for (std::int64_t i = 0; i < count; ++i) {
      if (gapped && i == kEdgeItems) gap();
      item();
    }
  }

  const Shape& shape_;
  const bool summarise_;
  const std::vector<std::string> words_;
  std::size_t next_ = 0;
};

}  // namespace

std::string to_string(const Tensor& tensor) {
  if (tensor.rank() == 0) {
    return dispatch(tensor.dtype(), [&]<class T>(std::type_identity<T>) {
      return scalar_word(static_cast<T>(load(static_cast<const T*>(tensor.bytes()))));
    });
  }
  if (tensor.size() == 0) return "[]";
  const bool summarise = tensor.size() > kThreshold;
  return Printer(tensor.shape(), summarise, shown_words(tensor, summarise)).brackets(0);
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  return out << to_string(tensor);
}

}  // namespace einkern
