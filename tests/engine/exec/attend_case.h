// SPDX-License-Identifier: Apache-2.0
// Attend steps over random tensors and layouts, and their answer by plain loops in double.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "../../../engine/exec/attend.h"
#include "../../../engine/exec/parallel.h"

namespace einkern::test {

using map::Instruction;
using map::Op;
using map::Program;
using plan::ScoreAxis;
using Role = plan::ScoreAxis::Role;

/// Value of a program at one element, everything in double (booleans 0 and 1).
inline double evaluate(const Program& program, const std::vector<double>& loads,
                       const std::vector<map::Scalar>& scalars,
                       const std::vector<std::int64_t>& index) {
  std::vector<double> r(program.code.size());
  for (std::size_t i = 0; i < r.size(); ++i) {
    const Instruction& code = program.code[i];
    const auto at = [&](std::int32_t k) { return k < 0 ? 0.0 : r[static_cast<std::size_t>(k)]; };
    const double a = at(code.a), b = at(code.b), c = at(code.c);
    const auto arg = static_cast<std::size_t>(code.arg);
    switch (code.op) {
      case Op::load:
        r[i] = loads[arg];
        break;
      case Op::scalar:
        r[i] = scalars[arg].real;
        break;
      case Op::index:
        r[i] = static_cast<double>(index[arg]);
        break;
      case Op::cast:
        r[i] = code.dtype == DType::boolean ? (a != 0 ? 1 : 0) : a;
        break;
      case Op::neg:
        r[i] = -a;
        break;
      case Op::tanh:
        r[i] = std::tanh(a);
        break;
      case Op::logical_not:
        r[i] = a == 0 ? 1 : 0;
        break;
      case Op::add:
        r[i] = a + b;
        break;
      case Op::sub:
        r[i] = a - b;
        break;
      case Op::mul:
        r[i] = a * b;
        break;
      case Op::div:
        r[i] = a / b;
        break;
      case Op::less:
        r[i] = a < b ? 1 : 0;
        break;
      case Op::less_equal:
        r[i] = a <= b ? 1 : 0;
        break;
      case Op::equal:
        r[i] = a == b ? 1 : 0;
        break;
      case Op::logical_and:
        r[i] = a != 0 && b != 0 ? 1 : 0;
        break;
      case Op::logical_or:
        r[i] = a != 0 || b != 0 ? 1 : 0;
        break;
      case Op::select:
        r[i] = a != 0 ? b : c;
        break;
      default:
        throw std::logic_error("evaluate: no rule for " + std::string(name_of(code.op)));
    }
  }
  return r.back();
}

/// Writes programs: every function appends one instruction and returns its register.
struct Writer {
  Program program;
  std::vector<map::Scalar>& scalars;
  DType real;

  std::int32_t emit(Op op, DType dtype, std::int32_t a = -1, std::int32_t b = -1,
                    std::int32_t c = -1, std::int32_t arg = 0) {
    return program.emit({.op = op, .dtype = dtype, .a = a, .b = b, .c = c, .arg = arg});
  }
  std::int32_t dot() { return emit(Op::load, real); }
  std::int32_t load(std::int32_t input, DType dtype) {
    return emit(Op::load, dtype, -1, -1, -1, input + 1);
  }
  std::int32_t number(double value) {
    scalars.push_back(map::Scalar::of(value));
    return emit(Op::scalar, real, -1, -1, -1, static_cast<std::int32_t>(scalars.size()) - 1);
  }
  std::int32_t integer(std::int64_t value) {
    scalars.push_back(map::Scalar::of(value));
    return emit(Op::scalar, DType::i64, -1, -1, -1, static_cast<std::int32_t>(scalars.size()) - 1);
  }
  std::int32_t index(std::size_t axis) {
    return emit(Op::index, DType::i64, -1, -1, -1, static_cast<std::int32_t>(axis));
  }
  std::int32_t hide_unless(std::int32_t condition, std::int32_t scores) {
    return emit(Op::select, real, condition, scores,
                number(-std::numeric_limits<double>::infinity()));
  }
};

/// How tensors lie in memory.
struct AttendLook {
  bool shuffle = false, reverse = false, pad = false;
};

/// A tensor made for a step.
struct Stored {
  std::vector<std::byte> bytes;
  plan::Operand operand;

  template <class T>
  T* data() {
    return reinterpret_cast<T*>(bytes.data());
  }
};

/// An Attend step and its memory. Build it, change `tensors`, then `run` and `worst`.
template <class T>
struct AttendCase {
  plan::Attend step;
  std::vector<map::Scalar> scalars;
  std::vector<Stored> tensors;  // q, k, v, out, then logsumexp, sink and inputs as they are added
  std::mt19937 random;
  AttendLook look;

  struct Axis {
    Role role;
    std::int64_t size;
    bool in_q = true, in_k = true, in_v = true;
  };

  AttendCase(const std::vector<Axis>& axes, const std::vector<std::int64_t>& inner,
             const std::vector<std::int64_t>& columns, const AttendLook& how, unsigned seed)
      : random(seed), look(how) {
    for (const Axis& axis : axes) step.axes.push_back({.role = axis.role, .size = axis.size});
    for (const std::int64_t size : inner) step.inner.push_back({.size = size});
    for (const std::int64_t size : columns) step.columns.push_back({.size = size});
    std::vector<std::pair<std::int64_t, std::int64_t*>> q, k, v, out;
    for (std::size_t a = 0; a < axes.size(); ++a) {
      ScoreAxis& axis = step.axes[a];
      const Role role = axes[a].role;
      if (role != Role::streamed && axes[a].in_q) q.push_back({axis.size, &axis.q});
      if (role != Role::row && axes[a].in_k) k.push_back({axis.size, &axis.k});
      if (role != Role::row && axes[a].in_v) v.push_back({axis.size, &axis.v});
      if (role != Role::streamed) out.push_back({axis.size, &axis.out});
    }
    for (plan::Loop& loop : step.inner) {
      q.push_back({loop.size, &loop.a});
      k.push_back({loop.size, &loop.b});
    }
    for (plan::Loop& loop : step.columns) {
      v.push_back({loop.size, &loop.b});
      out.push_back({loop.size, &loop.c});
    }
    step.q = place(q, dtype_of<T>);
    step.k = place(k, dtype_of<T>);
    step.v = place(v, dtype_of<T>);
    step.out = place(out, dtype_of<T>);
    for (std::size_t t = 0; t < 3; ++t) fill_uniform(t, -1, 1);
    clear(3);
    Writer write = writer();
    write.dot();
    step.scores = write.program;
  }

  Writer writer() { return {{}, scalars, dtype_of<T>}; }

  /// A new tensor over the axes of the scores that `has` names; returns its place in `tensors`.
  std::size_t over_axes(const std::vector<bool>& has, DType dtype, plan::Operand& operand) {
    Dims shape, strides(step.axes.size(), 0);
    std::vector<std::pair<std::int64_t, std::int64_t*>> dims;
    for (std::size_t a = 0; a < step.axes.size(); ++a) {
      shape.push_back(step.axes[a].size);
      if (has[a]) dims.push_back({step.axes[a].size, &strides[a]});
    }
    operand = place(dims, dtype);
    operand.layout.shape = shape;
    operand.layout.strides = strides;
    return tensors.size() - 1;
  }
  std::vector<bool> axes_of(std::initializer_list<Role> roles) const {
    std::vector<bool> has;
    for (const ScoreAxis& axis : step.axes) {
      has.push_back(std::find(roles.begin(), roles.end(), axis.role) != roles.end());
    }
    return has;
  }
  /// Adds an input of the scores over the axes of these roles; returns its place in `tensors`.
  std::size_t add_input(std::initializer_list<Role> roles, DType dtype) {
    step.inputs.emplace_back();
    return over_axes(axes_of(roles), dtype, step.inputs.back());
  }
  void add_logsumexp() {
    clear(over_axes(axes_of({Role::batch, Role::row}), dtype_of<T>, step.logsumexp));
  }
  std::size_t add_sink(std::initializer_list<Role> roles) {
    const std::size_t at = over_axes(axes_of(roles), dtype_of<T>, step.sink);
    fill_uniform(at, -1, 2);
    return at;
  }

  void fill_uniform(std::size_t tensor, double low, double high) {
    std::uniform_real_distribution<double> uniform(low, high);
    each<T>(tensor, [&](T& x) { x = static_cast<T>(uniform(random)); });
  }
  void fill_normal(std::size_t tensor, double deviation) {
    std::normal_distribution<double> normal(0, deviation);
    each<T>(tensor, [&](T& x) { x = static_cast<T>(normal(random)); });
  }
  template <class U, class F>
  void each(std::size_t tensor, F&& f) {
    Stored& stored = tensors[tensor];
    for (std::size_t i = 0; i < stored.bytes.size() / sizeof(U); ++i) f(stored.data<U>()[i]);
  }
  void clear(std::size_t tensor) {
    each<T>(tensor, [](T& x) { x = static_cast<T>(-77); });
  }

  void run(const kernel::Kernels& kernels, int threads = 1) {
    std::vector<std::byte*> values;
    for (Stored& stored : tensors) values.push_back(stored.bytes.data());
    const exec::Frame frame{.values = values, .scalars = scalars, .kernels = kernels};
    exec::in_arena(threads, [&](std::int64_t) { exec::run(step, frame); });
  }

  /// Answers of one row in double.
  struct Row {
    std::vector<double> out;
    double logsumexp;
  };

  /// Calls f(row's element offsets: out, logsumexp; the right answer).
  void each_row(const std::function<void(std::int64_t, std::int64_t, const Row&)>& f) {
    std::vector<std::int64_t> index(step.axes.size(), 0);
    walk(index, 0, false, [&] { f_row(index, f); });
  }

  /// Largest |got - want| / max|v|, infinite where kinds of non-finite numbers differ; the same for
  /// logsumexp relative to max(1, |want|).
  struct Errors {
    double out = 0, logsumexp = 0;
  };
  Errors worst() {
    double size = 0;
    each<T>(2, [&](T& x) {
      if (std::isfinite(x)) size = std::max(size, std::abs(static_cast<double>(x)));
    });
    Errors errors;
    const std::vector<std::int64_t> columns = offsets(step.columns, &plan::Loop::c);
    each_row([&](std::int64_t out, std::int64_t logsumexp, const Row& want) {
      for (std::size_t c = 0; c < columns.size(); ++c) {
        const double got = static_cast<double>(element(step.out, out + columns[c]));
        errors.out = std::max(errors.out, distance(got, want.out[c]) / std::max(size, 1e-30));
      }
      if (step.logsumexp.value < 0) return;
      const double got = static_cast<double>(element(step.logsumexp, logsumexp));
      errors.logsumexp = std::max(errors.logsumexp, distance(got, want.logsumexp) /
                                                        std::max(1.0, std::abs(want.logsumexp)));
    });
    return errors;
  }

  double element(const plan::Operand& operand, std::int64_t offset) {
    std::byte* const data = tensors[static_cast<std::size_t>(operand.value)].bytes.data();
    return dispatch(operand.dtype, [&]<class U>(std::type_identity<U>) {
      return static_cast<double>(reinterpret_cast<U*>(data)[operand.layout.offset + offset]);
    });
  }

  static std::vector<std::int64_t> offsets(const plan::Loops& loops,
                                           std::int64_t plan::Loop::*stride) {
    std::vector<std::int64_t> all{0};
    for (const plan::Loop& loop : loops) {
      std::vector<std::int64_t> next;
      for (const std::int64_t at : all) {
        for (std::int64_t i = 0; i < loop.size; ++i) next.push_back(at + i * (loop.*stride));
      }
      all = std::move(next);
    }
    return all;
  }

 private:
  static double distance(double got, double want) {
    if (std::isnan(got) && std::isnan(want)) return 0;
    if (got == want) return 0;
    const double error = std::abs(got - want);
    return std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
  }

  plan::Operand place(std::vector<std::pair<std::int64_t, std::int64_t*>> dims, DType dtype) {
    if (look.shuffle) std::shuffle(dims.begin(), dims.end(), random);
    std::int64_t size = 1, first = 0;
    for (auto dim = dims.rbegin(); dim != dims.rend(); ++dim) {
      const bool reversed = look.reverse && random() % 3 == 0;
      *dim->second = reversed ? -size : size;
      if (reversed) first += size * std::max<std::int64_t>(dim->first - 1, 0);
      size *= std::max<std::int64_t>(dim->first, 1);
      if (look.pad && random() % 2 == 0) size += static_cast<std::int64_t>(random() % 3);
    }
    Stored stored;
    stored.bytes.resize(static_cast<std::size_t>(size) * size_of(dtype));
    stored.operand.value = static_cast<plan::ValueId>(tensors.size());
    stored.operand.dtype = dtype;
    stored.operand.layout.offset = first;
    tensors.push_back(std::move(stored));
    return tensors.back().operand;
  }

  /// Calls f for every position of the axes that are streamed, or of those that are not.
  template <class F>
  void walk(std::vector<std::int64_t>& index, std::size_t axis, bool streamed, F&& f) {
    if (axis == step.axes.size()) return f();
    if ((step.axes[axis].role == Role::streamed) != streamed) {
      return walk(index, axis + 1, streamed, f);
    }
    for (index[axis] = 0; index[axis] < step.axes[axis].size; ++index[axis]) {
      walk(index, axis + 1, streamed, f);
    }
    index[axis] = 0;
  }
  std::int64_t offset(const std::vector<std::int64_t>& index, std::int64_t ScoreAxis::*stride) {
    std::int64_t sum = 0;
    for (std::size_t a = 0; a < index.size(); ++a) sum += index[a] * (step.axes[a].*stride);
    return sum;
  }
  std::int64_t offset(const std::vector<std::int64_t>& index, const plan::Operand& operand) {
    std::int64_t sum = 0;
    for (std::size_t a = 0; a < index.size(); ++a) sum += index[a] * operand.layout.strides[a];
    return sum;
  }

  void f_row(std::vector<std::int64_t>& index,
             const std::function<void(std::int64_t, std::int64_t, const Row&)>& f) {
    const auto q_inner = offsets(step.inner, &plan::Loop::a);
    const auto k_inner = offsets(step.inner, &plan::Loop::b);
    const auto v_columns = offsets(step.columns, &plan::Loop::b);
    std::vector<double> scores, seen;
    std::vector<std::int64_t> values;
    walk(index, 0, true, [&] {
      double dot = 0;
      for (std::size_t i = 0; i < q_inner.size(); ++i) {
        dot += element(step.q, offset(index, &ScoreAxis::q) + q_inner[i]) *
               element(step.k, offset(index, &ScoreAxis::k) + k_inner[i]);
      }
      std::vector<double> loads{dot};
      for (const plan::Operand& input : step.inputs) {
        loads.push_back(element(input, offset(index, input)));
      }
      scores.push_back(evaluate(step.scores, loads, scalars, index));
      seen.push_back(step.visible.code.empty() ? 1 : evaluate(step.visible, loads, scalars, index));
      values.push_back(offset(index, &ScoreAxis::v));
    });
    const double infinity = std::numeric_limits<double>::infinity();
    const bool sinks = step.sink.value >= 0;
    const double sink = sinks ? element(step.sink, offset(index, step.sink)) : -infinity;
    double most = sink;
    for (const double score : scores) most = std::max(most, score);
    Row row{std::vector<double>(v_columns.size(), 0), -infinity};
    double sum = 0;
    if (most > -infinity ||
        std::any_of(scores.begin(), scores.end(), [](double x) { return std::isnan(x); })) {
      sum = sinks ? std::exp(sink - most) : 0;
      for (double& score : scores) sum += score = std::exp(score - most);
      row.logsumexp = most + std::log(sum);
      for (std::size_t s = 0; s < scores.size(); ++s) {
        if (seen[s] == 0) continue;
        for (std::size_t c = 0; c < v_columns.size(); ++c) {
          row.out[c] += scores[s] / sum * element(step.v, values[s] + v_columns[c]);
        }
      }
    }
    const std::int64_t logsumexp = step.logsumexp.value < 0 ? 0 : offset(index, step.logsumexp);
    f(offset(index, &ScoreAxis::out), logsumexp, row);
  }
};

}  // namespace einkern::test
