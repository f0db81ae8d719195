// SPDX-License-Identifier: Apache-2.0
// Masks of attention as programs: the verdict on every box of a grid against its elements.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "../../../engine/map/interval.h"
#include "../../support/extremes.h"

using namespace einkern;
using namespace einkern::test;
using namespace einkern::map;

namespace {

/// Builds `where(condition, load 0, -inf)` over rows q (axis 0) and keys k (axis 1). Input 0 is the
/// score, anything; further inputs are i64 of one value per row or per key.
class Mask {
 public:
  Mask() : score_(program_.emit({Op::load, f32})) {}

  std::int32_t q() { return program_.emit({Op::index, i64}); }
  std::int32_t k() { return program_.emit({.op = Op::index, .dtype = i64, .arg = 1}); }
  std::int32_t number(std::int64_t value) { return scalar(i64, Scalar::of(value)); }
  std::int32_t input(std::int32_t arg) {
    return program_.emit({.op = Op::load, .dtype = i64, .arg = arg});
  }
  std::int32_t apply(Op op, std::int32_t a, std::int32_t b) {
    return program_.emit({op, op < Op::less ? i64 : boolean, a, b});
  }
  std::int32_t negate(std::int32_t a) { return program_.emit({Op::logical_not, boolean, a}); }
  void hide_unless(std::int32_t condition) {
    program_.emit({Op::select, f32, condition, score_, scalar(f32, Scalar::of(-kInfinity))});
  }

  const Program& program() const { return program_; }
  const std::vector<Scalar>& scalars() const { return scalars_; }

 private:
  std::int32_t scalar(DType dtype, Scalar value) {
    scalars_.push_back(value);
    const auto arg = static_cast<std::int32_t>(scalars_.size()) - 1;
    return program_.emit({.op = Op::scalar, .dtype = dtype, .arg = arg});
  }
  Program program_;
  std::vector<Scalar> scalars_;
  std::int32_t score_;
};

enum class Verdict { skip, full, mixed };

/// i64 numbers, one per row or one per key.
struct Numbers {
  std::vector<std::int64_t> values;
  int axis = 0;
};

Verdict verdict_of(const Mask& mask, const IndexRange (&box)[2],
                   const std::vector<Numbers>& numbers) {
  std::vector<Range> inputs{kAnything};
  for (const Numbers& input : numbers) {
    const IndexRange& range = box[input.axis];
    const auto [least, most] = std::minmax_element(input.values.begin() + range.first,
                                                   input.values.begin() + range.last + 1);
    inputs.push_back({static_cast<double>(*least), static_cast<double>(*most), false});
  }
  const auto ranges = evaluate_ranges(mask.program(), box, inputs, mask.scalars());
  const Program cut = specialise(mask.program(), ranges);
  if (is_minus_infinity(ranges.back())) {
    CHECK(cut.code.size() == 1);  // the -inf alone
    return Verdict::skip;
  }
  const bool full = cut.code.size() == 1 && cut.code.back().op == Op::load;
  return full ? Verdict::full : Verdict::mixed;
}

struct Counts {
  int skip = 0, full = 0, mixed = 0;
  int missed_skip = 0, missed_full = 0;  // boxes whose elements agree, but that came out mixed
};

using Visible = std::function<bool(std::int64_t q, std::int64_t k)>;

/// Verdicts on boxes of many sizes over an Nq x Nk grid. None may be wrong.
Counts count(const Mask& mask, const Visible& visible, std::int64_t rows, std::int64_t keys,
             const std::vector<Numbers>& numbers = {}) {
  Counts counts;
  for (const std::int64_t height : {1, 3, 8, 16}) {
    for (const std::int64_t width : {1, 5, 8, 16}) {
      for (std::int64_t q = 0; q < rows; q += height) {
        for (std::int64_t k = 0; k < keys; k += width) {
          const IndexRange box[2] = {{q, std::min(q + height, rows) - 1},
                                     {k, std::min(k + width, keys) - 1}};
          bool any = false, all = true;
          for (std::int64_t i = box[0].first; i <= box[0].last; ++i) {
            for (std::int64_t j = box[1].first; j <= box[1].last; ++j) {
              const bool seen = visible(i, j);
              any |= seen;
              all &= seen;
            }
          }
          const Verdict verdict = verdict_of(mask, box, numbers);
          if (verdict == Verdict::skip) CHECK_FALSE(any);
          if (verdict == Verdict::full) CHECK(all);
          counts.skip += verdict == Verdict::skip;
          counts.full += verdict == Verdict::full;
          counts.mixed += verdict == Verdict::mixed;
          counts.missed_skip += verdict == Verdict::mixed && !any;
          counts.missed_full += verdict == Verdict::mixed && all;
        }
      }
    }
  }
  return counts;
}

void check_exact(const Counts& counts) {
  INFO("skip ", counts.skip, " full ", counts.full, " mixed ", counts.mixed);
  CHECK(counts.missed_skip == 0);
  CHECK(counts.missed_full == 0);
  CHECK(counts.skip > 0);
  CHECK(counts.full > 0);
  CHECK(counts.mixed > 0);
}

std::int32_t is_causal(Mask& mask, std::int64_t offset) {
  return mask.apply(Op::less_equal, mask.k(), mask.apply(Op::add, mask.q(), mask.number(offset)));
}

/// -left <= k - q <= right.
std::int32_t is_near(Mask& mask, std::int64_t left, std::int64_t right) {
  const auto distance = mask.apply(Op::sub, mask.k(), mask.q());
  return mask.apply(Op::logical_and, mask.apply(Op::less_equal, mask.number(-left), distance),
                    mask.apply(Op::less_equal, distance, mask.number(right)));
}

constexpr std::int64_t kRows = 53, kKeys = 71;

}  // namespace

TEST_SUITE("map") {
  TEST_CASE("causal masks are decided exactly, at any offset") {
    for (const std::int64_t offset : {0, 18, -7, 40, -40}) {
      Mask mask;
      mask.hide_unless(is_causal(mask, offset));
      check_exact(count(
          mask, [=](auto q, auto k) { return k <= q + offset; }, kRows, kKeys));
    }
  }

  TEST_CASE("causal by the difference of the indices, and by their order reversed") {
    Mask by_difference;
    by_difference.hide_unless(
        by_difference.apply(Op::less_equal, by_difference.number(0),
                            by_difference.apply(Op::sub, by_difference.q(), by_difference.k())));
    Mask reversed;  // !(q < k)
    const auto later = reversed.apply(Op::less, reversed.q(), reversed.k());
    reversed.hide_unless(reversed.negate(later));
    for (const Mask* mask : {&by_difference, &reversed}) {
      const Counts counts = count(
          *mask, [](auto q, auto k) { return k <= q; }, kRows, kKeys);
      CHECK(counts.missed_skip == 0);
      CHECK(counts.skip > 0);
    }
  }

  TEST_CASE("windows of two sides are decided exactly, with and without causal") {
    for (const auto& sides : {std::pair<int, int>{5, 3}, {0, 0}, {20, 0}, {9, 30}}) {
      const int left = sides.first, right = sides.second;
      Mask mask;
      mask.hide_unless(is_near(mask, left, right));
      const Counts counts = count(
          mask, [&](auto q, auto k) { return q - left <= k && k <= q + right; }, kRows, kKeys);
      check_exact(counts);
      Mask both;
      both.hide_unless(both.apply(Op::logical_and, is_near(both, left, right), is_causal(both, 0)));
      check_exact(count(
          both, [&](auto q, auto k) { return q - left <= k && k <= q; }, kRows, kKeys));
    }
  }

  TEST_CASE("a prefix seen by all, then causal, is decided exactly") {
    Mask mask;
    mask.hide_unless(mask.apply(Op::logical_or, is_causal(mask, 0),
                                mask.apply(Op::less, mask.k(), mask.number(13))));
    check_exact(count(
        mask, [](auto q, auto k) { return k <= q || k < 13; }, kRows, kKeys));
  }

  TEST_CASE("lengths are decided exactly when a box has one length, soundly otherwise") {
    std::mt19937 random(4);
    Numbers same{std::vector<std::int64_t>(kRows, 37), 0}, own{{}, 0};
    for (std::int64_t q = 0; q < kRows; ++q) own.values.push_back(random() % kKeys);
    Mask mask;
    mask.hide_unless(mask.apply(Op::less, mask.k(), mask.input(1)));
    for (const Numbers& lengths : {same, own}) {
      check_exact(count(
          mask, [&](auto q, auto k) { return k < lengths.values[static_cast<std::size_t>(q)]; },
          kRows, kKeys, {lengths}));
    }
  }

  TEST_CASE("documents: consecutive ones are decided exactly, shuffled ones soundly") {
    std::mt19937 random(9);
    Numbers rows{{}, 0}, keys{{}, 1};
    for (std::int64_t i = 0; i < kRows; ++i) rows.values.push_back(i / 12);
    for (std::int64_t i = 0; i < kKeys; ++i) keys.values.push_back(i / 17);
    Mask mask;
    mask.hide_unless(mask.apply(Op::equal, mask.input(1), mask.input(2)));
    const Visible same = [&](auto q, auto k) {
      return rows.values[static_cast<std::size_t>(q)] == keys.values[static_cast<std::size_t>(k)];
    };
    check_exact(count(mask, same, kRows, kKeys, {rows, keys}));
    std::shuffle(rows.values.begin(), rows.values.end(), random);
    const Counts shuffled = count(mask, same, kRows, kKeys, {rows, keys});
    CHECK(shuffled.skip > 0);
    CHECK(shuffled.full > 0);
    CHECK(shuffled.missed_skip > 0);  // least and most do not tell it
  }

  TEST_CASE("causal within documents is decided exactly") {
    Numbers rows{{}, 0}, keys{{}, 1};
    for (std::int64_t i = 0; i < kRows; ++i) rows.values.push_back(i / 12);
    for (std::int64_t i = 0; i < kKeys; ++i) keys.values.push_back(i / 12);
    Mask mask;
    mask.hide_unless(mask.apply(Op::logical_and, is_causal(mask, 0),
                                mask.apply(Op::equal, mask.input(1), mask.input(2))));
    const Counts counts = count(mask, [](auto q, auto k) { return k <= q && k / 12 == q / 12; },
                                kRows, kKeys, {rows, keys});
    CHECK(counts.missed_full == 0);
    CHECK(counts.skip > 0);
    CHECK(counts.full > 0);
  }

  TEST_CASE("local and global: hidden boxes exactly, no box wrongly") {
    Mask mask;
    const auto global = mask.apply(Op::logical_or, mask.apply(Op::less, mask.k(), mask.number(4)),
                                   mask.apply(Op::less, mask.q(), mask.number(4)));
    mask.hide_unless(mask.apply(Op::logical_or, is_near(mask, 6, 6), global));
    const Counts counts = count(
        mask, [](auto q, auto k) { return std::abs(q - k) <= 6 || k < 4 || q < 4; }, kRows, kKeys);
    CHECK(counts.missed_skip == 0);
    CHECK(counts.skip > 0);
    CHECK(counts.full > 0);
    CHECK(counts.mixed > 0);
  }

  TEST_CASE("blocks by floordiv are decided exactly, dilation by mod soundly") {
    Mask blocks;
    const auto block = [&](std::int32_t index) {
      return blocks.apply(Op::floordiv, index, blocks.number(16));
    };
    blocks.hide_unless(blocks.apply(Op::equal, block(blocks.q()), block(blocks.k())));
    check_exact(count(
        blocks, [](auto q, auto k) { return q / 16 == k / 16; }, kRows, kKeys));
    Mask dilated;
    const auto rest =
        dilated.apply(Op::mod, dilated.apply(Op::sub, dilated.q(), dilated.k()), dilated.number(4));
    dilated.hide_unless(dilated.apply(Op::equal, rest, dilated.number(0)));
    const Counts counts = count(
        dilated, [](auto q, auto k) { return (q - k) % 4 == 0; }, kRows, kKeys);
    CHECK(counts.skip > 0);
    CHECK(counts.full > 0);
    CHECK(counts.mixed > 0);
  }

  TEST_CASE("a mask made of 0 and -inf that is added hides what it can") {
    Program program;  // score + bias
    program.emit({Op::load, f32});
    program.emit({.op = Op::load, .dtype = f32, .arg = 1});
    program.emit({Op::add, f32, 0, 1});
    const auto with = [&](const Range& score, const Range& bias) {
      const Range inputs[] = {score, bias};
      return evaluate_ranges(program, {}, inputs, {}).back();
    };
    const Range hidden{-kInfinity, -kInfinity, false};
    CHECK(is_minus_infinity(with({-9, 9, false}, hidden)));
    CHECK_FALSE(is_minus_infinity(with(kAnything, hidden)));  // inf - inf and NaN show
    CHECK_FALSE(is_minus_infinity(with({-9, 9, false}, {-kInfinity, 0, false})));
  }

  TEST_CASE("finite mask values never hide") {
    Mask mask;
    mask.hide_unless(is_causal(mask, 0));
    Program finite = mask.program();
    std::vector<Scalar> scalars = mask.scalars();
    scalars.back() = Scalar::of(static_cast<double>(std::numeric_limits<float>::lowest()));
    const IndexRange box[] = {{0, 7}, {16, 31}};
    const Range inputs[] = {kAnything};
    const Range range = evaluate_ranges(finite, box, inputs, scalars).back();
    CHECK(range.low == range.high);
    CHECK_FALSE(is_minus_infinity(range));
  }
}
