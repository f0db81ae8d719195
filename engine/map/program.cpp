// SPDX-License-Identifier: Apache-2.0
// Builds, prints and checks elementwise programs.
#include "program.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>

namespace einkern::map {
namespace {

struct OpFacts {
  std::string_view name;
  int arity;
};

constexpr OpFacts kFacts[] = {
    {"load", 0},        {"scalar", 0},     {"index", 0},      {"cast", 1},    {"neg", 1},
    {"abs", 1},         {"exp", 1},        {"log", 1},        {"sqrt", 1},    {"rsqrt", 1},
    {"sin", 1},         {"cos", 1},        {"tanh", 1},       {"sigmoid", 1}, {"erf", 1},
    {"logical_not", 1}, {"add", 2},        {"sub", 2},        {"mul", 2},     {"div", 2},
    {"floordiv", 2},    {"mod", 2},        {"pow", 2},        {"maximum", 2}, {"minimum", 2},
    {"random", 2},      {"less", 2},       {"less_equal", 2}, {"equal", 2},   {"not_equal", 2},
    {"logical_and", 2}, {"logical_or", 2}, {"select", 3},
};
static_assert(std::size(kFacts) == static_cast<std::size_t>(Op::select) + 1);

constexpr const OpFacts& facts(Op op) noexcept { return kFacts[static_cast<std::size_t>(op)]; }

bool computes(DType dtype) { return dtype == compute_dtype(dtype); }

/// What is wrong with the dtypes of one instruction; empty when nothing is.
std::string wrong_dtypes(const Instruction& code, const std::vector<Instruction>& all) {
  const auto dtype_at = [&](std::int32_t r) { return all[static_cast<std::size_t>(r)].dtype; };
  const DType result = code.dtype;
  switch (code.op) {
    case Op::load:
    case Op::cast:
      return {};
    case Op::scalar:
      return computes(result) || result == DType::boolean ? ""
                                                          : "a scalar is f32, f64, i64 or bool";
    case Op::index:
      return result == DType::i64 ? "" : "an index is i64";
    case Op::exp:
    case Op::log:
    case Op::sqrt:
    case Op::rsqrt:
    case Op::sin:
    case Op::cos:
    case Op::tanh:
    case Op::sigmoid:
    case Op::erf:
      if (!is_float(result) || !computes(result)) return "the result is no float";
      return dtype_at(code.a) == result ? "" : "operand and result differ in dtype";
    case Op::neg:
    case Op::abs:
      if (!computes(result)) return "the result is neither float nor i64";
      return dtype_at(code.a) == result ? "" : "operand and result differ in dtype";
    case Op::div:
      if (!is_float(result) || !computes(result)) return "the result is no float";
      [[fallthrough]];
    case Op::add:
    case Op::sub:
    case Op::mul:
    case Op::floordiv:
    case Op::mod:
    case Op::pow:
    case Op::maximum:
    case Op::minimum:
      if (!computes(result)) return "the result is neither float nor i64";
      return dtype_at(code.a) == result && dtype_at(code.b) == result
                 ? ""
                 : "operands and result differ in dtype";
    case Op::random:
      if (result != DType::i64) return "the result is not i64";
      return dtype_at(code.a) == result && dtype_at(code.b) == result ? "" : "operands are not i64";
    case Op::less:
    case Op::less_equal:
    case Op::equal:
    case Op::not_equal:
      if (result != DType::boolean) return "the result is no bool";
      if (dtype_at(code.a) != dtype_at(code.b)) return "operands differ in dtype";
      return computes(dtype_at(code.a)) || dtype_at(code.a) == DType::boolean
                 ? ""
                 : "operands are neither float, i64 nor bool";
    case Op::logical_not:
      return result == DType::boolean && dtype_at(code.a) == DType::boolean ? ""
                                                                            : "logic is on bools";
    case Op::logical_and:
    case Op::logical_or:
      return result == DType::boolean && dtype_at(code.a) == DType::boolean &&
                     dtype_at(code.b) == DType::boolean
                 ? ""
                 : "logic is on bools";
    case Op::select:
      if (dtype_at(code.a) != DType::boolean) return "the condition is no bool";
      return dtype_at(code.b) == result && dtype_at(code.c) == result
                 ? ""
                 : "branches and result differ in dtype";
  }
  return "no such operation";
}

std::string line(const Instruction& code, std::size_t position) {
  std::string text = fmt::format("r{}: {} = {}", position, name_of(code.dtype), name_of(code.op));
  if (code.op == Op::load || code.op == Op::scalar || code.op == Op::index) {
    return text + fmt::format(" {}", code.arg);
  }
  const std::int32_t operands[] = {code.a, code.b, code.c};
  for (int i = 0; i < arity(code.op); ++i) text += fmt::format(" r{}", operands[i]);
  return text;
}

}  // namespace

std::string_view name_of(Op op) noexcept { return facts(op).name; }
int arity(Op op) noexcept { return facts(op).arity; }

std::int32_t Program::emit(Instruction instruction) {
  const auto found = std::find(code.begin(), code.end(), instruction);
  const auto position = static_cast<std::int32_t>(found - code.begin());
  if (found == code.end()) code.push_back(instruction);
  return position;
}

std::string Program::str() const {
  std::string text;
  for (std::size_t i = 0; i < code.size(); ++i) text += line(code[i], i) + '\n';
  return text;
}

void verify(const Program& program, std::size_t inputs, std::size_t scalars, std::size_t rank) {
  const auto broken = [&](std::size_t i, const std::string& fact) {
    throw std::logic_error(
        fmt::format("map program: {} in line '{}'", fact, line(program.code[i], i)));
  };
  if (program.code.empty()) throw std::logic_error("map program: no instructions");
  for (std::size_t i = 0; i < program.code.size(); ++i) {
    const Instruction& code = program.code[i];
    const std::int32_t operands[] = {code.a, code.b, code.c};
    for (int k = 0; k < 3; ++k) {
      const bool used = k < arity(code.op);
      if (used && (operands[k] < 0 || static_cast<std::size_t>(operands[k]) >= i)) {
        broken(i, fmt::format("operand {} is no earlier register", k));
      }
      if (!used && operands[k] != -1) broken(i, fmt::format("operand {} is not used", k));
    }
    const auto within = [&](std::size_t limit, const char* what) {
      if (code.arg < 0 || static_cast<std::size_t>(code.arg) >= limit) {
        broken(i, fmt::format("{} {} of {}", what, code.arg, limit));
      }
    };
    if (code.op == Op::load) within(inputs, "input");
    if (code.op == Op::scalar) within(scalars, "scalar");
    if (code.op == Op::index) within(rank, "axis");
    if (const std::string fact = wrong_dtypes(code, program.code); !fact.empty()) broken(i, fact);
  }
}

}  // namespace einkern::map
