// SPDX-License-Identifier: Apache-2.0
// Multi-head attention from one weight per head, as its formula.
#include "multihead_list.h"

#include <fmt/format.h>

#include <string>

#include "../engine/base/error.h"
#include "../ops/shape.h"
#include "project.h"
#include "scaled.h"

namespace einkern {
namespace {

Expr attend_heads(const char* function, const Expr& xq, const Expr& xv,
                  const std::vector<Expr>& wqs, const std::vector<Expr>& wks,
                  const std::vector<Expr>& wvs, const Expr& wp,
                  const std::optional<Causal>& placed) {
  if (wqs.empty() || wqs.size() != wks.size() || wqs.size() != wvs.size()) {
    fail<ValueError>(
        fmt::format("{}: {} wqs, {} wks and {} wvs are given; one of each for every head", function,
                    wqs.size(), wks.size(), wvs.size()));
  }
  std::vector<Expr> heads;
  for (std::size_t i = 0; i < wqs.size(); ++i) {
    const Expr q = project(function, fmt::format("wqs[{}]", i), xq, wqs[i]);
    const Expr k = project(function, fmt::format("wks[{}]", i), xv, wks[i]);
    const Expr v = project(function, fmt::format("wvs[{}]", i), xv, wvs[i]);
    if (wqs[i].shape()[1] != wks[i].shape()[1]) {
      fail<ShapeError>(fmt::format("{}: wqs[{}] {} and wks[{}] {} project to different widths",
                                   function, i, to_string(wqs[i].shape()), i,
                                   to_string(wks[i].shape())));
    }
    heads.push_back(unnamed(scaled_attention(q, k, v, placed)));
  }
  const Expr y = project(function, "wp", concat(heads, -1), wp);
  return labelled_as(y, xq, wp.labels()[1]);
}

}  // namespace

Expr multihead_attention_list(const Expr& x, const std::vector<Expr>& wqs,
                              const std::vector<Expr>& wks, const std::vector<Expr>& wvs,
                              const Expr& wp, const std::optional<Causal>& placed) {
  return attend_heads("multihead_attention_list", x, x, wqs, wks, wvs, wp, placed);
}

Expr multihead_cross_attention_list(const Expr& xq, const Expr& xv, const std::vector<Expr>& wqs,
                                    const std::vector<Expr>& wks, const std::vector<Expr>& wvs,
                                    const Expr& wp) {
  return attend_heads("multihead_cross_attention_list", xq, xv, wqs, wks, wvs, wp, {});
}

}  // namespace einkern
