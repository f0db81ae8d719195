// SPDX-License-Identifier: Apache-2.0
// Attend steps over random tensors and layouts, and their answer by plain loops in double.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <utility>
#include <vector>

#include "../../../engine/exec/frame.h"
#include "attend_program.h"

namespace einkern::test {

using plan::ScoreAxis;
using Role = plan::ScoreAxis::Role;

/// How tensors lie in memory.
struct AttendLook {
  bool shuffle = false, reverse = false, pad = false;
};

/// A tensor made for a step.
struct StoredTensor {
  std::vector<std::byte> bytes;
  plan::Operand operand;

  template <class T>
  T* data() {
    return reinterpret_cast<T*>(bytes.data());
  }
};

/// An Attend step and its memory. Build it, change `tensors`, then `run` and compare with `rows`. T
/// is float or double.
template <class T>
struct AttendCase {
  plan::Attend step;
  std::vector<map::Scalar> scalars;
  std::vector<StoredTensor>
      tensors;  // q, k, v, out, then logsumexp, sink and inputs as they are added
  std::mt19937 random;
  AttendLook look;

  struct Axis {
    Role role;
    std::int64_t size;
    bool in_q = true, in_k = true, in_v = true;
  };

  AttendCase(const std::vector<Axis>& axes, const std::vector<std::int64_t>& inner,
             const std::vector<std::int64_t>& columns, const AttendLook& how, unsigned seed);

  Writer writer() { return {{}, scalars, dtype_of<T>}; }

  /// Adds an input of the scores over the axes of these roles; returns its place in `tensors`.
  std::size_t add_input(std::initializer_list<Role> roles, DType dtype);
  void add_logsumexp();
  std::size_t add_sink(std::initializer_list<Role> roles);

  void fill_uniform(std::size_t tensor, double low, double high);
  void fill_normal(std::size_t tensor, double deviation);
  template <class U, class F>
  void each(std::size_t tensor, F&& f) {
    StoredTensor& stored = tensors[tensor];
    for (std::size_t i = 0; i < stored.bytes.size() / sizeof(U); ++i) f(stored.data<U>()[i]);
  }
  void clear(std::size_t tensor);

  void run(const kernel::Kernels& kernels);

  /// Answers of one row in double.
  struct Row {
    std::int64_t out_at, logsumexp_at;  // offsets of elements, before those of columns
    std::vector<double> out;
    double logsumexp;
  };
  std::vector<Row> rows();

  /// Largest |got - want| / max|v|, infinite where kinds of non-finite numbers differ; the same for
  /// logsumexp relative to max(1, |want|).
  struct Errors {
    double out = 0, logsumexp = 0;
  };
  Errors worst(const std::vector<Row>& rows);

 private:
  using Index = std::vector<std::int64_t>;  // by axis of the scores

  plan::Operand place(std::vector<std::pair<std::int64_t, std::int64_t*>> dims, DType dtype);
  std::size_t over_axes(const std::vector<bool>& has, DType dtype, plan::Operand& operand);
  std::vector<bool> axes_of(std::initializer_list<Role> roles) const;
  double element(const plan::Operand& operand, std::int64_t offset);
  double element(const plan::Operand& operand, const Index& index);
  std::int64_t offset(const Index& index, std::int64_t ScoreAxis::*stride) const;
  template <class F>
  void walk(Index& index, std::size_t axis, bool streamed, F&& f);
  Row answer(Index& index);
};

extern template struct AttendCase<float>;
extern template struct AttendCase<double>;

}  // namespace einkern::test
