// SPDX-License-Identifier: Apache-2.0
// The closed list of things a plan can do. A step names its operands and loops; it holds no memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "../base/dtype.h"
#include "../base/layout.h"
#include "../base/small_vector.h"
#include "../map/program.h"

namespace einkern::plan {

using ValueId = std::int32_t;  // index into Plan::values

/// A strided view of a value: `layout.offset` counts elements from the value's first one.
struct Operand {
  ValueId value = -1;
  DType dtype = DType::f32;
  Layout layout;
};

/// One loop of a contraction: a size and the stride it has in each of the three tensors (0 where
/// the tensor does not have the label).
struct Loop {
  std::int64_t size = 1;
  std::int64_t a = 0, b = 0, c = 0;
  friend bool operator==(const Loop&, const Loop&) = default;
};
using Loops = SmallVector<Loop, 6>;

/// Which kernel a contraction runs on; chosen by the cost model, shown by `explain`.
/// `stream`: a short sum over a large operand, read once and written around the caches. `skinny`: a
/// large operand read once for a few rows or columns of the other.
enum class Regime : std::uint8_t { matmul, stream, skinny, small_batched, matvec, dot, outer };
std::string_view name_of(Regime regime) noexcept;

/// out[i] = program(inputs..., scalars..., i). Every input's layout has out's shape (stride 0 where
/// it broadcasts). `Op::scalar` reads the plan's scalar table.
struct Map {
  map::Program program;
  std::vector<Operand> inputs;
  Operand out;
};

/// c[batch, m, n] = sum_k a[batch, m, k] b[batch, n, k]. In every group the last loop is the
/// innermost; neighbouring loops whose strides nest in all tensors are fused; no loop has size 1.
/// The unit-stride loop of c, when there is one, is the last of `n` (a and b have been swapped to
/// make it so) or of `batch`. Source: index groups of TBLIS (Matthews, "High-performance tensor
/// contraction without transposition", 2018).
///
/// `epilogue`: what becomes of every sum as soon as it is complete, in place. Its `out` is c, and
/// so is every input of it that has c's value: the sum itself. Neighbouring axes of its space and
/// loops nest (see epilogue.h).
struct Contract {
  Regime regime = Regime::matmul;
  Operand a, b, c;  // of one dtype, but see widens()
  Loops batch, m, n, k;
  std::optional<Map> epilogue = {};
};

/// Does it read f16 or bf16? Packed and skinny products of f32 widen them on the way; nothing else
/// does.
inline bool widens(const Contract& step) noexcept {
  return is_half_float(step.a.dtype) || is_half_float(step.b.dtype);
}

enum class ReduceOp : std::uint8_t { sum, prod, max, min };
std::string_view name_of(ReduceOp op) noexcept;

/// out[kept] = op over reduced of in[kept, reduced]. Loops use strides a (in) and c (out).
struct Reduce {
  ReduceOp op = ReduceOp::sum;
  Operand in, out;
  Loops kept, reduced;
};

enum class SoftmaxKind : std::uint8_t { softmax, log_softmax, logsumexp };

/// Over the last `axes` axes of `in`: softmax, its logarithm, or log(sum(exp)). `out` has the shape
/// of `in`; for logsumexp, without those axes. `sink` (if value >= 0) is one extra logit per row,
/// its layout that of `in` without those axes. A row that is -inf everywhere gives 0, -inf, -inf.
struct Softmax {
  SoftmaxKind kind = SoftmaxKind::softmax;
  std::size_t axes = 1;
  Operand in, out, sink;
};

/// out = in, converted to out's dtype; same shapes, any strides (0 in `in` broadcasts).
struct Copy {
  Operand in, out;
};

/// Every element of out = value.
struct Fill {
  Operand out;
  double value = 0;
};

/// The selecting contraction: as Contract over `weights`, `values`; a product whose `visible`
/// element is false is skipped, so that hidden keys contribute nothing even where `values` holds
/// NaN or infinity. `visible` is addressed by the loops' stride `v`, parallel to batch, m and k.
struct SelectContract {
  Contract contract;  // a: weights, b: values (never swapped), regime as for the plain contraction
  Operand visible;    // boolean
  std::vector<std::int64_t> visible_batch, visible_m, visible_k;  // strides, one per loop
};

/// One axis of the scores of an Attend step: what it is and its stride in each tensor (0 where the
/// tensor does not have it).
struct ScoreAxis {
  enum class Role : std::uint8_t {
    batch,     // of keys or values too: one fold per position
    row,       // of queries only: grouped heads and query positions
    streamed,  // normalised over and contracted with the values
  };
  Role role = Role::batch;
  std::int64_t size = 1;
  std::int64_t q = 0, k = 0, v = 0, out = 0;
};

/// Keys or values that a table picks: key s of batch position b lies at
///   at[b, s] stride + (sum of the parts' strides `in`)
/// beyond where b's strides lead, in elements. A Check of `at` comes before.
struct TakenRows {
  Operand at;
  std::int64_t stride = 0;  // of one more in an entry of `at`
  Dims batch;               // strides of `at` by axis of the scores, 0 along streamed ones
  /// The streamed axes in order, each cut as fine as the table needs: outermost parts first.
  struct Part {
    std::size_t axis = 0;
    std::int64_t size = 1, in = 0, at = 0;
  };
  std::vector<Part> parts;
};

/// The fused pair of contractions, a fold over the streamed axes without a score tensor:
///   dot[b,r,s]   = sum_inner q[b,r,inner] k[b,s,inner]
///   score[b,r,s] = scores(dot, inputs..., scalars..., position)
///   out[b,r,e]   = sum_s factor(softmax_s(score), inputs..., position)[b,r,s] v[b,s,e]
/// `axes` are the axes of the scores in the order that the program's `index` and the inputs'
/// layouts count them. Load 0 of the program is the dot product; inputs[i] is load i + 1. `sink`
/// (if value >= 0): one more logit per row; `logsumexp` (if value >= 0): natural logarithm of the
/// denominator, sink included; both have layouts over all axes of the scores, stride 0 on streamed
/// ones. `visible`, when not empty, is a boolean program over the same loads: products where it is
/// false contribute nothing whatever v holds; when it is empty, 0 times NaN is NaN.
///
/// `factor`, when not empty, changes every weight: load 0 is the weight, in which it is linear and
/// 0 at 0. With `k_taken` or `v_taken`, that operand is what a table picks from: its strides along
/// streamed axes are those of the parts there, and those of `axes` are 0. Without `normalise` the
/// scores themselves are the weights. Where the scores are -inf for every s, the row of out is
/// `empty_row` (0 or NaN) and logsumexp is -inf or NaN. `floor` (if >= 0, a scalar's place): rows
/// whose denominator exp(score - floor) underflows are empty too, as they are where the maximum
/// that is subtracted never falls below it.
struct Attend {
  Operand q, k, v, out, sink, logsumexp;
  std::optional<TakenRows> k_taken, v_taken;
  std::vector<ScoreAxis> axes;
  Loops inner;    // strides a: q, b: k
  Loops columns;  // strides b: v, c: out
  map::Program scores, visible, factor;
  std::vector<Operand> inputs;
  bool normalise = true;
  double empty_row = 0;
  std::int32_t floor = -1;
};

/// out[i..., t..., j...] = in[i..., at[t...], j...]: `axis` axes are in front, those of `at` stand
/// in place of one of `in`. A Check of `at` comes before.
struct Take {
  Operand in, at, out;
  std::size_t axis = 0;
};

/// out[t] = gate[t] out[t - 1] + in[t] along `axis`, out[0] = in[0]; all layouts have out's shape.
/// Without a gate (value < 0) it is 1. Every sequence is added up in order by one thread.
struct Scan {
  Operand in, gate, out;
  std::size_t axis = 0;
};

/// Every element of `in` (integers) lies in low..high; otherwise the run fails with a ValueError
/// whose text is `message` with `{}` replaced by the first element that does not.
struct Check {
  Operand in;
  std::int64_t low = 0, high = 0;
  std::string message;
};

using Step = std::variant<Contract, SelectContract, Reduce, Map, Softmax, Copy, Fill, Attend, Check,
                          Take, Scan>;
std::string_view name_of(const Step& step) noexcept;

}  // namespace einkern::plan
