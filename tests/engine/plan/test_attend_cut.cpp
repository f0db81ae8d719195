// SPDX-License-Identifier: Apache-2.0
// How streamed steps are cut, what masks leave of them, and how explain says it.
#include <doctest/doctest.h>

#include <limits>
#include <utility>
#include <vector>

#include "../../../engine/plan/attend_cut.h"
#include "../../../engine/plan/attend_visible.h"
#include "../../../engine/plan/builder.h"
#include "plans.h"

namespace einkern::test {
namespace {

using Role = plan::ScoreAxis::Role;

/// Contiguous q[b, r, 64], k[b, n, 64], v[b, n, 32]; axes 0, 1, 2 are b, r, n.
plan::Attend attend_step(plan::Builder& builder, std::int64_t b, std::int64_t r, std::int64_t n,
                         DType keys = f32) {
  plan::Attend step;
  step.q = builder.add_input(f32, contiguous({b, r, 64}));
  step.k = builder.add_input(keys, contiguous({b, n, 64}));
  step.v = builder.add_input(keys, contiguous({b, n, 32}));
  step.out = builder.add_output(f32, contiguous({b, r, 32}));
  step.axes = {{Role::batch, b, r * 64, n * 64, n * 32, r * 32},
               {Role::row, r, 64, 0, 0, 32},
               {Role::streamed, n, 0, 64, 32, 0}};
  step.inner = {{64, 1, 1, 0}};
  step.columns = {{32, 0, 1, 1}};
  step.scores.emit({.op = map::Op::load, .dtype = f32});
  return step;
}

/// Keys after the row are hidden.
void make_causal(plan::Attend& step) {
  const auto index = [&](std::int32_t axis) {
    return step.scores.emit({.op = map::Op::index, .dtype = i64, .arg = axis});
  };
  const std::int32_t row = index(1), key = index(2);
  const std::int32_t seen =
      step.scores.emit({.op = map::Op::less_equal, .dtype = boolean, .a = key, .b = row});
  const std::int32_t hidden = step.scores.emit({.op = map::Op::scalar, .dtype = f32, .arg = 0});
  step.scores.emit({.op = map::Op::select, .dtype = f32, .a = seen, .b = 0, .c = hidden});
}

plan::AttendCut cut_of(std::int64_t b, std::int64_t r, std::int64_t n, DType keys = f32) {
  plan::Builder builder(kTarget);
  return plan::cut_attend(attend_step(builder, b, r, n, keys), kTarget);
}

}  // namespace

TEST_SUITE("plan") {
  TEST_CASE("attend cut: few rows share out pieces of keys") {
    const plan::AttendCut cut = cut_of(2, 4, 4096);
    CHECK(cut.few_rows);
    CHECK(cut.tiles == 1);
    CHECK(cut.pieces == 4);
    CHECK(cut.piece_keys == 1024);
    CHECK(cut.side_by_side(2));
    CHECK(cut.tasks() == 8);
    CHECK(cut.score_bytes == 2 * 4 * 4096 * 4);
    CHECK(cut_of(64, 4, 4096).tasks() == 64);  // enough without pieces
    CHECK_FALSE(cut_of(2, 9, 4096).few_rows);
  }
  TEST_CASE("attend cut: rows that fill tiles do not change how keys are cut") {
    for (const std::int64_t rows : {8, 100, 1000, 5000}) {
      const plan::AttendCut cut = cut_of(1, rows, 10000);
      CHECK(cut.tile_rows == 8);
      CHECK(cut.tiles == (rows + 7) / 8);
      CHECK(cut.pieces == 3);
      // Few rows take blocks of 64 keys.
      CHECK(cut.piece_keys == (cut.few_rows ? 3392 : 3456));
      CHECK(cut.tasks() == (cut.tiles < 32 ? 3 * cut.tiles : cut.tiles));
    }
  }
  TEST_CASE("attend cut: a target's vectors make its tiles") {
    Target target = kTarget;
    target.vector_bytes = 64;
    target.attend_vectors = 4;
    plan::Builder builder(target);
    CHECK(plan::cut_attend(attend_step(builder, 1, 100, 100), target).tile_rows == 64);
    target.vector_bytes = 4;
    target.attend_vectors = 2;
    CHECK(plan::cut_attend(attend_step(builder, 1, 100, 100), target).tile_rows == 2);
  }
  TEST_CASE("attend cut: copies") {
    CHECK(cut_of(2, 4, 4096, bf16).copied_bytes == 0);
    const plan::AttendCut widened = cut_of(100, 9, 4096, bf16);
    CHECK(widened.copies_keys);
    CHECK(widened.copies_values);
    CHECK(widened.round == (32 << 20) / (4096 * 96 * 4));  // of 100
    CHECK(widened.copied_bytes == 21.0 * 4096 * 96 * 4);
    CHECK(widened.extra_bytes > widened.copied_bytes);
    plan::Builder builder(kTarget);
    plan::Attend step = attend_step(builder, 1, 300, 100);
    CHECK_FALSE(plan::cut_attend(step, kTarget).copies_keys);
    step.axes[2].k = 128;  // apart, and rows that pay for a copy
    CHECK(plan::cut_attend(step, kTarget).copies_keys);
    CHECK_FALSE(plan::cut_attend(step, kTarget).copies_values);
    step.axes[1].size = 200;
    CHECK_FALSE(plan::cut_attend(step, kTarget).copies_keys);
  }
  TEST_CASE("attend cut: rows behind a table are copied only where many tiles wait for one set") {
    for (const auto& [keys, heads] : {std::pair{f32, 8}, {bf16, 8}, {f32, 4}, {f32, 9}}) {
      for (const std::int64_t size : {1, 2, 16, 128, 255, 256, 512, 1024}) {
        for (const std::int64_t rows : {1, 8, 9, 256, 5000}) {
          CAPTURE(size);
          CAPTURE(rows);
          plan::Builder builder(kTarget);
          const std::int64_t blocks = 1024 / size + 1;
          plan::Attend step = attend_step(builder, 2, rows, blocks * size, keys);
          const plan::Operand table = builder.add_input(i32, contiguous({2, blocks}));
          // Rows of pages of one token lie apart, at 2 KiB (keys) and 1 KiB with eight heads.
          for (const auto& [taken, width] : {std::pair{&step.k_taken, 64}, {&step.v_taken, 32}}) {
            *taken = plan::TakenRows{table, heads * size * width, {blocks, 0, 0}, {}};
            (*taken)->parts = {{2, blocks, 0, 1}, {2, size, width, 0}};
          }
          for (plan::ScoreAxis& axis : step.axes) {
            if (axis.role != Role::row) axis.k = axis.v = 0;
          }
          const plan::AttendCut cut = plan::cut_attend(step, kTarget);
          const bool widened = keys == bf16 && rows > 8;
          const bool meet = heads == 8 && size == 1 && rows >= 256;
          CHECK(cut.copies_keys == (widened || meet));
          CHECK(cut.copies_values == (widened || meet));
          CHECK((cut.copied_bytes > 0) == (widened || meet));
          CHECK(cut.why_copied == (widened ? "of another type"
                                   : meet  ? "whose rows meet in the cache"
                                           : ""));
          // A state, and two lists of offsets for each entry of the batch.
          if (!widened && !meet) CHECK(cut.extra_bytes < 2.0 * 2 * blocks * size * 8 + (64 << 10));
        }
      }
    }
  }
  TEST_CASE("attend cut: nothing to do") {
    CHECK(cut_of(0, 4, 100).tasks() == 0);
    CHECK(cut_of(3, 0, 100).tasks() == 0);
    CHECK(cut_of(3, 4, 0).tasks() == 3);
  }

  TEST_CASE("what a mask leaves") {
    const std::vector<map::Scalar> scalars = {
        map::Scalar::of(-std::numeric_limits<double>::infinity())};
    plan::Builder builder(kTarget);
    plan::Attend step = attend_step(builder, 2, 128, 128);
    CHECK_FALSE(plan::has_mask(step));
    CHECK(plan::visible_share(step, scalars).scores == doctest::Approx(1));
    make_causal(step);
    CHECK(plan::has_mask(step));
    // 64 boxes of two by two: the diagonal and what is below it.
    CHECK(plan::visible_share(step, scalars).scores == doctest::Approx(32 * 65 / 4096.0));
    CHECK(plan::visible_share(step, scalars).keys == doctest::Approx(1));
    step.axes[1].size = 32;
    CHECK(plan::visible_share(step, scalars).keys == doctest::Approx(0.25));
    step.axes[2].size = 0;
    CHECK(plan::visible_share(step, scalars).keys == 1);
  }

  TEST_CASE("explain of streamed steps") {
    plan::Builder builder(kTarget);
    builder.set_scalars(1);
    plan::Attend step = attend_step(builder, 2, 100, 10000);
    make_causal(step);
    builder.add(step, "attention");
    const plan::Plan plan = builder.finish();
    const std::vector<map::Scalar> scalars = {
        map::Scalar::of(-std::numeric_limits<double>::infinity())};
    const std::string text = explain(plan, kTarget, scalars);
    CHECK(text == R"(target test
step  kind    term       dtype  M x N x K x batch        flops     read  written     time
0     attend  attention  f32    100 x 10000 x 64+32 x 2  384 M  7.73 MB  25.6 kB  3.84 ms
step 0: tiles of 8 rows by 192 keys, 3 pieces of 3456 keys, 78 tasks, about 262 kB extra
step 0: at most 2 % of scores visible, 5.99 M flops, and 2 % of keys
step 0: streamed: 8 MB of scores twice written and read take 2.4 ms more
copies: none
workspace: 0 B
)");
    CHECK(explain_json(plan, kTarget, scalars) == R"({
  "target": "test",
  "path": "",
  "steps": [
    {"kind": "attend", "term": "attention", "dtype": "f32", "shape": [2, 100, 32],
     "cut": {"form": "tiles", "tile_rows": 8, "key_block": 192, "tiles": 26, "pieces": 3, "piece_keys": 3456, "tasks": 78,
      "copies_keys": false, "copies_values": false, "extra_bytes": 261696, "visible_scores": 0.0156, "visible_keys": 0.0156,
      "score_bytes": 8000000, "score_seconds": 0.0024},
     "flops": 384000000, "bytes_read": 7731200, "bytes_written": 25600, "seconds": 0.00384}
  ],
  "copies": 0,
  "workspace_bytes": 0,
  "not_fused": []
}
)");
    // Without the scalars nothing is known of the mask.
    CHECK(explain(plan, kTarget).find("at most 100 % of scores") != std::string::npos);
  }
}

}  // namespace einkern::test
