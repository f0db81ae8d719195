// SPDX-License-Identifier: Apache-2.0
// A user's program whose tree has folders named like ours: a product of two matrices, printed.
#include <einkern.h>

#include <iostream>

#include "engine/tensor/tensor.h"
#include "ops/ops.h"

static_assert(consumer::kOwnTensor && consumer::kOwnOps);

int main() {
  const einkern::Tensor a = einkern::tensor<float>({1, 2, 3, 4}, {2, 2});
  const einkern::Tensor b = einkern::tensor<float>({5, 6, 7, 8}, {2, 2});
  const einkern::Tensor c = einkern::einsum("ij,jk->ik", a, b);
  std::cout << c << '\n' << einkern::version() << '\n';
}
