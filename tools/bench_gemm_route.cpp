// SPDX-License-Identifier: Apache-2.0
// A contraction by somebody else's matrix product: as one where it is one, else between permutes.
#include "bench_gemm_route.h"

#include <algorithm>
#include <limits>

#include "../engine/exec/parallel.h"
#include "../engine/graph/expr.h"
#include "../engine/tensor/create.h"

namespace einkern::tools {
namespace {

using Labels = std::vector<LabelId>;

// Products below this size are cut by batch, each on one thread; larger ones by the library.
constexpr std::int64_t kSmallProduct = std::int64_t{64} * 64 * 64;
constexpr std::int64_t kPiecesPerThread = 8;

bool contains(const Labels& labels, LabelId label) {
  return std::ranges::find(labels, label) != labels.end();
}

Labels joined(Labels first, const Labels& second, const Labels& third) {
  first.insert(first.end(), second.begin(), second.end());
  first.insert(first.end(), third.begin(), third.end());
  return first;
}

}  // namespace

/// Finds the orders of the labels.
class GemmRoute::Maker {
 public:
  explicit Maker(const Spec& spec) : sizes_(spec.sizes) {}

  /// Labels of an axis longer than 1, in the order of the axes; false when some repeats or
  /// broadcasts.
  bool take(const Labels& axes, const Tensor& tensor, Labels& labels, Strides& strides) const {
    strides = Strides(sizes_.size(), 0);
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
      const LabelId label = axes[axis];
      if (tensor.shape()[axis] != size(label) || contains(labels, label)) return false;
      if (size(label) == 1) continue;
      labels.push_back(label);
      strides[index(label)] = tensor.strides()[axis];
    }
    return true;
  }

  /// The labels as one extent, if their strides nest.
  std::optional<Extent> fuse(const Labels& order, const Strides& strides) const {
    Extent extent;
    for (std::size_t i = order.size(); i-- > 0;) {
      if (extent.size == 1) extent.stride = strides[index(order[i])];
      if (strides[index(order[i])] != extent.stride * extent.size) return {};
      extent.size *= size(order[i]);
    }
    return extent;
  }

  /// rows x columns of a tensor as a matrix of BLAS, if it is one.
  std::optional<Side> matrix(const Labels& rows, const Labels& columns,
                             const Strides& strides) const {
    const auto r = fuse(rows, strides), c = fuse(columns, strides);
    if (!r || !c) return {};
    const auto fits = [](const Extent& outer, const Extent& inner) {
      return (inner.size == 1 || inner.stride == 1) &&
             (outer.size == 1 || outer.stride >= inner.size);
    };
    const bool plain = fits(*r, *c);
    if (!plain && !fits(*c, *r)) return {};
    const Extent& outer = plain ? *r : *c;
    const Extent& inner = plain ? *c : *r;
    return Side{*r, *c, !plain, outer.size == 1 ? inner.size : outer.stride, {}, {}};
  }

  /// The same of a permuted copy, whose strides replace those of the tensor.
  Side pack(const Labels& batch, const Labels& rows, const Labels& columns, const Labels& labels,
            Strides& strides, DType dtype) const {
    // The innermost label stays where it is if it can: the copy moves whole lines.
    const bool rows_last = !labels.empty() && contains(rows, labels.back());
    const Labels order = rows_last ? joined(batch, columns, rows) : joined(batch, rows, columns);
    Shape shape;
    Strides permuted;
    for (const LabelId label : order) {
      shape.push_back(size(label));
      permuted.push_back(strides[index(label)]);
    }
    const Tensor packed = zeros(shape, dtype);
    for (std::size_t i = 0; i < order.size(); ++i) strides[index(order[i])] = packed.strides()[i];
    Side side = *matrix(rows, columns, strides);
    side.packed = packed;
    side.permuted = permuted;
    return side;
  }

  double elements(const Labels& labels) const {
    double product = 1;
    for (const LabelId label : labels) product *= static_cast<double>(size(label));
    return product;
  }
  std::int64_t size(LabelId label) const { return sizes_[index(label)]; }
  static std::size_t index(LabelId label) { return static_cast<std::size_t>(label); }

 private:
  const std::vector<std::int64_t>& sizes_;
};

std::optional<GemmRoute> GemmRoute::make(const Spec& spec, const std::vector<Tensor>& operands,
                                         const Tensor& out) {
  if (operands.size() != 2 || out.size() == 0 || operands[0].size() == 0 ||
      operands[1].size() == 0) {
    return {};
  }
  const Maker maker(spec);
  Labels a, b, c;
  Strides a_strides, b_strides, c_strides;
  if (!maker.take(spec.inputs[0], operands[0], a, a_strides) ||
      !maker.take(spec.inputs[1], operands[1], b, b_strides) ||
      !maker.take(spec.output, out, c, c_strides)) {
    return {};
  }
  // Labels of one operand alone are no part of a matrix product.
  for (const LabelId label : a) {
    if (!contains(b, label) && !contains(c, label)) return {};
  }
  for (const LabelId label : b) {
    if (!contains(a, label) && !contains(c, label)) return {};
  }
  // Those of `order` that are in one tensor and, or not, in another.
  const auto chosen = [](const Labels& order, const Labels& in, const Labels& other, bool both) {
    Labels labels;
    for (const LabelId label : order) {
      if (contains(in, label) && contains(other, label) == both) labels.push_back(label);
    }
    return labels;
  };
  const Labels batch = chosen(chosen(c, a, b, true), c, c, true);
  const Labels m_orders[] = {chosen(c, a, b, false), chosen(chosen(a, a, b, false), c, c, true)};
  const Labels n_orders[] = {chosen(c, b, a, false), chosen(chosen(b, b, a, false), c, c, true)};
  const Labels k_orders[] = {chosen(chosen(a, b, c, false), a, a, true),
                             chosen(chosen(b, a, c, false), b, b, true)};
  if (m_orders[0].empty() && n_orders[0].empty() && k_orders[0].empty()) return {};

  double fewest = std::numeric_limits<double>::infinity();
  const Labels *m = nullptr, *n = nullptr, *k = nullptr;
  for (const Labels& rows : m_orders) {
    for (const Labels& columns : n_orders) {
      for (const Labels& summed : k_orders) {
        const double permuted = (maker.matrix(rows, summed, a_strides) ? 0 : maker.elements(a)) +
                                (maker.matrix(summed, columns, b_strides) ? 0 : maker.elements(b)) +
                                (maker.matrix(rows, columns, c_strides) ? 0 : maker.elements(c));
        if (permuted >= fewest) continue;
        fewest = permuted;
        m = &rows, n = &columns, k = &summed;
      }
    }
  }
  GemmRoute route;
  const auto side = [&](const Labels& rows, const Labels& columns, const Labels& labels,
                        Strides& strides) {
    const auto direct = maker.matrix(rows, columns, strides);
    return direct ? *direct : maker.pack(batch, rows, columns, labels, strides, out.dtype());
  };
  route.a_ = side(*m, *k, a, a_strides);
  route.b_ = side(*k, *n, b, b_strides);
  route.c_ = side(*m, *n, c, c_strides);
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  for (const Side* s : {&route.a_, &route.b_, &route.c_}) {
    if (std::max({s->rows.size, s->columns.size, s->leading}) > kMost) return {};
  }
  for (const LabelId label : batch) {
    const std::size_t at = Maker::index(label);
    const BatchLoop loop{maker.size(label), a_strides[at], b_strides[at], c_strides[at]};
    route.batches_ *= loop.size;
    if (!route.batch_.empty()) {
      BatchLoop& outer = route.batch_.back();
      if (outer.a == loop.a * loop.size && outer.b == loop.b * loop.size &&
          outer.c == loop.c * loop.size) {
        outer = {outer.size * loop.size, loop.a, loop.b, loop.c};
        continue;
      }
    }
    route.batch_.push_back(loop);
  }
  return route;
}

template <class T>
void GemmRoute::multiply(const BlasRoutines<T>& blas, const T* a, const T* b, T* c) const {
  const auto narrow = [](std::int64_t size) { return static_cast<int>(size); };
  const auto flag = [](bool transposed) { return transposed ? kBlasTransposed : kBlasPlain; };
  const int m = narrow(c_.rows.size), n = narrow(c_.columns.size), k = narrow(a_.columns.size);
  const int lda = narrow(a_.leading), ldb = narrow(b_.leading), ldc = narrow(c_.leading);
  if (m == 1 && n == 1 && blas.dot) {
    *c = blas.dot(k, a, narrow(a_.columns.stride), b, narrow(b_.rows.stride));
  } else if (n == 1 && k > 1 && blas.gemv) {
    blas.gemv(kBlasRowMajor, flag(a_.transposed), a_.transposed ? k : m, a_.transposed ? m : k, 1,
              a, lda, b, narrow(b_.rows.stride), 0, c, narrow(c_.rows.stride));
  } else if (m == 1 && k > 1 && blas.gemv) {
    blas.gemv(kBlasRowMajor, flag(!b_.transposed), b_.transposed ? n : k, b_.transposed ? k : n, 1,
              b, ldb, a, narrow(a_.columns.stride), 0, c, narrow(c_.columns.stride));
  } else if (c_.transposed) {
    // c^T = b^T a^T.
    blas.gemm(kBlasRowMajor, flag(!b_.transposed), flag(!a_.transposed), n, m, k, 1, b, ldb, a, lda,
              0, c, ldc);
  } else {
    blas.gemm(kBlasRowMajor, flag(a_.transposed), flag(b_.transposed), m, n, k, 1, a, lda, b, ldb,
              0, c, ldc);
  }
}

template <class T>
void GemmRoute::run_as(const Peer& peer, const std::vector<Tensor>& operands,
                       const Tensor& out) const {
  // The tensor's elements in the order of its scratch.
  const auto view = [](const Side& side, const Tensor& tensor) {
    return Tensor(tensor.storage(), const_cast<void*>(tensor.bytes()), tensor.dtype(),
                  Layout{side.packed->shape(), side.permuted, 0});
  };
  const auto input = [&](const Side& side, const Tensor& tensor) {
    if (!side.packed) return static_cast<const T*>(tensor.bytes());
    eval_into(*side.packed, Expr(view(side, tensor)));
    return static_cast<const T*>(side.packed->bytes());
  };
  const T* const a = input(a_, operands[0]);
  const T* const b = input(b_, operands[1]);
  T* const c = (c_.packed ? *c_.packed : out).template data<T>();
  const BlasRoutines<T>& blas = peer.routines<T>();
  const auto multiply_batch = [&](std::int64_t i) {
    std::int64_t at_a = 0, at_b = 0, at_c = 0;
    for (std::size_t loop = batch_.size(); loop-- > 0; i /= batch_[loop].size) {
      const std::int64_t position = i % batch_[loop].size;
      at_a += position * batch_[loop].a;
      at_b += position * batch_[loop].b;
      at_c += position * batch_[loop].c;
    }
    multiply(blas, a + at_a, b + at_b, c + at_c);
  };
  const std::int64_t threads = exec::concurrency();
  const std::int64_t product = a_.rows.size * a_.columns.size * c_.columns.size;
  if (batches_ >= kPiecesPerThread * threads && product <= kSmallProduct) {
    const std::int64_t pieces = kPiecesPerThread * threads;
    exec::parallel_for(pieces, static_cast<double>(product) * static_cast<double>(batches_),
                       [&](std::int64_t piece) {
                         peer.use_threads(1);
                         const std::int64_t end = (piece + 1) * batches_ / pieces;
                         for (std::int64_t i = piece * batches_ / pieces; i < end; ++i) {
                           multiply_batch(i);
                         }
                       });
  } else {
    peer.use_threads(static_cast<int>(threads));
    for (std::int64_t i = 0; i < batches_; ++i) multiply_batch(i);
  }
  if (c_.packed) eval_into(view(c_, out), Expr(*c_.packed));
}

void GemmRoute::run(const Peer& peer, const std::vector<Tensor>& operands,
                    const Tensor& out) const {
  out.dtype() == DType::f32 ? run_as<float>(peer, operands, out)
                            : run_as<double>(peer, operands, out);
}

}  // namespace einkern::tools
