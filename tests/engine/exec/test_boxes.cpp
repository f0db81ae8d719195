// SPDX-License-Identifier: Apache-2.0
// Boxes of label space: every position once, unit strides where they are said to lie.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "../../../engine/exec/boxes.h"

using namespace einkern;
using exec::Boxes;
using exec::BoxRules;
using plan::Loop;
using plan::Loops;

namespace {

std::vector<std::int64_t> all_offsets(const Loops& loops, exec::StrideOf stride) {
  std::vector<std::int64_t> offsets(static_cast<std::size_t>(exec::extent(loops)));
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    offsets[i] = exec::offset_at(loops, static_cast<std::int64_t>(i), stride);
  }
  return offsets;
}

void check_boxes(const Loops& loops, std::int64_t target, std::int64_t multiple) {
  const Boxes boxes(loops, {&Loop::c, &Loop::b},
                    {.line = 16, .target = target, .multiple = multiple, .panel = multiple});
  std::vector<std::int64_t> covered;
  std::int64_t largest = 0;
  for (std::int64_t box = 0; box < boxes.count(); ++box) {
    std::vector<std::int64_t> b(static_cast<std::size_t>(boxes.largest())), c(b);
    const std::int64_t size = boxes.offsets(box, &Loop::b, b.data());
    REQUIRE(size == boxes.offsets(box, &Loop::c, c.data()));
    REQUIRE(size == boxes.size(box));
    REQUIRE(size <= boxes.largest());
    largest = std::max(largest, size);
    covered.insert(covered.end(), c.begin(), c.begin() + size);
    const kernel::UnitRun unit = boxes.unit(box, &Loop::b);
    for (std::int64_t i = 0; i < size; ++i) {
      if (i / unit.inner % unit.size + 1 == unit.size) continue;
      REQUIRE(b[static_cast<std::size_t>(i + unit.inner)] == b[static_cast<std::size_t>(i)] + 1);
    }
  }
  CHECK(largest == boxes.largest());
  std::vector<std::int64_t> want = all_offsets(loops, &Loop::c);
  std::sort(want.begin(), want.end());
  std::sort(covered.begin(), covered.end());
  CHECK(covered == want);
}

}  // namespace

TEST_SUITE("exec") {
  TEST_CASE("boxes cover every position once") {
    for (const std::int64_t target : {1, 7, 32, 100, 500, 5000}) {
      for (const std::int64_t multiple : {1, 14, 32}) {
        check_boxes({}, target, multiple);
        check_boxes({{.size = 100, .b = 1, .c = 1}}, target, multiple);
        check_boxes({{.size = 33, .b = 1, .c = 48}, {.size = 48, .b = 33, .c = 1}}, target,
                    multiple);
        check_boxes({{.size = 5, .b = -3, .c = 1800},
                     {.size = 36, .b = 1, .c = 50},
                     {.size = 3, .b = 900, .c = 16},
                     {.size = 16, .b = 36, .c = 1}},
                    target, multiple);
      }
    }
  }

  TEST_CASE("a box holds a run of both unit strides, however far apart their labels are") {
    // An interval of 1024 positions would lie within one row of the inner label.
    const Loops loops = {{.size = 2048, .b = 1, .c = 2048}, {.size = 2048, .b = 2048, .c = 1}};
    const Boxes boxes(loops, {&Loop::c, &Loop::b},
                      {.line = 16, .target = 1024, .multiple = 32, .panel = 32});
    CHECK(boxes.unit(0, &Loop::c).size >= 16);
    CHECK(boxes.unit(0, &Loop::b).size >= 16);
    CHECK(boxes.largest() <= 1024 + 1024 / 4);
  }

  TEST_CASE("a box takes as many of an outer loop as fill its panels") {
    // 72 positions leave a panel of 32 half empty, four times 72 leave none.
    const Loops loops = {{.size = 60, .b = 5000, .c = 72}, {.size = 72, .b = 1, .c = 1}};
    const BoxRules rules{.line = 16, .target = 128, .multiple = 32, .panel = 32};
    CHECK(Boxes(loops, {&Loop::c, &Loop::b}, rules).largest() == 288);
    // Where nothing is padded, the target counts: seven times 72, and not 16 times.
    const BoxRules unpadded{.line = 16, .target = 512, .multiple = 16};
    CHECK(Boxes(loops, {&Loop::b}, unpadded).largest() == 504);
  }

  TEST_CASE("offsets of a position and of all positions agree") {
    const Loops loops = {{.size = 3, .a = 100}, {.size = 4, .a = -7}, {.size = 5, .a = 1}};
    std::vector<std::int64_t> listed(60);
    exec::list_offsets(loops, &Loop::a, listed.data());
    CHECK(listed == all_offsets(loops, &Loop::a));
    CHECK(listed[0] == 0);
    CHECK(listed[59] == 200 - 21 + 4);
    CHECK(exec::extent({}) == 1);
  }
}
