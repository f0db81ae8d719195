// SPDX-License-Identifier: Apache-2.0
// The example of README.md, word for word from the next line on: causal attention over random data.
#include <einkern.h>

#include <cmath>
#include <iostream>

namespace ek = einkern;

int main() {
  const ek::Tensor q = ek::random({2, 5, 8}, 1);  // (head, position, dim)
  const ek::Tensor k = ek::random({2, 5, 8}, 2);
  const ek::Tensor v = ek::random({2, 5, 8}, 3);

  const auto s = ek::einsum("hqd,hkd->hqk", q, k) / std::sqrt(8.0);  // nothing is computed yet
  const auto p = ek::softmax(ek::mask(s, ek::causal("q", "k")), "k");
  const ek::Tensor o = ek::einsum("hqk,hkd->hqd", p, v);  // a Tensor makes it real

  std::cout << ek::explain({ek::einsum("hqk,hkd->hqd", p, v)}) << o << '\n';
}
