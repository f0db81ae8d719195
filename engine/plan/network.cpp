// SPDX-License-Identifier: Apache-2.0
// A Spec as a network of terms and labels; paths between positions and identities.
#include <algorithm>

#include "search.h"

namespace einkern::plan {
namespace {

/// The operands still in the list, in order of identity: since results are appended, the position
/// of an identity is the number of smaller ones alive. A Fenwick tree keeps 65,535 operands quick.
class LiveList {
 public:
  LiveList(std::size_t operands, std::size_t results) : counts_(operands + results + 1) {
    for (std::size_t i = 0; i < operands; ++i) append();
  }

  void append() { add(next_++, 1); }
  void remove(std::int32_t identity) { add(static_cast<std::size_t>(identity), -1); }

  std::int32_t position_of(std::int32_t identity) const {
    std::int32_t smaller = 0;
    for (auto i = static_cast<std::size_t>(identity); i > 0; i &= i - 1) smaller += counts_[i];
    return smaller;
  }

  std::int32_t identity_at(std::int32_t position) const {
    std::size_t step = 1, at = 0;
    while (step * 2 < counts_.size()) step *= 2;
    for (; step > 0; step /= 2) {
      if (at + step < counts_.size() && counts_[at + step] <= position) {
        at += step;
        position -= counts_[at];
      }
    }
    return static_cast<std::int32_t>(at);
  }

 private:
  void add(std::size_t identity, std::int32_t change) {
    for (std::size_t i = identity + 1; i < counts_.size(); i += i & (~i + 1)) counts_[i] += change;
  }

  std::vector<std::int32_t> counts_;  // counts_[i]: how many live in (i - lowest bit of i, i]
  std::size_t next_ = 0;
};

}  // namespace

Network make_network(const Spec& spec) {
  std::vector<char> in_output(spec.sizes.size());
  for (const LabelId label : spec.output) in_output[static_cast<std::size_t>(label)] = 1;

  Network network;
  std::vector<LabelId> number(spec.sizes.size(), -1);
  std::vector<std::int32_t> holders;
  for (std::size_t p = 0; p < spec.inputs.size(); ++p) {
    std::vector<LabelId>& term = network.terms.emplace_back();
    for (std::size_t axis = 0; axis < spec.inputs[p].size(); ++axis) {
      const auto label = static_cast<std::size_t>(spec.inputs[p][axis]);
      if (spec.shapes[p][axis] == 1) continue;
      if (number[label] < 0) {
        number[label] = static_cast<LabelId>(network.sizes.size());
        network.sizes.push_back(std::max(1.0, static_cast<double>(spec.sizes[label])));
        network.kept.push_back(in_output[label]);
        holders.push_back(0);
      }
      term.push_back(number[label]);
    }
    std::sort(term.begin(), term.end());
    term.erase(std::unique(term.begin(), term.end()), term.end());
    for (const LabelId label : term) ++holders[static_cast<std::size_t>(label)];
  }
  for (std::vector<LabelId>& term : network.terms) {
    std::erase_if(term, [&](LabelId label) {
      const auto l = static_cast<std::size_t>(label);
      return holders[l] == 1 && !network.kept[l];
    });
  }
  return network;
}

Path to_linear(const Pairs& pairs, std::size_t operands) {
  LiveList live(operands, pairs.size());
  Path path;
  path.reserve(pairs.size());
  for (const auto& [first, second] : pairs) {
    path.push_back({live.position_of(first), live.position_of(second)});
    if (first > second) std::swap(path.back()[0], path.back()[1]);
    live.remove(first);
    live.remove(second);
    live.append();
  }
  return path;
}

std::vector<std::vector<std::int32_t>> to_identities(const Path& path, std::size_t operands) {
  LiveList live(operands, path.size());
  std::vector<std::vector<std::int32_t>> steps;
  steps.reserve(path.size());
  for (const std::vector<std::int32_t>& positions : path) {
    std::vector<std::int32_t>& step = steps.emplace_back();
    for (const std::int32_t position : positions) step.push_back(live.identity_at(position));
    for (const std::int32_t identity : step) live.remove(identity);
    live.append();
  }
  return steps;
}

}  // namespace einkern::plan
