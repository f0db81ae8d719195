// SPDX-License-Identifier: Apache-2.0
// A step as flops, bytes and seconds on one thread: a roofline and an overhead per call.
#include <algorithm>

#include "builder.h"
#include "loops.h"
#include "operands.h"

namespace einkern::plan {
namespace {

double width(const Operand& operand) { return static_cast<double>(size_of(operand.dtype)); }

double elements(const Shape& shape) {
  double count = 1;
  for (const std::int64_t size : shape) count *= static_cast<double>(size);
  return count;
}

/// Bytes under a view; what stride 0 repeats is there once.
double bytes(const Operand& operand) {
  double count = 1;
  for (std::size_t axis = 0; axis < operand.layout.rank(); ++axis) {
    if (operand.layout.strides[axis] == 0) continue;
    count *= static_cast<double>(operand.layout.shape[axis]);
  }
  return count * width(operand);
}

/// Flops of an operation of a map program: about what its polynomial takes.
double weight(map::Op op) {
  switch (op) {
    case map::Op::load:
    case map::Op::scalar:
    case map::Op::index:
      return 0;
    case map::Op::exp:
    case map::Op::log:
    case map::Op::sin:
    case map::Op::cos:
    case map::Op::random:
    case map::Op::tanh:
    case map::Op::sigmoid:
    case map::Op::erf:
      return 20;
    case map::Op::pow:
      return 40;
    case map::Op::div:
    case map::Op::floordiv:
    case map::Op::mod:
    case map::Op::sqrt:
    case map::Op::rsqrt:
      return 4;
    default:
      return 1;
  }
}

double flops_of(const Map& s) {
  double flops = 0;
  for (const map::Instruction& instruction : s.program.code) flops += weight(instruction.op);
  return flops * elements(s.out.layout.shape);
}

Estimate work(const Contract& s) {
  Estimate result;
  result.flops = 2 * extent(s.batch) * extent(s.m) * extent(s.n) * extent(s.k);
  if (s.epilogue) result.flops += flops_of(*s.epilogue);
  for (const Operand& operand : reads_of(Step(s))) result.bytes_read += bytes(operand);
  result.bytes_written = bytes(s.c);
  return result;
}

Estimate work(const SelectContract& s) {
  Estimate result = work(s.contract);
  result.bytes_read += bytes(s.visible);
  return result;
}

Estimate work(const Reduce& s) {
  return {extent(s.kept) * extent(s.reduced), bytes(s.in), bytes(s.out), 0};
}

Estimate work(const Map& s) {
  Estimate result;
  result.flops = flops_of(s);
  for (const Operand& input : s.inputs) result.bytes_read += bytes(input);
  result.bytes_written = bytes(s.out);
  return result;
}

Estimate work(const Softmax& s) {
  // The exponential, and one each for the maximum, the difference, the sum and the quotient.
  const double flops = (weight(map::Op::exp) + 4) * elements(s.in.layout.shape);
  const double sink = s.sink.value >= 0 ? bytes(s.sink) : 0;
  return {flops, bytes(s.in) + sink, bytes(s.out), 0};
}

Estimate work(const Copy& s) { return {0, bytes(s.in), bytes(s.out), 0}; }

Estimate work(const Check& s) { return {elements(s.in.layout.shape), bytes(s.in), 0, 0}; }

Estimate work(const Take& s) {
  // What is written was read: elsewhere perhaps, and some of it more than once.
  return {0, bytes(s.out) + bytes(s.at), bytes(s.out), 0};
}

Estimate work(const Scan& s) {
  const double gate = s.gate.value >= 0 ? bytes(s.gate) : 0;
  return {2 * elements(s.out.layout.shape), bytes(s.in) + gate, bytes(s.out), 0};
}

Estimate work(const Fill& s) { return {0, 0, bytes(s.out), 0}; }

/// Bytes of keys or values in a table: elsewhere perhaps, and some of them more than once.
double taken_bytes(const TakenRows& taken, const Operand& operand, const Attend& s,
                   std::int64_t ScoreAxis::*stride, const Loops& inner) {
  double count = extent(inner);
  for (std::size_t a = 0; a < s.axes.size(); ++a) {
    const bool moves = s.axes[a].role == ScoreAxis::Role::streamed || s.axes[a].*stride != 0 ||
                       taken.batch[a] != 0;
    if (moves) count *= static_cast<double>(s.axes[a].size);
  }
  return count * width(operand);
}

Estimate work(const Attend& s) {
  Estimate result;
  // Scores that masks hide are counted too: what is hidden is known only at run time.
  double scores = 1;
  for (const ScoreAxis& axis : s.axes) scores *= static_cast<double>(axis.size);
  result.flops = 2 * scores * (extent(s.inner) + extent(s.columns));
  for (const Operand& operand : reads_of(Step(s))) result.bytes_read += bytes(operand);
  const auto replace = [&](const std::optional<TakenRows>& taken, const Operand& operand,
                           std::int64_t ScoreAxis::*stride, const Loops& inner) {
    if (taken) {
      result.bytes_read += taken_bytes(*taken, operand, s, stride, inner) - bytes(operand);
    }
  };
  replace(s.k_taken, s.k, &ScoreAxis::k, s.inner);
  replace(s.v_taken, s.v, &ScoreAxis::v, s.columns);
  for (const Operand& operand : writes_of(Step(s))) result.bytes_written += bytes(operand);
  return result;
}

}  // namespace

Estimate estimate(const Step& step, const Target& target) {
  Estimate result = std::visit([](const auto& s) { return work(s); }, step);
  const DType dtype = written_by(step).dtype;
  // Integers are checked for overflow, product by product: about an eighth of the doubles' rate.
  const double peak = dtype == DType::f32   ? target.peak_f32
                      : dtype == DType::f64 ? target.peak_f64
                                            : target.peak_f64 / 8;
  result.seconds =
      std::max(result.flops / peak, result.bytes_read / target.read_bandwidth +
                                        result.bytes_written / target.write_bandwidth) +
      target.call_overhead;
  return result;
}

}  // namespace einkern::plan
