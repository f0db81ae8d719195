// SPDX-License-Identifier: Apache-2.0
// Runs the steps of a contraction plan by scalar loops, to test plans without kernels.
#include "naive_execute.h"

#include <cstddef>
#include <stdexcept>

#include "../../engine/plan/operands.h"

namespace einkern::test {
namespace {

using plan::Loop;
using plan::Loops;
using plan::Operand;

[[noreturn]] void broken(const char* what) { throw std::logic_error(what); }

/// Calls f(a, b, c) with the offsets of every iteration of all groups.
template <class F>
void for_each(const std::vector<const Loops*>& groups, const F& f, std::size_t group = 0,
              std::size_t depth = 0, std::int64_t a = 0, std::int64_t b = 0, std::int64_t c = 0) {
  while (group < groups.size() && depth == groups[group]->size()) ++group, depth = 0;
  if (group == groups.size()) return f(a, b, c);
  const Loop& loop = (*groups[group])[depth];
  for (std::int64_t i = 0; i < loop.size; ++i) {
    for_each(groups, f, group, depth + 1, a + i * loop.a, b + i * loop.b, c + i * loop.c);
  }
}

/// The axes of a view as loops: `a` moves through `first`, `c` through `second`.
Loops axes_of(const Layout& first, const Layout& second) {
  if (!(first.shape == second.shape)) broken("naive_execute: shapes of a step differ");
  Loops loops;
  for (std::size_t axis = 0; axis < first.rank(); ++axis) {
    loops.push_back({first.shape[axis], first.strides[axis], 0, second.strides[axis]});
  }
  return loops;
}

class Interpreter {
 public:
  Interpreter(const plan::Plan& plan, const std::vector<const void*>& inputs,
              const std::vector<void*>& outputs)
      : plan_(plan), bases_(plan.values.size()), owned_(plan.values.size()) {
    for (std::size_t i = 0; i < plan.inputs.size(); ++i) {
      base(plan.inputs[i]) = static_cast<std::byte*>(const_cast<void*>(inputs[i]));
    }
    for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
      base(plan.outputs[i]) = static_cast<std::byte*>(outputs[i]);
    }
  }

  void run() {
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      create(plan::written_by(plan_.steps[i]).value);
      const bool real = is_float(plan::written_by(plan_.steps[i]).dtype);
      std::visit([&](const auto& step) { real ? run<double>(step) : run<std::int64_t>(step); },
                 plan_.steps[i]);
      for (const plan::ValueId gone : plan_.dead[i]) {
        owned_[static_cast<std::size_t>(gone)].clear();
        base(gone) = nullptr;
      }
    }
  }

 private:
  std::byte*& base(plan::ValueId value) { return bases_[static_cast<std::size_t>(value)]; }

  void create(plan::ValueId id) {
    const plan::Value& value = plan_.values[static_cast<std::size_t>(id)];
    if (value.role != plan::Value::Role::temporary || base(id) != nullptr) return;
    std::vector<std::byte>& memory = owned_[static_cast<std::size_t>(id)];
    memory.assign(
        static_cast<std::size_t>(element_count(value.layout.shape)) * size_of(value.dtype),
        std::byte{55});
    base(id) = memory.data();
  }

  std::byte* address(const Operand& operand, std::int64_t offset) {
    if (base(operand.value) == nullptr) broken("naive_execute: a value that is not there");
    const std::int64_t at = operand.layout.offset + offset;
    const plan::Value& value = plan_.values[static_cast<std::size_t>(operand.value)];
    if (value.role == plan::Value::Role::temporary &&
        (at < 0 || at >= element_count(value.layout.shape))) {
      broken("naive_execute: an address outside a temporary");
    }
    if (value.dtype != operand.dtype) broken("naive_execute: dtype of an operand");
    return base(operand.value) + at * static_cast<std::int64_t>(size_of(operand.dtype));
  }

  template <class Number>
  Number load(const Operand& operand, std::int64_t offset) {
    const std::byte* at = address(operand, offset);
    return dispatch(operand.dtype, [&]<class T>(std::type_identity<T>) {
      return static_cast<Number>(widen(*reinterpret_cast<const T*>(at)));
    });
  }

  template <class Number>
  void store(const Operand& operand, std::int64_t offset, Number number) {
    std::byte* at = address(operand, offset);
    dispatch(operand.dtype, [&]<class T>(std::type_identity<T>) {
      *reinterpret_cast<T*>(at) = static_cast<T>(static_cast<Widened<T>>(number));
    });
  }

  template <class Number>
  void run(const plan::Contract& s) {
    if (!plan::widens(s) && (s.a.dtype != s.c.dtype || s.b.dtype != s.c.dtype)) {
      broken("naive_execute: mixed dtypes");
    }
    for_each({&s.batch, &s.m, &s.n}, [&](std::int64_t a, std::int64_t b, std::int64_t c) {
      Number sum = 0;
      for_each({&s.k}, [&](std::int64_t ka, std::int64_t kb, std::int64_t) {
        sum += load<Number>(s.a, a + ka) * load<Number>(s.b, b + kb);
      });
      store(s.c, c, sum);
    });
  }

  template <class Number>
  void run(const plan::Reduce& s) {
    if (s.op != plan::ReduceOp::sum) broken("naive_execute: only sums");
    if (s.in.dtype != s.out.dtype) broken("naive_execute: mixed dtypes");
    for_each({&s.kept}, [&](std::int64_t a, std::int64_t, std::int64_t c) {
      Number sum = 0;
      for_each({&s.reduced}, [&](std::int64_t ra, std::int64_t, std::int64_t) {
        sum += load<Number>(s.in, a + ra);
      });
      store(s.out, c, sum);
    });
  }

  /// Programs of loads and products only.
  template <class Number>
  void run(const plan::Map& s) {
    std::vector<std::int64_t> index(s.out.layout.rank());
    if (element_count(s.out.layout.shape) == 0) return;
    while (true) {
      const auto offset = [&](const Operand& operand) {
        if (!(operand.layout.shape == s.out.layout.shape)) broken("naive_execute: shapes of a map");
        std::int64_t at = 0;
        for (std::size_t i = 0; i < index.size(); ++i) at += index[i] * operand.layout.strides[i];
        return at;
      };
      std::vector<Number> registers;
      for (const map::Instruction& instruction : s.program.code) {
        if (instruction.op == map::Op::load) {
          const Operand& input = s.inputs.at(static_cast<std::size_t>(instruction.arg));
          if (input.dtype != instruction.dtype) broken("naive_execute: dtype of a load");
          registers.push_back(load<Number>(input, offset(input)));
        } else if (instruction.op == map::Op::mul) {
          registers.push_back(registers.at(static_cast<std::size_t>(instruction.a)) *
                              registers.at(static_cast<std::size_t>(instruction.b)));
        } else {
          broken("naive_execute: only products");
        }
      }
      store(s.out, offset(s.out), registers.back());
      std::size_t axis = index.size();
      while (axis > 0 && ++index[axis - 1] == s.out.layout.shape[axis - 1]) index[--axis] = 0;
      if (axis == 0) return;
    }
  }

  template <class Number>
  void run(const plan::Copy& s) {
    const Loops loops = axes_of(s.in.layout, s.out.layout);
    for_each({&loops}, [&](std::int64_t a, std::int64_t, std::int64_t c) {
      store(s.out, c, load<Number>(s.in, a));
    });
  }

  template <class Number>
  void run(const plan::Fill& s) {
    const Loops loops = axes_of(s.out.layout, s.out.layout);
    for_each({&loops}, [&](std::int64_t, std::int64_t, std::int64_t c) {
      store(s.out, c, static_cast<Number>(s.value));
    });
  }

  template <class Number, class Other>
  void run(const Other&) {
    broken("naive_execute: a step that contractions do not use");
  }

  const plan::Plan& plan_;
  std::vector<std::byte*> bases_;  // by ValueId
  std::vector<std::vector<std::byte>> owned_;
};

}  // namespace

void naive_execute(const plan::Plan& plan, const std::vector<const void*>& inputs,
                   const std::vector<void*>& outputs) {
  Interpreter(plan, inputs, outputs).run();
}

}  // namespace einkern::test
