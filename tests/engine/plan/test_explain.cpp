// SPDX-License-Identifier: Apache-2.0
// The text and the JSON of plans.
#include <doctest/doctest.h>

#include "plans.h"

namespace einkern::test {

TEST_SUITE("plan") {
  TEST_CASE("explain of a chain") {
    const plan::Plan plan = plan_of("ab,bc,cd->ad", {{512, 64}, {64, 2048}, {2048, 16}});
    CHECK(explain(plan, kTarget) == R"(target test, path 1,2;0,1
step  kind    term       dtype  M x N x K x batch    flops    read  written     time
0     matmul  bc,cd->bd  f32    64 x 16 x 2048 x 1  4.19 M  655 kB   4.1 kB  65.8 us
1     matmul  ab,bd->ad  f32    512 x 16 x 64 x 1   1.05 M  135 kB  32.8 kB  15.3 us
all                                                 5.24 M  791 kB  36.9 kB  81.1 us
copies: none
workspace: 4.1 kB
)");
  }

  TEST_CASE("columns count code points") {
    const std::string text = explain(plan_of("é漢,漢b->éb", {{9, 9}, {9, 9}}), kTarget);
    CHECK(text.find("0     matmul  é漢,漢b->éb  f32    9 x 9 x 9 x 1") != std::string::npos);
  }

  TEST_CASE("explain of every kind of step") {
    plan::Builder builder(kTarget);
    const plan::Operand x = builder.add_input(i32, contiguous({4, 3}));
    const plan::Operand weights = builder.add_input(f32, contiguous({6, 4, 3}));
    const plan::Operand values = builder.add_input(f32, contiguous({6, 3, 5}));
    const plan::Operand mask = builder.add_input(boolean, contiguous({4, 3}));
    const plan::Operand converted = builder.add_temporary(f32, {4, 3});
    const plan::Operand highest = builder.add_temporary(f32, {4});
    const plan::Operand out = builder.add_output(f32, contiguous({6, 4, 5}));
    const plan::Operand lse = builder.add_output(f32, contiguous({6, 4}));
    builder.add(plan::Copy{x, converted}, "qk->qk");
    builder.add(
        plan::Reduce{plan::ReduceOp::max, converted, highest, {{4, 3, 0, 1}}, {{3, 1, 0, 0}}},
        "qk->q");
    builder.add(plan::Softmax{plan::SoftmaxKind::logsumexp, 1, weights, lse, {}}, "bqk->bq");
    builder.add(plan::make_select_contract(weights, {0, 1, 2}, values, {0, 2, 3}, out, {0, 1, 3},
                                           mask, {1, 2}, kTarget),
                "p,v->o");
    builder.add(plan::Fill{out, 1});
    const plan::Plan plan = builder.finish();
    CHECK(explain(plan, kTarget) == R"(target test
step  kind           term     dtype  M x N x K x batch   flops     read  written    time
0     copy           qk->qk   f32    (4, 3)                  0     48 B     48 B  107 ns
1     reduce_max     qk->q    f32    4 x 3                  12     48 B     16 B  106 ns
2     logsumexp      bqk->bq  f32    (6, 4)             1.73 k    288 B     96 B  134 ns
3     select_matmul  p,v->o   f32    4 x 5 x 3 x 6         720    660 B    480 B  190 ns
4     fill                    f32    (6, 4, 5)               0      0 B    480 B  124 ns
all                                                     2.46 k  1.04 kB  1.12 kB  660 ns
copies: 1, 48 B
workspace: 64 B
)");
    CHECK(explain_json(plan, kTarget) == R"({
  "target": "test",
  "path": "",
  "steps": [
    {"kind": "copy", "term": "qk->qk", "dtype": "f32", "shape": [4, 3],
     "flops": 0, "bytes_read": 48, "bytes_written": 48, "seconds": 1.072e-07},
    {"kind": "reduce_max", "term": "qk->q", "dtype": "f32", "kept": 4, "reduced": 3,
     "flops": 12, "bytes_read": 48, "bytes_written": 16, "seconds": 1.056e-07},
    {"kind": "logsumexp", "term": "bqk->bq", "dtype": "f32", "shape": [6, 4],
     "flops": 1728, "bytes_read": 288, "bytes_written": 96, "seconds": 1.336e-07},
    {"kind": "select_matmul", "term": "p,v->o", "dtype": "f32", "m": 4, "n": 5, "k": 3, "batch": 6,
     "flops": 720, "bytes_read": 660, "bytes_written": 480, "seconds": 1.9e-07},
    {"kind": "fill", "term": "", "dtype": "f32", "shape": [6, 4, 5],
     "flops": 0, "bytes_read": 0, "bytes_written": 480, "seconds": 1.24e-07}
  ],
  "copies": 1,
  "workspace_bytes": 64,
  "not_fused": []
}
)");
  }

  TEST_CASE("explain of nothing") {
    CHECK(explain(plan::Plan{}, kTarget) ==
          "target test\nnothing to do\ncopies: none\nworkspace: 0 B\n");
    CHECK(explain_json(plan::Plan{}, kTarget) ==
          "{\n  \"target\": \"test\",\n  \"path\": \"\",\n  \"steps\": [],\n  \"copies\": 0,\n"
          "  \"workspace_bytes\": 0,\n  \"not_fused\": []\n}\n");
  }

  TEST_CASE("JSON strings are escaped") {
    plan::Builder builder(kTarget);
    builder.add(plan::Fill{builder.add_output(f32, contiguous({2})), 0}, "say \"\\\n\x01 é");
    CHECK(explain_json(builder.finish(), kTarget).find(R"("say \"\\\u000a\u0001 é")") !=
          std::string::npos);
  }
}

}  // namespace einkern::test
