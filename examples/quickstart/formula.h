// SPDX-License-Identifier: Apache-2.0
// A sentence to attention over itself, written as mathematics; the quickstart shows what stands
// here.
#pragma once

#include <einkern.h>

#include <cmath>

namespace ek = einkern;

struct Weights {
  ek::Tensor q, k, v, out;  // (head, model, dim); out (head, dim, model)
};

struct Attention {
  ek::Expr weights, output;
};

inline Attention attend(const ek::Tensor& x, const Weights& w, bool causal) {
  auto q = ek::einsum("tm,hmd->htd", x, w.q);
  auto k = ek::einsum("tm,hmd->htd", x, w.k);
  auto v = ek::einsum("tm,hmd->htd", x, w.v);

  auto s = ek::einsum("hqd,hkd->hqk", q, k) / std::sqrt(8.0);
  if (causal) s = ek::mask(s, ek::causal("q", "k"));
  auto p = ek::softmax(s, "k");
  auto o = ek::einsum("hqk,hkd->hqd", p, v);

  auto y = ek::einsum("hqd,hdm->qm", o, w.out);
  return {p, y};  // nothing is computed yet
}
