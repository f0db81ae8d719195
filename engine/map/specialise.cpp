// SPDX-License-Identifier: Apache-2.0
// Turns a program into a shorter one that is the same on a box where some conditions are decided.
#include <cstddef>

#include "../base/error.h"
#include "interval.h"

namespace einkern::map {
namespace {

/// The operand whose value the instruction has on every element; -1 when there is none.
std::int32_t operand_taken(const Instruction& code, const std::vector<Range>& ranges) {
  const auto is_true = [&](std::int32_t r) {
    return is_surely_true(ranges[static_cast<std::size_t>(r)]);
  };
  const auto is_false = [&](std::int32_t r) {
    return is_surely_false(ranges[static_cast<std::size_t>(r)]);
  };
  switch (code.op) {
    case Op::select:
      return is_true(code.a) ? code.b : is_false(code.a) ? code.c : -1;
    case Op::logical_and:
      if (is_true(code.a) || is_false(code.b)) return code.b;
      return is_true(code.b) || is_false(code.a) ? code.a : -1;
    case Op::logical_or:
      if (is_false(code.a) || is_true(code.b)) return code.b;
      return is_false(code.b) || is_true(code.a) ? code.a : -1;
    default:
      return -1;
  }
}

/// The instructions that `result` depends on, and itself as the last.
Program cut_to(const Program& program, std::int32_t result) {
  const auto last = static_cast<std::size_t>(result);
  std::vector<bool> live(last + 1);
  live[last] = true;
  for (std::size_t i = last + 1; i-- > 0;) {
    const Instruction& code = program.code[i];
    for (const std::int32_t r : {code.a, code.b, code.c}) {
      if (live[i] && r >= 0) live[static_cast<std::size_t>(r)] = true;
    }
  }
  Program kept;
  std::vector<std::int32_t> place(last + 1);
  for (std::size_t i = 0; i <= last; ++i) {
    if (!live[i]) continue;
    Instruction code = program.code[i];
    for (std::int32_t* r : {&code.a, &code.b, &code.c}) {
      if (*r >= 0) *r = place[static_cast<std::size_t>(*r)];
    }
    place[i] = static_cast<std::int32_t>(kept.code.size());
    kept.code.push_back(code);
  }
  return kept;
}

}  // namespace

Program specialise(const Program& program, const std::vector<Range>& ranges) {
  EINKERN_CHECK(!program.code.empty() && ranges.size() == program.code.size());
  Program decided;
  std::vector<std::int32_t> place;  // in `decided`, of each register
  for (Instruction code : program.code) {
    const std::int32_t taken = operand_taken(code, ranges);
    if (taken >= 0) {
      place.push_back(place[static_cast<std::size_t>(taken)]);
      continue;
    }
    for (std::int32_t* r : {&code.a, &code.b, &code.c}) {
      if (*r >= 0) *r = place[static_cast<std::size_t>(*r)];
    }
    const bool same_branches = code.op == Op::select && code.b == code.c;
    place.push_back(same_branches ? code.b : decided.emit(code));
  }
  return cut_to(decided, place.back());
}

}  // namespace einkern::map
