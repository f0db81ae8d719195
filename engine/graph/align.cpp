// SPDX-License-Identifier: Apache-2.0
// Alignment of elementwise operands.
#include "align.h"

#include <fmt/format.h>

#include <algorithm>

#include "../base/error.h"
#include "extent.h"

namespace einkern::graph {
namespace {

constexpr std::int32_t kNone = -1;

bool is_scalar(const Type& type) { return type.shape.empty() && type.open.empty(); }
bool is_named(const Type& type) { return type.named || !type.open.empty(); }

std::int32_t find_label(const char* function, const std::vector<std::string>& labels,
                        const std::string& label) {
  const auto found = std::find(labels.begin(), labels.end(), label);
  if (found == labels.end()) return kNone;
  if (std::find(found + 1, labels.end(), label) != labels.end()) {
    fail<ShapeError>(fmt::format("{}: label '{}' names two axes", function, label));
  }
  return static_cast<std::int32_t>(found - labels.begin());
}

std::int64_t meet(const char* function, std::int64_t a, std::int64_t b, const std::string& where,
                  const Type& first, const Type& second) {
  std::int64_t result = 0;
  if (!unify_extents(a, b, &result)) {
    fail<ShapeError>(fmt::format("{}: {} has size {} and {} in {} and {}", function, where,
                                 extent_text(a), extent_text(b), axes_text(first),
                                 axes_text(second)));
  }
  return result;
}

Alignment identity(const Type& type) {
  Alignment result;
  for (std::size_t d = 0; d < type.shape.size(); ++d) {
    result.axes.push_back(static_cast<std::int32_t>(d));
  }
  for (std::size_t o = 0; o < type.open.size(); ++o) {
    result.open.push_back(~static_cast<std::int32_t>(o));
  }
  return result;
}

Aligned by_position(const char* function, const Type& first, const Type& second) {
  const std::size_t r1 = first.shape.size(), r2 = second.shape.size();
  const std::size_t rank = std::max(r1, r2);
  Aligned result;
  result.type.shape.resize(rank, 1);
  std::vector<std::string> labels(rank);
  for (std::size_t i = 0; i < rank; ++i) {  // counted from the right
    const std::size_t d = rank - 1 - i;
    const std::int64_t n1 = i < r1 ? first.shape[r1 - 1 - i] : 1;
    const std::int64_t n2 = i < r2 ? second.shape[r2 - 1 - i] : 1;
    const std::string& l1 = i < r1 ? first.labels[r1 - 1 - i] : std::string();
    const std::string& l2 = i < r2 ? second.labels[r2 - 1 - i] : std::string();
    if (!l1.empty() && !l2.empty() && l1 != l2) {
      fail<ShapeError>(
          fmt::format("{}: axes labelled '{}' and '{}' meet at position -{} of {} and {}; permute "
                      "one of them, or "
                      "name its axes to align by name",
                      function, l1, l2, i + 1, axes_text(first), axes_text(second)));
    }
    labels[d] = l1.empty() ? l2 : l1;
    const std::string where =
        labels[d].empty() ? fmt::format("axis -{}", i + 1) : fmt::format("axis '{}'", labels[d]);
    result.type.shape[d] = meet(function, n1, n2, where, first, second);
  }
  result.type.labels = Labels(std::move(labels));
  for (std::size_t d = 0; d < r1; ++d) {
    result.first.axes.push_back(static_cast<std::int32_t>(rank - r1 + d));
  }
  for (std::size_t d = 0; d < r2; ++d) {
    result.second.axes.push_back(static_cast<std::int32_t>(rank - r2 + d));
  }
  return result;
}

/// `term` meets the axes of `host` by name; the result has the host's axes.
Aligned by_name(const char* function, const Type& host, const Type& term) {
  const std::size_t rank = host.shape.size();
  Aligned result{host, identity(host), {}};
  const std::vector<std::string> labels = host.labels.to_vector(rank);
  const auto lacking = [&](const std::string& label) {
    fail<ShapeError>(fmt::format("{}: label '{}' of a named term is not among the axes {}",
                                 function, label, axes_text(host)));
  };
  // Unlabelled axes of the term meet the host's unlabelled ones from the right.
  std::vector<std::int32_t> unlabelled;
  for (std::size_t d = 0; d < rank; ++d) {
    if (labels[d].empty()) unlabelled.push_back(static_cast<std::int32_t>(d));
  }
  result.second.axes.resize(term.shape.size(), kNone);
  for (std::size_t d = term.shape.size(); d-- > 0;) {
    const std::string& label = term.labels[d];
    std::int32_t axis = kNone;
    if (!label.empty()) {
      axis = find_label(function, labels, label);
      if (axis == kNone) lacking(label);
    } else {
      if (unlabelled.empty()) {
        fail<ShapeError>(fmt::format("{}: an unlabelled axis of {} meets none among {}", function,
                                     axes_text(term), axes_text(host)));
      }
      axis = unlabelled.back();
      unlabelled.pop_back();
    }
    result.second.axes[d] = axis;
    const auto at = static_cast<std::size_t>(axis);
    result.type.shape[at] = meet(
        function, result.type.shape[at], term.shape[d],
        label.empty() ? fmt::format("axis {}", axis) : fmt::format("axis '{}'", label), host, term);
  }
  for (const OpenAxis& open : term.open) {
    std::int64_t axis = kNone;
    if (!open.label.empty()) {
      axis = find_label(function, labels, open.label);
      if (axis == kNone) lacking(open.label);
    } else {
      axis = static_cast<std::int64_t>(rank) + open.position;
      if (axis < 0) {
        fail<ShapeError>(fmt::format("{}: index({}) meets no axis among {}", function,
                                     open.position, axes_text(host)));
      }
    }
    result.second.open.push_back(static_cast<std::int32_t>(axis));
  }
  return result;
}

/// Union of the labels of two named terms, in order of first appearance; unlabelled axes in front.
Aligned unite(const char* function, const Type& first, const Type& second) {
  const auto unlabelled = [](const Type& type) {
    std::size_t count = 0;
    for (std::size_t d = 0; d < type.shape.size(); ++d) count += type.labels[d].empty();
    return count;
  };
  const std::size_t front = std::max(unlabelled(first), unlabelled(second));
  Aligned result;
  Type& type = result.type;
  type.named = true;
  type.shape.resize(front, 1);
  std::vector<std::string> labels(front);

  const auto place = [&](const Type& from, Alignment& alignment) {
    std::size_t nameless = front - unlabelled(from);
    for (std::size_t d = 0; d < from.shape.size(); ++d) {
      const std::string& label = from.labels[d];
      std::int32_t axis = label.empty() ? static_cast<std::int32_t>(nameless++)
                                        : find_label(function, labels, label);
      if (axis == kNone) {
        axis = static_cast<std::int32_t>(labels.size());
        labels.push_back(label);
        type.shape.push_back(1);
      }
      const auto at = static_cast<std::size_t>(axis);
      type.shape[at] =
          meet(function, type.shape[at], from.shape[d],
               label.empty() ? fmt::format("axis {}", axis) : fmt::format("axis '{}'", label),
               first, second);
      alignment.axes.push_back(axis);
    }
  };
  place(first, result.first);
  place(second, result.second);

  const auto close = [&](const Type& from, Alignment& alignment) {
    for (const OpenAxis& open : from.open) {
      const std::int32_t axis =
          open.label.empty() ? kNone : find_label(function, labels, open.label);
      if (axis != kNone) {
        alignment.open.push_back(axis);
        continue;
      }
      auto found = std::find(type.open.begin(), type.open.end(), open);
      if (found == type.open.end()) found = type.open.insert(type.open.end(), open);
      alignment.open.push_back(~static_cast<std::int32_t>(found - type.open.begin()));
    }
  };
  close(first, result.first);
  close(second, result.second);
  type.labels = Labels(std::move(labels));
  return result;
}

}  // namespace

Aligned align(const char* function, const Type& first, const Type& second) {
  if (is_scalar(first)) return {second, {}, identity(second)};
  if (is_scalar(second)) return {first, identity(first), {}};
  if (is_named(first) && is_named(second)) return unite(function, first, second);
  if (is_named(second)) return by_name(function, first, second);
  if (is_named(first)) {
    Aligned result = by_name(function, second, first);
    std::swap(result.first, result.second);
    return result;
  }
  return by_position(function, first, second);
}

Alignment compose(const Alignment& inner, const Alignment& outer) {
  Alignment result;
  for (const std::int32_t axis : inner.axes) {
    result.axes.push_back(outer.axes[static_cast<std::size_t>(axis)]);
  }
  for (const std::int32_t axis : inner.open) {
    const std::int32_t open = ~axis;  // where `axis` is negative
    result.open.push_back(axis >= 0 ? outer.axes[static_cast<std::size_t>(axis)]
                                    : outer.open[static_cast<std::size_t>(open)]);
  }
  return result;
}

std::string axes_text(const Type& type) {
  std::string text = "(";
  for (std::size_t d = 0; d < type.shape.size(); ++d) {
    if (d > 0) text += ", ";
    const std::string& label = type.labels[d];
    text += label.empty() ? extent_text(type.shape[d]) : label + "=" + extent_text(type.shape[d]);
  }
  return text + (type.shape.size() == 1 && type.labels[0].empty() ? ",)" : ")");
}

}  // namespace einkern::graph
