// SPDX-License-Identifier: Apache-2.0
// Evaluates score programs element by element, with nothing of the engine but the list of
// operations.
#include "attend_program.h"

#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>

namespace einkern::test {

double evaluate(const Program& program, const std::vector<double>& loads,
                const std::vector<map::Scalar>& scalars, const std::vector<std::int64_t>& index) {
  std::vector<double> r(program.code.size());
  for (std::size_t i = 0; i < r.size(); ++i) {
    const map::Instruction& code = program.code[i];
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

}  // namespace einkern::test
