// SPDX-License-Identifier: Apache-2.0
// Distances between names.
#include "suggest.h"

#include <algorithm>
#include <utility>

#include "../base/caret.h"

namespace einkern::program {
namespace {

constexpr std::size_t kMostListed = 20;
constexpr std::size_t kLongestCompared = 64;

/// Insertions, deletions, replacements and swaps of neighbours from one name to the other.
std::size_t distance(std::u32string_view a, std::u32string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        now[j] = std::min(now[j], before[j - 2] + 1);
      }
    }
    before.swap(last);
    last.swap(now);
  }
  return last[b.size()];
}

}  // namespace

std::string nearest(std::string_view name, const std::vector<std::string>& known) {
  const std::u32string wanted = decode_utf8(name);
  if (wanted.size() > kLongestCompared) return {};
  std::size_t best = std::max<std::size_t>(1, wanted.size() / 3) + 1;
  std::string result;
  for (const std::string& candidate : known) {
    const std::u32string points = decode_utf8(candidate);
    // One letter is never a slip for another letter.
    if (points.size() > kLongestCompared || std::max(points.size(), wanted.size()) < 2) continue;
    const std::size_t edits = distance(wanted, points);
    if (edits >= best) continue;
    best = edits;
    result = candidate;
  }
  return result;
}

std::string suggestion(std::string_view name, const std::vector<std::string>& known) {
  const std::string found = nearest(name, known);
  return found.empty() ? "" : "; did you mean '" + found + "'?";
}

std::string foreign_word(std::string_view name) {
  static constexpr std::pair<std::string_view, const char*> kWords[] = {
      {"matmul", "einsum(\"ij,jk->ik\", a, b), or linear(x, w)"},
      {"dot", "einsum(\"ij,jk->ik\", a, b), or linear(x, w)"},
      {"bmm", "einsum(\"bij,bjk->bik\", a, b)"},
      {"transpose", "permute(x, [1, 0]), or permute(x, \"ij->ji\")"},
      {"swapaxes", "permute(x, \"...ij->...ji\")"},
      {"reshape", "split(x, axis, labels, sizes) or merge(x, axes)"},
      {"view", "split(x, axis, labels, sizes) or merge(x, axes)"},
      {"flatten", "merge(x, axes)"},
      {"unsqueeze", "expand(x, label, 1)"},
      {"expand_dims", "expand(x, label, 1)"},
      {"squeeze", "an index, as in x[:, 0]"},
      {"shape", "size(x, axis)"},
      {"len", "size(x, 0)"},
      {"cat", "concat([a, b], axis)"},
      {"concatenate", "concat([a, b], axis)"},
      {"cumsum", "scan(x, axis)"},
      {"arange", "index(axis), which takes its size from what it meets"},
      {"gather", "take(x, at, axis)"},
      {"embedding", "take(table, at, 0)"},
      {"tril", "causal() as a mask"},
      {"masked_fill", "where(condition, x, y)"},
      {"clip", "minimum(maximum(x, low), high)"},
      {"clamp", "minimum(maximum(x, low), high)"},
      {"square", "x ** 2"},
      {"scaled_dot_product_attention", "dot_product_attention(q, k, v)"},
  };
  for (const auto& [foreign, hint] : kWords) {
    if (name == foreign) return hint;
  }
  return {};
}

std::string listed(const std::vector<std::string>& names) {
  if (names.empty()) return "none";
  std::string list;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) list += ", ";
    if (i == kMostListed) return list + "...";
    list += "'" + names[i] + "'";
  }
  return list;
}

}  // namespace einkern::program
