// SPDX-License-Identifier: Apache-2.0
// Finds the factor and the bias of a score program by walking it once.
#include "attend_form.h"

#include <cmath>
#include <limits>

#include "scratch.h"

namespace einkern::exec {
namespace {

using map::Instruction;
using map::Op;
using map::Program;
using Register = std::int32_t;

const Instruction& at(const Program& program, Register r) {
  return program.code[static_cast<std::size_t>(r)];
}

/// What `result` needs of a program, and nothing else.
Program part_for(const Program& program, Register result) {
  std::vector<bool> needed(static_cast<std::size_t>(result) + 1, false);
  needed.back() = true;
  for (Register r = result; r >= 0; --r) {
    if (!needed[static_cast<std::size_t>(r)]) continue;
    for (const Register operand : {at(program, r).a, at(program, r).b, at(program, r).c}) {
      if (operand >= 0) needed[static_cast<std::size_t>(operand)] = true;
    }
  }
  Program part;
  std::vector<Register> place(needed.size(), -1);
  for (Register r = 0; r <= result; ++r) {
    if (!needed[static_cast<std::size_t>(r)]) continue;
    Instruction code = at(program, r);
    for (Register* operand : {&code.a, &code.b, &code.c}) {
      if (*operand >= 0) *operand = place[static_cast<std::size_t>(*operand)];
    }
    place[static_cast<std::size_t>(r)] = static_cast<Register>(part.code.size());
    part.code.push_back(code);
  }
  return part;
}

/// A register during the walk.
struct Known {
  bool dot = false;      // depends on the dot product
  bool uniform = false;  // depends on scalars only
  bool linear = false;   // `factor` and `bias` hold
  double factor = 0, cap = 0;
  Register bias = -1;  // in the bias program; -1: 0
  Register copy = -1;  // of a register without dot, in the bias program
};

class ScoreWalk {
 public:
  ScoreWalk(const Program& scores, std::span<const map::Scalar> scalars,
            const kernel::MapKernels& kernels)
      : scores_(scores), scalars_(scalars), kernels_(kernels), known_(scores.code.size()) {}

  std::optional<LinearScore> run() {
    for (std::size_t i = 0; i < known_.size(); ++i) {
      visit(static_cast<Register>(i));
    }
    const Known& last = known_.back();
    constexpr double kMost = 0x1p40;  // far from where a scaled query loses bits or overflows
    const double size = std::abs(last.factor);
    if (!last.linear || !(size <= kMost) || !(size >= 1 / kMost)) return std::nullopt;
    if (last.cap != 0 && !(std::abs(last.cap) <= kMost && std::abs(last.cap) >= 1 / kMost)) {
      return std::nullopt;
    }
    LinearScore result{.factor = last.factor, .cap = last.cap, .bias = {}};
    if (last.bias >= 0) result.bias = part_for(bias_, last.bias);
    return result;
  }

 private:
  Known& known(Register r) { return known_[static_cast<std::size_t>(r)]; }

  void visit(Register r) {
    Instruction code = at(scores_, r);
    Known& result = known(r);
    result.uniform = code.op != Op::load && code.op != Op::index;
    result.dot = code.op == Op::load && code.arg == 0;
    for (const Register operand : {code.a, code.b, code.c}) {
      if (operand < 0) continue;
      result.dot |= known(operand).dot;
      result.uniform &= known(operand).uniform;
    }
    if (result.dot) {
      visit_dot(code, result);
      return;
    }
    for (Register* operand : {&code.a, &code.b, &code.c}) {
      if (*operand >= 0) *operand = known(*operand).copy;
    }
    result.copy = bias_.emit(code);
  }

  void visit_dot(const Instruction& code, Known& result) {
    const auto become = [&](const Known& from, double times, Register bias) {
      result.linear = from.cap == 0 || from.cap * times != 0;
      result.factor = from.cap == 0 ? from.factor * times : from.factor;
      result.cap = from.cap * times;
      result.bias = bias;
    };
    const auto emit = [&](Op op, Register a, Register b = -1, Register c = -1) {
      return bias_.emit({.op = op, .dtype = code.dtype, .a = a, .b = b, .c = c});
    };
    switch (code.op) {
      case Op::load:
        result.linear = true;
        result.factor = 1;
        return;
      case Op::tanh: {
        const Known& a = known(code.a);
        if (!a.linear || a.cap != 0 || a.bias >= 0) return;
        result.linear = true;
        result.factor = a.factor;
        result.cap = 1;
        return;
      }
      case Op::neg: {
        const Known& a = known(code.a);
        if (a.linear) become(a, -1, a.bias < 0 ? -1 : emit(Op::neg, a.bias));
        return;
      }
      case Op::mul:
      case Op::div: {
        Known x = known(code.a), y = known(code.b);
        if (code.op == Op::mul && y.dot) std::swap(x, y);
        if (!x.linear || !y.uniform) return;
        const double value = value_of(y.copy);
        become(x, code.op == Op::mul ? value : 1 / value,
               x.bias < 0 ? -1 : emit(code.op, x.bias, y.copy));
        return;
      }
      case Op::add: {
        Known x = known(code.a), y = known(code.b);
        if (y.dot) std::swap(x, y);
        if (!x.linear || y.dot) return;
        become(x, 1, x.bias < 0 ? y.copy : emit(Op::add, x.bias, y.copy));
        return;
      }
      case Op::sub: {
        const Known x = known(code.a), y = known(code.b);
        if (x.linear && !y.dot) {
          become(x, 1, x.bias < 0 ? emit(Op::neg, y.copy) : emit(Op::sub, x.bias, y.copy));
        } else if (y.linear && !x.dot) {
          become(y, -1, y.bias < 0 ? x.copy : emit(Op::sub, x.copy, y.bias));
        }
        return;
      }
      case Op::select: {
        if (known(code.a).dot) return;
        Known x = known(code.b), y = known(code.c);
        hide(x, y);
        hide(y, x);
        if (!x.linear || !y.linear || x.factor != y.factor || x.cap != y.cap) return;
        if (x.bias < 0 && y.bias < 0) return become(x, 1, -1);
        for (Known* side : {&x, &y}) {
          if (side->bias < 0) side->bias = zero(code.dtype);
        }
        become(x, 1, emit(Op::select, known(code.a).copy, x.bias, y.bias));
        return;
      }
      default:
        return;
    }
  }

  /// A branch that is -inf whatever the dot product: linear with the factor of the other.
  void hide(Known& branch, const Known& other) {
    if (branch.dot || !branch.uniform) return;
    if (value_of(branch.copy) != -std::numeric_limits<double>::infinity()) return;
    branch.linear = true;
    branch.factor = other.factor;
    branch.cap = other.cap;
    branch.bias = branch.copy;
  }

  Register zero(DType dtype) {
    return bias_.emit(
        {.op = Op::scalar, .dtype = dtype, .arg = static_cast<std::int32_t>(scalars_.size())});
  }

  /// Value of a float register of the bias program that depends on scalars only; NaN for others.
  double value_of(Register r) const {
    const DType dtype = at(bias_, r).dtype;
    if (!is_float(dtype)) return std::numeric_limits<double>::quiet_NaN();
    std::vector<map::Scalar> scalars(scalars_.begin(), scalars_.end());
    scalars.push_back(map::Scalar::of(0.0));
    const kernel::TileProgram program(part_for(bias_, r), scalars, kernels_);
    const ScratchBlock memory(program.scratch_bytes());
    alignas(64) std::byte value[sizeof(double)];
    program.prepare(memory.data(), 1);
    program.run({.out = {.data = value, .row_stride = 1, .stride = 1}}, memory.data());
    return dtype == DType::f32 ? static_cast<double>(*reinterpret_cast<const float*>(value))
                               : *reinterpret_cast<const double*>(value);
  }

  const Program& scores_;
  std::span<const map::Scalar> scalars_;
  const kernel::MapKernels& kernels_;
  std::vector<Known> known_;
  Program bias_;
};

}  // namespace

std::optional<LinearScore> linear_form(const Program& scores, std::span<const map::Scalar> scalars,
                                       const kernel::MapKernels& kernels) {
  return ScoreWalk(scores, scalars, kernels).run();
}

bool depends_on_difference(const Program& program, std::int64_t row_axis, std::int64_t key_axis,
                           const std::vector<bool>& constant) {
  // An integer register is whole multiples of the two positions plus what their difference decides.
  struct Multiples {
    bool known = false;
    std::int64_t row = 0, key = 0;
    bool balanced() const { return known && row + key == 0; }
  };
  std::vector<Multiples> multiples(program.code.size());
  constexpr std::int64_t kMost = 8;
  for (std::size_t i = 0; i < multiples.size(); ++i) {
    const Instruction& code = program.code[i];
    const auto of = [&](Register r) {
      return r < 0 ? Multiples{.known = true} : multiples[static_cast<std::size_t>(r)];
    };
    const Multiples a = of(code.a), b = of(code.b), c = of(code.c);
    const bool compares = code.op == Op::less || code.op == Op::less_equal ||
                          code.op == Op::equal || code.op == Op::not_equal;
    const bool integer = code.dtype == DType::i64;
    Multiples& result = multiples[i];
    if (code.op == Op::load) {
      result.known = constant[static_cast<std::size_t>(code.arg)];
    } else if (code.op == Op::index) {
      result = {true, code.arg == row_axis ? 1 : 0, code.arg == key_axis ? 1 : 0};
    } else if (integer && code.op == Op::neg) {
      result = {a.known, -a.row, -a.key};
    } else if (integer && code.op == Op::add) {
      result = {a.known && b.known, a.row + b.row, a.key + b.key};
    } else if (compares || (integer && code.op == Op::sub)) {
      result = {a.known && b.known, a.row - b.row, a.key - b.key};
      // Comparing looks at the difference of the sides alone.
      if (compares) result = {.known = result.balanced()};
    } else {
      result.known = a.balanced() && b.balanced() && c.balanced();
    }
    result.known &= std::abs(result.row) <= kMost && std::abs(result.key) <= kMost;
  }
  return multiples.back().balanced();
}

}  // namespace einkern::exec
