// SPDX-License-Identifier: Apache-2.0
// A good pairwise order of any number of operands: always the pair that shrinks memory most.
#include <algorithm>
#include <functional>
#include <iterator>
#include <queue>
#include <tuple>
#include <utility>

#include "search.h"

namespace einkern::plan {
namespace {

struct Candidate {
  double cost;
  std::int32_t first, second;
  /// The heap gives the smallest cost; ties go to the earliest operands, whatever their labels.
  bool operator<(const Candidate& other) const {
    return std::tie(cost, first, second) > std::tie(other.cost, other.first, other.second);
  }
};

class Greedy {
 public:
  explicit Greedy(const Network& network)
      : network_(network),
        terms_(network.terms),
        holders_(network.sizes.size()),
        members_(network.sizes.size()) {
    // A label shared by thousands of operands would make a quadratic number of pairs; this many per
    // label and operand keep the heap near half a million entries.
    partners_ = std::clamp<std::size_t>((std::size_t{1} << 19) / (terms_.size() + 1), 8, 128);
    for (std::size_t t = 0; t < terms_.size(); ++t) enter(static_cast<std::int32_t>(t));
  }

  Pairs run() {
    const std::size_t operands = terms_.size();
    for (std::size_t t = 0; t < operands; ++t) propose(static_cast<std::int32_t>(t), true);
    while (!heap_.empty()) {
      const Candidate best = heap_.top();
      heap_.pop();
      if (!alive_[at(best.first)] || !alive_[at(best.second)]) continue;
      propose(merge(best.first, best.second), false);
    }
    join_disconnected();
    return std::move(pairs_);
  }

 private:
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

  double size_of(const std::vector<LabelId>& term) const {
    double size = 1;
    for (const LabelId label : term) size = std::min(size * network_.sizes[at(label)], 1e300);
    return size;
  }

  /// Labels of the product of two terms: those that the output or a third term still needs.
  std::vector<LabelId> product(std::int32_t x, std::int32_t y) const {
    std::vector<LabelId> all;
    std::set_union(terms_[at(x)].begin(), terms_[at(x)].end(), terms_[at(y)].begin(),
                   terms_[at(y)].end(), std::back_inserter(all));
    std::erase_if(all, [&](LabelId label) {
      if (network_.kept[at(label)]) return false;
      const auto has = [label](const std::vector<LabelId>& term) {
        return std::binary_search(term.begin(), term.end(), label) ? 1 : 0;
      };
      return holders_[at(label)] == has(terms_[at(x)]) + has(terms_[at(y)]);
    });
    return all;
  }

  void enter(std::int32_t t) {
    alive_.push_back(1);
    sizes_.push_back(size_of(terms_[at(t)]));
    for (const LabelId label : terms_[at(t)]) {
      ++holders_[at(label)];
      members_[at(label)].push_back(t);
    }
  }

  std::int32_t merge(std::int32_t x, std::int32_t y) {
    std::vector<LabelId> result = product(x, y);
    for (const std::int32_t t : {x, y}) {
      alive_[at(t)] = 0;
      for (const LabelId label : terms_[at(t)]) --holders_[at(label)];
    }
    pairs_.push_back({x, y});
    terms_.push_back(std::move(result));
    const auto made = static_cast<std::int32_t>(terms_.size() - 1);
    enter(made);
    return made;
  }

  /// Puts pairs of `t` with terms that share a label into the heap; of the operands, only later
  /// ones.
  void propose(std::int32_t t, bool later_only) {
    for (const LabelId label : terms_[at(t)]) {
      std::vector<std::int32_t>& members = members_[at(label)];
      auto other =
          later_only ? std::upper_bound(members.begin(), members.end(), t) : members.begin();
      std::size_t found = 0, dead = 0;
      for (; other != members.end() && found < partners_; ++other) {
        if (!alive_[at(*other)]) ++dead;
        if (*other == t || !alive_[at(*other)]) continue;
        ++found;
        const auto [first, second] = std::minmax(*other, t);
        const double cost =
            size_of(product(first, second)) - sizes_[at(first)] - sizes_[at(second)];
        heap_.push({cost, first, second});
      }
      // Swept when the dead outnumber what was sought: a scan stays short, a sweep is rare.
      if (dead > partners_) {
        const auto is_dead = [&](std::int32_t member) { return !alive_[at(member)]; };
        members.erase(std::remove_if(members.begin(), other, is_dead), other);
      }
    }
  }

  /// Terms that share nothing: outer products, the two smallest first.
  void join_disconnected() {
    using Sized = std::pair<double, std::int32_t>;
    std::priority_queue<Sized, std::vector<Sized>, std::greater<>> smallest;
    for (std::size_t t = 0; t < terms_.size(); ++t) {
      if (alive_[t]) smallest.emplace(sizes_[t], static_cast<std::int32_t>(t));
    }
    while (smallest.size() > 1) {
      const std::int32_t x = smallest.top().second;
      smallest.pop();
      const std::int32_t y = smallest.top().second;
      smallest.pop();
      const std::int32_t made = merge(std::min(x, y), std::max(x, y));
      smallest.emplace(sizes_[at(made)], made);
    }
  }

  const Network& network_;
  std::vector<std::vector<LabelId>> terms_;  // by identity, operands then results
  std::vector<double> sizes_;
  std::vector<char> alive_;
  std::vector<std::int32_t> holders_;               // by label: living terms that have it
  std::vector<std::vector<std::int32_t>> members_;  // by label: terms, in order, some of them dead
  std::size_t partners_ = 8;
  std::priority_queue<Candidate> heap_;
  Pairs pairs_;
};

}  // namespace

Pairs greedy_pairs(const Network& network) { return Greedy(network).run(); }

}  // namespace einkern::plan
