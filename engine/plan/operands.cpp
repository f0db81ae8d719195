// SPDX-License-Identifier: Apache-2.0
// Names of steps, and the operands that they read and write.
#include "operands.h"

namespace einkern::plan {
namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

}  // namespace

std::string_view name_of(Regime regime) noexcept {
  switch (regime) {
    case Regime::matmul:
      return "matmul";
    case Regime::stream:
      return "stream";
    case Regime::skinny:
      return "skinny";
    case Regime::small_batched:
      return "small_batched";
    case Regime::matvec:
      return "matvec";
    case Regime::dot:
      return "dot";
    case Regime::outer:
      break;
  }
  return "outer";
}

std::string_view name_of(ReduceOp op) noexcept {
  switch (op) {
    case ReduceOp::sum:
      return "sum";
    case ReduceOp::prod:
      return "prod";
    case ReduceOp::max:
      return "max";
    case ReduceOp::min:
      break;
  }
  return "min";
}

std::string_view name_of(const Step& step) noexcept {
  constexpr std::string_view kNames[] = {
      "contract", "select_contract", "reduce", "map",  "softmax", "copy",
      "fill",     "attend",          "check",  "take", "scan"};
  static_assert(std::size(kNames) == std::variant_size_v<Step>);
  return kNames[step.index()];
}

std::vector<Operand> reads_of(const Step& step) {
  using Operands = std::vector<Operand>;
  return std::visit(Overloaded{
                        [](const Contract& s) {
                          Operands all{s.a, s.b};
                          if (!s.epilogue) return all;
                          for (const Operand& input : s.epilogue->inputs) {
                            if (input.value != s.c.value) all.push_back(input);
                          }
                          return all;
                        },
                        [](const SelectContract& s) {
                          return Operands{s.contract.a, s.contract.b, s.visible};
                        },
                        [](const Reduce& s) { return Operands{s.in}; },
                        [](const Map& s) { return s.inputs; },
                        [](const Softmax& s) {
                          return s.sink.value >= 0 ? Operands{s.in, s.sink} : Operands{s.in};
                        },
                        [](const Copy& s) { return Operands{s.in}; },
                        [](const Fill&) { return Operands{}; },
                        [](const Check& s) { return Operands{s.in}; },
                        [](const Take& s) {
                          return Operands{s.in, s.at};
                        },
                        [](const Scan& s) {
                          return s.gate.value >= 0 ? Operands{s.in, s.gate} : Operands{s.in};
                        },
                        [](const Attend& s) {
                          Operands all{s.q, s.k, s.v};
                          all.insert(all.end(), s.inputs.begin(), s.inputs.end());
                          if (s.k_taken) all.push_back(s.k_taken->at);
                          if (s.v_taken) all.push_back(s.v_taken->at);
                          if (s.sink.value >= 0) all.push_back(s.sink);
                          return all;
                        },
                    },
                    step);
}

const Operand& written_by(const Step& step) {
  return std::visit(Overloaded{
                        [](const Contract& s) -> const Operand& { return s.c; },
                        [](const SelectContract& s) -> const Operand& { return s.contract.c; },
                        [](const Check& s) -> const Operand& { return s.in; },
                        [](const auto& s) -> const Operand& { return s.out; },
                    },
                    step);
}

std::vector<Operand> writes_of(const Step& step) {
  std::vector<Operand> all;
  each_written(step, [&](const Operand& operand) { all.push_back(operand); });
  return all;
}

}  // namespace einkern::plan
