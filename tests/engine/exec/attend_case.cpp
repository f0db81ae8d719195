// SPDX-License-Identifier: Apache-2.0
// Lays out the tensors of Attend steps and works out their answers, row by row.
#include "attend_case.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "../../../engine/exec/attend.h"
#include "../../support/extremes.h"
#include "loop_offsets.h"

namespace einkern::test {
namespace {

double distance(double got, double want) {
  if (std::isnan(got) && std::isnan(want)) return 0;
  if (got == want) return 0;
  const double error = std::abs(got - want);
  return std::isnan(error) ? kInfinity : error;
}

}  // namespace

template <class T>
AttendCase<T>::AttendCase(const std::vector<Axis>& axes, const std::vector<std::int64_t>& inner,
                          const std::vector<std::int64_t>& columns, const AttendLook& how,
                          unsigned seed)
    : random(seed), look(how) {
  for (const Axis& axis : axes) step.axes.push_back({.role = axis.role, .size = axis.size});
  for (const std::int64_t size : inner) step.inner.push_back({.size = size});
  for (const std::int64_t size : columns) step.columns.push_back({.size = size});
  std::vector<std::pair<std::int64_t, std::int64_t*>> q, k, v, out;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    ScoreAxis& axis = step.axes[a];
    const Role role = axes[a].role;
    if (role != Role::streamed && axes[a].in_q) q.emplace_back(axis.size, &axis.q);
    if (role != Role::row && axes[a].in_k) k.emplace_back(axis.size, &axis.k);
    if (role != Role::row && axes[a].in_v) v.emplace_back(axis.size, &axis.v);
    if (role != Role::streamed) out.emplace_back(axis.size, &axis.out);
  }
  for (plan::Loop& loop : step.inner) {
    q.emplace_back(loop.size, &loop.a);
    k.emplace_back(loop.size, &loop.b);
  }
  for (plan::Loop& loop : step.columns) {
    v.emplace_back(loop.size, &loop.b);
    out.emplace_back(loop.size, &loop.c);
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

template <class T>
plan::Operand AttendCase<T>::place(std::vector<std::pair<std::int64_t, std::int64_t*>> dims,
                                   DType dtype) {
  if (look.shuffle) std::shuffle(dims.begin(), dims.end(), random);
  std::int64_t size = 1, first = 0;
  for (auto dim = dims.rbegin(); dim != dims.rend(); ++dim) {
    const bool reversed = look.reverse && random() % 3 == 0;
    *dim->second = reversed ? -size : size;
    if (reversed) first += size * std::max<std::int64_t>(dim->first - 1, 0);
    size *= std::max<std::int64_t>(dim->first, 1);
    if (look.pad && random() % 2 == 0) size += static_cast<std::int64_t>(random() % 3);
  }
  StoredTensor stored;
  stored.bytes.resize(static_cast<std::size_t>(size) * size_of(dtype));
  stored.operand.value = static_cast<plan::ValueId>(tensors.size());
  stored.operand.dtype = dtype;
  stored.operand.layout.offset = first;
  tensors.push_back(std::move(stored));
  return tensors.back().operand;
}

/// A new tensor over the axes of the scores that `has` names; returns its place in `tensors`.
template <class T>
std::size_t AttendCase<T>::over_axes(const std::vector<bool>& has, DType dtype,
                                     plan::Operand& operand) {
  Dims shape, strides(step.axes.size(), 0);
  std::vector<std::pair<std::int64_t, std::int64_t*>> dims;
  for (std::size_t a = 0; a < step.axes.size(); ++a) {
    shape.push_back(step.axes[a].size);
    if (has[a]) dims.emplace_back(step.axes[a].size, &strides[a]);
  }
  operand = place(dims, dtype);
  operand.layout.shape = shape;
  operand.layout.strides = strides;
  return tensors.size() - 1;
}

template <class T>
std::vector<bool> AttendCase<T>::axes_of(std::initializer_list<Role> roles) const {
  std::vector<bool> has;
  for (const ScoreAxis& axis : step.axes) {
    has.push_back(std::find(roles.begin(), roles.end(), axis.role) != roles.end());
  }
  return has;
}

template <class T>
std::size_t AttendCase<T>::add_input(std::initializer_list<Role> roles, DType dtype) {
  step.inputs.emplace_back();
  return over_axes(axes_of(roles), dtype, step.inputs.back());
}

template <class T>
void AttendCase<T>::add_logsumexp() {
  clear(over_axes(axes_of({Role::batch, Role::row}), dtype_of<T>, step.logsumexp));
}

template <class T>
std::size_t AttendCase<T>::add_sink(std::initializer_list<Role> roles) {
  const std::size_t at = over_axes(axes_of(roles), dtype_of<T>, step.sink);
  fill_uniform(at, -1, 2);
  return at;
}

template <class T>
void AttendCase<T>::fill_uniform(std::size_t tensor, double low, double high) {
  std::uniform_real_distribution<double> uniform(low, high);
  each<T>(tensor, [&](T& x) { x = static_cast<T>(uniform(random)); });
}

template <class T>
void AttendCase<T>::fill_normal(std::size_t tensor, double deviation) {
  std::normal_distribution<double> normal(0, deviation);
  each<T>(tensor, [&](T& x) { x = static_cast<T>(normal(random)); });
}

template <class T>
void AttendCase<T>::clear(std::size_t tensor) {
  each<T>(tensor, [](T& x) { x = static_cast<T>(-77); });
}

template <class T>
void AttendCase<T>::run(const kernel::Kernels& kernels) {
  std::vector<std::byte*> values;
  for (StoredTensor& stored : tensors) values.push_back(stored.bytes.data());
  exec::run(step, exec::Frame{.values = values, .scalars = scalars, .kernels = kernels});
}

template <class T>
std::vector<typename AttendCase<T>::Row> AttendCase<T>::rows() {
  std::vector<Row> all;
  Index index(step.axes.size(), 0);
  walk(index, 0, false, [&] { all.push_back(answer(index)); });
  return all;
}

template <class T>
typename AttendCase<T>::Errors AttendCase<T>::worst(const std::vector<Row>& rows) {
  double size = 1e-30;
  each<T>(2, [&](T& x) {
    if (std::isfinite(x)) size = std::max(size, std::abs(static_cast<double>(x)));
  });
  Errors errors;
  const auto columns = offsets(step.columns, &plan::Loop::c);
  for (const Row& want : rows) {
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const double got = element(step.out, want.out_at + columns[c]);
      errors.out = std::max(errors.out, distance(got, want.out[c]) / size);
    }
    if (step.logsumexp.value < 0) continue;
    const double got = element(step.logsumexp, want.logsumexp_at);
    errors.logsumexp = std::max(
        errors.logsumexp, distance(got, want.logsumexp) / std::max(1.0, std::abs(want.logsumexp)));
  }
  return errors;
}

template <class T>
double AttendCase<T>::element(const plan::Operand& operand, std::int64_t offset) {
  std::byte* const data = tensors[static_cast<std::size_t>(operand.value)].bytes.data();
  return dispatch(operand.dtype, [&]<class U>(std::type_identity<U>) {
    return static_cast<double>(widen(reinterpret_cast<U*>(data)[operand.layout.offset + offset]));
  });
}

template <class T>
double AttendCase<T>::element(const plan::Operand& operand, const Index& index) {
  std::int64_t sum = 0;
  for (std::size_t a = 0; a < index.size(); ++a) sum += index[a] * operand.layout.strides[a];
  return element(operand, sum);
}

template <class T>
std::int64_t AttendCase<T>::offset(const Index& index, std::int64_t ScoreAxis::*stride) const {
  std::int64_t sum = 0;
  for (std::size_t a = 0; a < index.size(); ++a) sum += index[a] * (step.axes[a].*stride);
  return sum;
}

/// Calls f for every position of the axes that are streamed, or of those that are not.
template <class T>
template <class F>
void AttendCase<T>::walk(Index& index, std::size_t axis, bool streamed, F&& f) {
  if (axis == step.axes.size()) return f();
  if ((step.axes[axis].role == Role::streamed) != streamed) {
    return walk(index, axis + 1, streamed, f);
  }
  for (index[axis] = 0; index[axis] < step.axes[axis].size; ++index[axis]) {
    walk(index, axis + 1, streamed, f);
  }
  index[axis] = 0;
}

/// The answer of the row at `index`.
template <class T>
typename AttendCase<T>::Row AttendCase<T>::answer(Index& index) {
  const auto q_inner = offsets(step.inner, &plan::Loop::a);
  const auto k_inner = offsets(step.inner, &plan::Loop::b);
  const auto v_columns = offsets(step.columns, &plan::Loop::b);
  const T* const q = tensors[0].data<T>() + step.q.layout.offset + offset(index, &ScoreAxis::q);
  std::vector<double> scores, loads;
  std::vector<bool> seen;
  std::vector<const T*> values;
  walk(index, 0, true, [&] {
    const T* const k = tensors[1].data<T>() + step.k.layout.offset + offset(index, &ScoreAxis::k);
    double dot = 0;
    for (std::size_t i = 0; i < q_inner.size(); ++i) {
      dot += static_cast<double>(q[q_inner[i]]) * static_cast<double>(k[k_inner[i]]);
    }
    loads.assign(1, dot);
    for (const plan::Operand& input : step.inputs) loads.push_back(element(input, index));
    scores.push_back(evaluate(step.scores, loads, scalars, index));
    seen.push_back(step.visible.code.empty() || evaluate(step.visible, loads, scalars, index) != 0);
    values.push_back(tensors[2].data<T>() + step.v.layout.offset + offset(index, &ScoreAxis::v));
  });
  const bool sinks = step.sink.value >= 0;
  const double sink = sinks ? element(step.sink, index) : -kInfinity;
  double most = sink;
  for (const double score : scores) most = std::max(most, score);
  Row row{.out_at = offset(index, &ScoreAxis::out),
          .logsumexp_at = 0,
          .out = std::vector<double>(v_columns.size(), 0),
          .logsumexp = -kInfinity};
  if (step.logsumexp.value >= 0) {
    for (std::size_t a = 0; a < index.size(); ++a) {
      row.logsumexp_at += index[a] * step.logsumexp.layout.strides[a];
    }
  }
  const bool nan =
      std::any_of(scores.begin(), scores.end(), [](double x) { return std::isnan(x); });
  if (most == -kInfinity && !nan) return row;
  double sum = sinks ? std::exp(sink - most) : 0;
  for (double& score : scores) sum += score = std::exp(score - most);
  row.logsumexp = most + std::log(sum);
  for (std::size_t s = 0; s < scores.size(); ++s) {
    if (!seen[s]) continue;
    for (std::size_t c = 0; c < v_columns.size(); ++c) {
      row.out[c] += scores[s] / sum * static_cast<double>(values[s][v_columns[c]]);
    }
  }
  return row;
}

template struct AttendCase<float>;
template struct AttendCase<double>;

}  // namespace einkern::test
