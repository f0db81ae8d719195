// SPDX-License-Identifier: Apache-2.0
// A pair of labelled operands as a contraction: its groups of loops and the regime they run in.
#include <algorithm>
#include <utility>

#include "../base/error.h"
#include "einsum.h"
#include "loops.h"
#include "skinny.h"

namespace einkern::plan {
namespace {

/// One label of the pair with the strides of every tensor that has it.
struct LabelledLoop : AddressedLoop {
  explicit LabelledLoop(LabelId l) : label(l) {}
  LabelId label;
  bool in_a = false, in_b = false, in_c = false;
};

/// All labels of a pair, in order of first appearance: whatever ties the orderings leave are broken
/// by position, never by the number of a label.
class PairLoops {
 public:
  void add(const Operand& operand, const std::vector<LabelId>& labels, bool LabelledLoop::*in,
           std::int64_t LabelledLoop::*stride) {
    EINKERN_CHECK(labels.size() == operand.layout.rank());
    for (std::size_t axis = 0; axis < labels.size(); ++axis) {
      const std::int64_t size = operand.layout.shape[axis];
      if (size == 1) continue;
      LabelledLoop& loop = find(labels[axis], size);
      loop.*stride += operand.layout.strides[axis];
      if (in != nullptr) loop.*in = true;
    }
  }

  /// The loops that are in exactly these tensors.
  AddressedLoops group(bool in_a, bool in_b, bool in_c) const {
    AddressedLoops loops;
    for (const LabelledLoop& loop : loops_) {
      if (loop.in_a == in_a && loop.in_b == in_b && loop.in_c == in_c) loops.push_back(loop);
    }
    return loops;
  }

 private:
  LabelledLoop& find(LabelId label, std::int64_t size) {
    for (LabelledLoop& loop : loops_) {
      if (loop.label != label) continue;
      EINKERN_CHECK(loop.size == size);
      return loop;
    }
    loops_.emplace_back(label);
    loops_.back().size = size;
    return loops_.back();
  }

  std::vector<LabelledLoop> loops_;
};

struct Groups {
  AddressedLoops batch, m, n, k;
};

Groups groups_of(const PairLoops& pair) {
  // A label of one tensor alone has no place in a pair: it must be summed, or broadcast, elsewhere.
  EINKERN_CHECK(pair.group(true, false, false).empty());
  EINKERN_CHECK(pair.group(false, true, false).empty());
  EINKERN_CHECK(pair.group(false, false, true).empty());
  EINKERN_CHECK(pair.group(false, false, false).empty());
  return {pair.group(true, true, true), pair.group(true, false, true),
          pair.group(false, true, true), pair.group(true, true, false)};
}

bool has_unit(const AddressedLoops& loops, std::int64_t Loop::*stride) {
  return std::any_of(loops.begin(), loops.end(),
                     [stride](const AddressedLoop& loop) { return loop.*stride == 1; });
}

void swap_operands(Groups& groups) {
  std::swap(groups.m, groups.n);
  for (AddressedLoops* loops : {&groups.batch, &groups.m, &groups.n, &groups.k}) {
    for (AddressedLoop& loop : *loops) std::swap(loop.a, loop.b);
  }
}

/// Long contiguous runs where they count: c is written along n, a read along m, and the contracted
/// loops follow the operand that has them contiguous.
void arrange(Groups& groups) {
  order_loops(groups.batch, &Loop::c);
  order_loops(groups.n, &Loop::c);
  order_loops(groups.m, &Loop::a);
  order_loops(groups.k, has_unit(groups.k, &Loop::a) ? &Loop::a : &Loop::b);
  for (AddressedLoops* loops : {&groups.batch, &groups.m, &groups.n, &groups.k}) {
    fuse_loops(*loops);
  }
}

/// Up to this many products, 32 x 32 x 32, packing does not pay: a matrix is kept in registers, or
/// many are done side by side in the lanes. 8 x 8 x 8 runs 10 times faster so than as packed
/// matrices.
constexpr double kSmallProducts = 32768;
/// Fewer small matrices than this do not fill the lanes of a vector.
constexpr double kManyMatrices = 16;

/// Longest sum that is streamed, and the most bytes of the operand that is packed whole.
constexpr double kStreamedSum = 512, kStreamedRows = 1 << 20;
/// Columns of one box: those that rows which are not packed may meet.
constexpr double kStreamedColumns = 288;
/// Smallest output worth its own tasks.
constexpr double kStreamedOutput = 2 << 20;
/// Where arithmetic takes longer than this many times as long as memory, it is arithmetic that
/// counts, and the tiles of packed matrices are better at that.
constexpr double kMostArithmetic = 3;

/// Is this contraction bound by memory, of a form that can be streamed? Reads count at the pace of
/// the target, like the rest: constants, never measurements.
bool is_streamed(const Contract& contract, const Target& target) {
  const Loops &m = contract.m, &n = contract.n, &k = contract.k;
  if (!is_float(contract.c.dtype) || !contract.batch.empty() || m.empty() || n.empty())
    return false;
  const auto bytes = static_cast<double>(size_of(contract.c.dtype));
  const double rows = extent(m), columns = extent(n), sum = extent(k);
  const auto unit_b = [](const Loop& loop) { return loop.b == 1; };
  if (n.back().c != 1 || static_cast<double>(n.back().size) * bytes < target.vector_bytes ||
      (std::none_of(n.begin(), n.end(), unit_b) && std::none_of(k.begin(), k.end(), unit_b))) {
    return false;
  }
  if (sum > kStreamedSum || rows * columns * bytes < kStreamedOutput) return false;
  // More rows than are packed are read where they lie, each contiguous, for few columns.
  const bool far = rows * sum * bytes > kStreamedRows;
  if (far && (m.size() != 1 || k.size() != 1 || k[0].a != 1 || columns > kStreamedColumns)) {
    return false;
  }
  const double peak = contract.c.dtype == DType::f32 ? target.peak_f32 : target.peak_f64;
  const double memory = (rows + columns) * sum * bytes / target.read_bandwidth +
                        rows * columns * bytes / target.write_bandwidth;
  return 2 * rows * columns * sum / peak <= kMostArithmetic * memory;
}

Regime regime_of(const Contract& contract, const Target& target) {
  const double batch = extent(contract.batch), m = extent(contract.m), n = extent(contract.n),
               k = extent(contract.k);
  if (contract.k.empty()) return Regime::outer;
  if (contract.m.empty() && contract.n.empty()) return Regime::dot;
  if (batch >= kManyMatrices && m * n * k <= kSmallProducts) return Regime::small_batched;
  if (contract.m.empty() || contract.n.empty()) {
    // Only what is skinny widens.
    return widens(contract) && is_skinny(contract, target) ? Regime::skinny : Regime::matvec;
  }
  if (is_streamed(contract, target)) return Regime::stream;
  return is_skinny(contract, target) ? Regime::skinny : Regime::matmul;
}

Contract assemble(const Operand& a, const Operand& b, const Operand& c, const Groups& groups,
                  const Target& target) {
  Contract contract{Regime::matmul, a, b, c, plain(groups.batch), plain(groups.m), plain(groups.n),
                    plain(groups.k)};
  contract.regime = regime_of(contract, target);
  return contract;
}

}  // namespace

Contract make_contract(const Operand& a, const std::vector<LabelId>& labels_a, const Operand& b,
                       const std::vector<LabelId>& labels_b, const Operand& c,
                       const std::vector<LabelId>& labels_c, const Target& target) {
  PairLoops pair;
  pair.add(a, labels_a, &LabelledLoop::in_a, &LabelledLoop::a);
  pair.add(b, labels_b, &LabelledLoop::in_b, &LabelledLoop::b);
  pair.add(c, labels_c, &LabelledLoop::in_c, &LabelledLoop::c);
  Groups groups = groups_of(pair);
  const bool swapped = has_unit(groups.m, &Loop::c);
  if (swapped) swap_operands(groups);
  arrange(groups);
  return swapped ? assemble(b, a, c, groups, target) : assemble(a, b, c, groups, target);
}

bool reads_halves(const Contract& contract) {
  if (contract.c.dtype != DType::f32) return false;
  if (contract.regime == Regime::skinny) return true;
  // Small products and those along the lanes of a batch read operands where they lie.
  const double products =
      extent(contract.batch) * extent(contract.m) * extent(contract.n) * extent(contract.k);
  const bool lanes = !contract.batch.empty() && contract.batch.back().c == 1;
  return contract.regime == Regime::matmul && !lanes && products > kSmallProducts;
}

SelectContract make_select_contract(const Operand& weights, const std::vector<LabelId>& labels_w,
                                    const Operand& values, const std::vector<LabelId>& labels_v,
                                    const Operand& c, const std::vector<LabelId>& labels_c,
                                    const Operand& visible,
                                    const std::vector<LabelId>& labels_visible,
                                    const Target& target) {
  PairLoops pair;
  pair.add(weights, labels_w, &LabelledLoop::in_a, &LabelledLoop::a);
  pair.add(values, labels_v, &LabelledLoop::in_b, &LabelledLoop::b);
  pair.add(c, labels_c, &LabelledLoop::in_c, &LabelledLoop::c);
  pair.add(visible, labels_visible, nullptr, &LabelledLoop::v);
  Groups groups = groups_of(pair);
  arrange(groups);
  return {assemble(weights, values, c, groups, target), visible, fourth_strides(groups.batch),
          fourth_strides(groups.m), fourth_strides(groups.k)};
}

}  // namespace einkern::plan
