// SPDX-License-Identifier: Apache-2.0
// A contraction by somebody else's matrix product: as one where it is one, else between permutes.
#pragma once

#include <optional>
#include <vector>

#include "../engine/spec/spec.h"
#include "../engine/tensor/tensor.h"
#include "bench_peers.h"

namespace einkern::tools {

/// How c[batch, m, n] = sum_k a[batch, m, k] b[batch, k, n] is put to a BLAS: a loop over batch of
/// gemm (gemv, dot where sizes are 1) straight on the tensors whose labels fuse to the two strides
/// of a matrix, with the others permuted into or out of scratch by the library's own copies. Orders
/// within m, n and k are those that permute the fewest bytes.
class GemmRoute {
 public:
  /// Nothing for what is no such contraction: not two operands, repeated, broadcast or singly owned
  /// labels, no product in it, sizes beyond 32 bits. The tensors are contiguous; others of the same
  /// shapes can be given to `run`.
  static std::optional<GemmRoute> make(const Spec& spec, const std::vector<Tensor>& operands,
                                       const Tensor& out);

  bool permutes() const { return a_.packed || b_.packed || c_.packed; }
  void run(const Peer& peer, const std::vector<Tensor>& operands, const Tensor& out) const;

 private:
  /// Labels fused to one size and stride.
  struct Extent {
    std::int64_t size = 1, stride = 0;
  };
  /// One of the three tensors as the BLAS sees it.
  struct Side {
    Extent rows, columns;
    bool transposed = false;
    std::int64_t leading = 1;
    // When it must be permuted: scratch, and the strides of the tensor in the scratch's order.
    std::optional<Tensor> packed;
    Strides permuted;
  };
  struct BatchLoop {
    std::int64_t size = 1, a = 0, b = 0, c = 0;
  };
  class Maker;

  template <class T>
  void run_as(const Peer& peer, const std::vector<Tensor>& operands, const Tensor& out) const;
  template <class T>
  void multiply(const BlasRoutines<T>& blas, const T* a, const T* b, T* c) const;

  Side a_, b_, c_;
  std::vector<BatchLoop> batch_;
  std::int64_t batches_ = 1;
};

}  // namespace einkern::tools
