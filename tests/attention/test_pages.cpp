// SPDX-License-Identifier: Apache-2.0
// Keys and values behind tables are read where they lie: the answer of gathered ones, without them.
#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <random>
#include <string>

#include "../../engine/base/error.h"
#include "../../engine/graph/compiled.h"
#include "../../ops/ops.h"
#include "variants.h"

using namespace einkern;
using namespace einkern::test;

namespace {

using I = std::int64_t;

constexpr const char* kBothTaken = "attend + take (k, v)";

struct PageSizes {
  I heads = 4, groups = 2, queries = 1, blocks = 5, size = 16, width = 10, values = 7;
  std::vector<I> lengths;
  I batch() const { return std::ssize(lengths); }
  I keys() const { return blocks * size; }
};

/// Pages in which the tokens of sequences lie in any order; the first two sequences share theirs.
struct PagedArrays {
  PageSizes n;
  Array q, keys, values, table;
  Array k, v;  // by token, as the table says; zeros behind lengths

  explicit PagedArrays(const PageSizes& sizes, I beyond = -7)
      : n(sizes),
        q(short_noise({n.batch(), n.heads, n.queries, n.width}, 1)),
        keys(short_noise({n.batch() * n.blocks, n.groups, n.size, n.width}, 2)),
        values(short_noise({n.batch() * n.blocks, n.groups, n.size, n.values}, 3)),
        table({n.batch(), n.blocks}, static_cast<double>(beyond)),
        k({n.batch(), n.groups, n.keys(), n.width}),
        v({n.batch(), n.groups, n.keys(), n.values}) {
    std::vector<I> order(static_cast<std::size_t>(n.batch() * n.blocks));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(4));
    for_each_index({n.batch(), n.blocks}, [&](const Sizes& i) {
      const I length = n.lengths[static_cast<std::size_t>(i[0])];
      if (i[1] * n.size >= length) return;
      const I owner = i[0] == 1 ? 0 : i[0];
      const I page = order[static_cast<std::size_t>(owner * n.blocks + i[1])];
      table.at(i) = static_cast<double>(page);
      for_each_index({n.groups, std::min(n.size, length - i[1] * n.size)}, [&](const Sizes& at) {
        const I token = i[1] * n.size + at[1];
        for (I d = 0; d < n.width; ++d)
          k.at({i[0], at[0], token, d}) = keys.at({page, at[0], at[1], d});
        for (I e = 0; e < n.values; ++e)
          v.at({i[0], at[0], token, e}) = values.at({page, at[0], at[1], e});
      });
    });
  }

  Tensor lengths() const { return from_values(std::span<const I>(n.lengths), {n.batch()}); }
  Pages pages(DType dtype, DType of_table = i32) const {
    return {to_tensor(keys, dtype), to_tensor(values, dtype), to_tensor(table, of_table),
            lengths()};
  }
  OracleResult oracle(DType stored, const AttentionOptions& options) const {
    OracleOptions want;
    want.lengths = Array({n.batch()});
    for (std::size_t b = 0; b < n.lengths.size(); ++b) {
      want.lengths->data[b] = static_cast<double>(n.lengths[b]);
    }
    want.bottom_right = options.causal.has_value();
    if (options.window) want.window = {options.window->left, options.window->right};
    const auto held = [&](const Array& x) { return to_array(to_tensor(x, stored)); };
    return attention_oracle(q, held(k), held(v), want);
  }
};

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.astype(f64).to_vector<double>() == b.astype(f64).to_vector<double>();
}

/// As one pass through the table: right, and to the bit what keys and values in order give. Nothing
/// is copied but `copied`, as the plan puts it.
void check_pages(const PagedArrays& x, DType dtype, DType stored, const AttentionOptions& options,
                 const std::string& copied = "") {
  CAPTURE(x.n.size);
  CAPTURE(x.n.queries);
  CAPTURE(name_of(dtype));
  CAPTURE(name_of(stored));
  const Tensor q = to_tensor(x.q, dtype);
  const Expr output = paged_attention(q, x.pages(stored), options).output;
  const std::string plan = explain({output});
  CHECK_MESSAGE(plan.find(kBothTaken) != std::string::npos, plan);
  CHECK_MESSAGE(plan.find("  take  ") == std::string::npos, plan);
  if (!copied.empty()) {
    CHECK_MESSAGE(plan.find(copied) != std::string::npos, plan);
  } else if (dtype == stored || (dtype == f32 && x.n.queries * x.n.heads <= 2 * x.n.groups)) {
    // Many rows take 16-bit keys widened, in pages or not.
    CHECK_MESSAGE(plan.find("copies of ") == std::string::npos, plan);
  }
  const Tensor got = eval(output);
  const double bound = dtype == f32 ? 4e-6 : 1e-13;
  CHECK(worst_error(got, x.oracle(stored, options).output) <= bound);
  CHECK(worst_error(eval(output, {.fuse = false}), to_array(got)) <= bound);
  AttentionOptions with = options;
  with.lengths = x.lengths();
  const Tensor gathered =
      dot_product_attention(q, to_tensor(x.k, stored), to_tensor(x.v, stored), with).output;
  CHECK(same_bits(got, gathered));
}

/// (b, blocks size, ...) by hand: pages of x (pages, size, ...) in the order of a table.
Expr by_table(const Expr& x, const Expr& table) { return merge(take(x, table, 0), {1, 2}); }

}  // namespace

TEST_SUITE("attention") {
  TEST_CASE("pages: sizes of pages, numbers of queries, lengths") {
    for (const I size : {1, 3, 16, 64}) {
      for (const I queries : {1, 3, 70}) {
        const I blocks = size == 1 ? 83 : size == 3 ? 31 : 5, all = blocks * size;
        const PagedArrays x({.queries = queries,
                             .blocks = blocks,
                             .size = size,
                             .lengths = {all, all / 2 + 1, 0, 1, 37}});
        check_pages(x, f32, f32, {});
        check_pages(x, f32, f32, {.causal = bottom_right});
        check_pages(x, f64, f64, {.window = Window{9, 0}, .causal = bottom_right});
      }
    }
  }

  TEST_CASE("pages of every size, one or more to a sequence") {
    for (const I size : {1, 2, 8, 15, 16, 17, 127, 128, 255, 256, 257, 512, 1024}) {
      for (const I blocks : {1, 2, 3}) {
        const I all = blocks * size;
        if (all == 1) continue;  // one key is no stream
        for (const I queries : {1, 6}) {
          const PagedArrays x({.queries = queries,
                               .blocks = blocks,
                               .size = size,
                               .lengths = {all, (all + 1) / 2, 0, all}});
          check_pages(x, f32, f32, {});
          check_pages(x, f64, f64, {.causal = bottom_right});
          if (queries == 1) check_pages(x, f32, bf16, {});
        }
      }
    }
  }

  TEST_CASE("many queries read pages of every size where they lie") {
    for (const I size : {1, 2, 16, 255, 256, 300}) {
      const I blocks = (299 + size) / size, all = blocks * size;
      const PagedArrays x({.queries = 256, .blocks = blocks, .size = size, .lengths = {all, 257}});
      check_pages(x, f32, f32, {.causal = bottom_right});
      check_pages(x, f64, f64, {});
    }
  }

  TEST_CASE("pages of one token whose rows meet in the cache are copied, for many queries alone") {
    const auto pages = [](I queries, I size, I groups) {
      return PagedArrays({.heads = groups,
                          .groups = groups,
                          .queries = queries,
                          .blocks = 40 / size,
                          .size = size,
                          .width = 16,
                          .values = 16,
                          .lengths = {40, 29}});
    };
    const char* const copied = "copies of keys and values whose rows meet in the cache, ";
    check_pages(pages(1040, 1, 8), f32, f32, {.causal = bottom_right}, copied);
    check_pages(pages(1040, 1, 8), f64, f64, {}, copied);
    check_pages(pages(1040, 1, 4), f32, f32, {});
    check_pages(pages(1040, 2, 8), f32, f32, {});
    check_pages(pages(255, 1, 8), f32, f32, {});
    check_pages(pages(1, 1, 8), f64, f64, {});
  }

  TEST_CASE("one key in all is taken, and the plan says why") {
    const PagedArrays x({.queries = 3, .blocks = 1, .size = 1, .lengths = {1, 1, 0}});
    const Expr output = paged_attention(to_tensor(x.q, f64), x.pages(f64)).output;
    const std::string plan = explain({output});
    CHECK_MESSAGE(plan.find("so few scores (one key") != std::string::npos, plan);
    CHECK(worst_error(Tensor(output), x.oracle(f64, {}).output) <= 1e-13);
  }

  TEST_CASE("pages in 16-bit floats, and tables of every integer type") {
    const PageSizes sizes{.blocks = 6, .lengths = {96, 41}};
    for (const DType stored : {f16, bf16}) {
      for (const I queries : {1, 5, 65}) {
        PageSizes n = sizes;
        n.queries = queries;
        const PagedArrays x(n);
        check_pages(x, f32, stored, {.causal = bottom_right});
        check_pages(x, f64, stored, {});
      }
    }
    const PagedArrays x(sizes, 0);
    const Tensor q = to_tensor(x.q, f32);
    const Tensor want = paged_attention(q, x.pages(f32)).output;
    for (const DType integers : {i8, i16, i32, i64}) {
      const Expr got = paged_attention(q, x.pages(f32, integers)).output;
      CHECK(explain({got}).find(kBothTaken) != std::string::npos);
      CHECK(same_bits(got, want));
    }
  }

  TEST_CASE("pages long enough for pieces of keys, and many queries") {
    const PagedArrays few(
        {.heads = 8, .blocks = 130, .width = 64, .values = 64, .lengths = {2077, 1040}});
    check_pages(few, f32, f32, {});
    check_pages(few, f64, f64, {});
    check_pages(few, f32, bf16, {});
    const PagedArrays many({.queries = 300, .blocks = 30, .lengths = {301, 480}});
    check_pages(many, f32, f32, {.causal = bottom_right});
    const PagedArrays ones({.queries = 300, .blocks = 190, .size = 1, .lengths = {190, 101}});
    check_pages(ones, f32, f32, {.causal = bottom_right});
  }

  TEST_CASE("pages, tables and results in memory of other orders") {
    const PagedArrays x({.queries = 2, .blocks = 6, .lengths = {96, 41}});
    const Tensor q = to_tensor(x.q, f32);
    const Pages pages = x.pages(f32);
    const Tensor want = paged_attention(q, pages).output;
    const auto behind = [](const Expr& t, std::initializer_list<Axis> order) {
      return Tensor(t).permute(order).copy().permute(order);  // its own inverse
    };
    const Tensor table = behind(pages.table, {1, 0});
    const Tensor reversed = Tensor(pages.table).slice(0, {}, {}, -1).copy().slice(0, {}, {}, -1);
    CHECK(!table.is_contiguous());
    for (const Pages& other :
         {Pages{behind(pages.keys, {0, 2, 1, 3}), pages.values, pages.table, pages.lengths},
          Pages{pages.keys, behind(pages.values, {0, 1, 3, 2}), pages.table, pages.lengths},
          Pages{behind(pages.keys, {1, 0, 2, 3}), pages.values, table, pages.lengths},
          Pages{pages.keys, pages.values, reversed, pages.lengths}}) {
      const Expr output = paged_attention(q, other).output;
      CHECK(explain({output}).find(kBothTaken) != std::string::npos);
      CHECK(same_bits(output, want));
    }
  }

  TEST_CASE("one plan for other tables, with logsumexp") {
    for (const I size : {1, 16, 256}) {
      CAPTURE(size);
      const PagedArrays x(
          {.queries = 2, .blocks = 6, .size = size, .lengths = {6 * size, 5 * size / 2}});
      const Pages pages = x.pages(f32);
      const Expr table = input(i32, {2, dyn("blocks")}), lengths = input(i64, {2});
      const AttentionResult r =
          paged_attention(to_tensor(x.q, f32), {pages.keys, pages.values, table, lengths});
      const Compiled f = compile({table, lengths}, {r.output, r.logsumexp});
      for (const I blocks : {6, 3, 6}) {
        PagedArrays other = x;
        for (I& length : other.n.lengths) length = std::min(length, blocks * size);
        const Tensor entries = Tensor(pages.table).slice(1, 0, blocks);
        const OracleResult want = other.oracle(f32, {});
        const std::vector<Tensor> got = f({entries, other.lengths()});
        CHECK(worst_error(got[0], want.output) <= 4e-6);
        CHECK(worst_error(got[1], want.logsumexp) <= 4e-6);
      }
    }
  }

  TEST_CASE("a page that is not there is refused before a length, ignored behind it") {
    const PagedArrays x({.blocks = 4, .size = 4, .lengths = {9, 16}});
    const Pages pages = x.pages(f32);
    const Tensor q = to_tensor(x.q, f32);
    CHECK_NOTHROW(Tensor(paged_attention(q, pages).output));
    for (const I entry : {-1, 8}) {
      Array table = x.table;
      table.at({0, 2}) = static_cast<double>(entry);  // of token 8, which is held
      Pages wrong = pages;
      wrong.table = to_tensor(table, i32);
      const std::string text =
          "take: index " + std::to_string(entry) + " is out of range for axis 1 of size 8";
      CHECK_THROWS_WITH_AS(Tensor(paged_attention(q, wrong).output), text.c_str(), ValueError);
      const Tensor out = full({2, 4, 1, 7}, 5);
      CHECK_THROWS_WITH_AS(eval_into(out, paged_attention(q, wrong).output), text.c_str(),
                           ValueError);
      CHECK(out.to_vector<float>() == std::vector<float>(56, 5));
    }
  }

  TEST_CASE("tables by hand: other orders, one side alone, rows of a batch, streams of two axes") {
    const I b = 3, blocks = 5, size = 4, keys = blocks * size;
    const Array q = short_noise({b, 7, 6}, 1), page = short_noise({8, size, 6}, 2),
                plain = short_noise({b, keys, 6}, 3);
    Array table({b, blocks}), taken({b, keys, 6});
    for_each_index({b, blocks}, [&](const Sizes& i) {
      const I at = (3 * i[0] + 5 * i[1]) % 8;
      table.at(i) = static_cast<double>(at);
      for_each_index({size, 6}, [&](const Sizes& p) {
        taken.at({i[0], i[1] * size + p[0], p[1]}) = page.at({at, p[0], p[1]});
      });
    });
    const Tensor tq = to_tensor(q), tp = to_tensor(page), tt = to_tensor(table, i64),
                 tk = to_tensor(plain);
    const auto attention = [&](const Expr& k, const Expr& v) {
      return einsum("bqk,bke->bqe", softmax(einsum("bqd,bkd->bqk", tq, k), "k"), v);
    };
    const auto heads = [](const Array& x) {
      return Array({x.shape[0], 1, x.shape[1], x.shape[2]}, x.data);
    };
    const auto want = [&](const Array& k, const Array& v) {
      Array o = attention_oracle(heads(q), heads(k), heads(v), {.scale = 1}).output;
      o.shape.erase(o.shape.begin() + 1);
      return o;
    };
    const auto check = [&](const char* name, const Expr& o, const char* kind, const Array& w) {
      CAPTURE(name);
      const std::string plan = explain({o});
      CHECK_MESSAGE(plan.find(kind) != std::string::npos, plan);
      CHECK(worst_error(Tensor(o), w) <= 1e-13);
      CHECK(worst_error(eval(o, {.fuse = false}), w) <= 1e-13);
    };
    const Expr through = by_table(tp, tt);
    check("keys and values in one tensor", attention(through, through), kBothTaken,
          want(taken, taken));
    check("keys alone", attention(through, tk), "attend + take (k)", want(taken, plain));
    check("values alone", attention(tk, through), "attend + take (v)", want(plain, taken));
    check("a scale on the keys", attention(0.5 * through, tk), "attend + take (k)",
          want(to_array(Tensor(0.5 * Expr(to_tensor(taken)))), plain));

    // Blocks and positions within them stay two axes of the scores.
    const Expr apart = take(tp, tt, 0);
    const Expr s = einsum("bqd,btsd->bqts", tq, apart);
    check("two axes", einsum("bqts,btse->bqe", softmax(s, {"t", "s"}), apart), kBothTaken,
          want(taken, taken));

    // One table for all entries; one row per entry; a row per query.
    const Tensor row = tensor<I>({3, 0, 7, 3, 5});
    const Expr shared = merge(take(tp, row, 0), {0, 1});
    Array of_row({b, keys, 6});
    for_each_index(of_row.shape, [&](const Sizes& i) {
      const I at = row.to_vector<I>()[static_cast<std::size_t>(i[1] / size)];
      of_row.at(i) = page.at({at, i[1] % size, i[2]});
    });
    check("one table for all",
          einsum("bqk,ke->bqe", softmax(einsum("bqd,kd->bqk", tq, shared), "k"), shared),
          kBothTaken, want(of_row, of_row));
    // Without a softmax.
    const Expr gates = sigmoid(einsum("bqd,bkd->bqk", tq, through));
    const Tensor dense = to_tensor(taken);
    check("gates", einsum("bqk,bke->bqe", gates, through), kBothTaken,
          to_array(eval(einsum("bqk,bke->bqe", sigmoid(einsum("bqd,bkd->bqk", tq, dense)), dense),
                        {.fuse = false})));
    const Tensor slots = tensor<I>({2, 0, 1});
    const Expr cache = take(tk, slots, 0);
    check("slots of a cache", attention(cache, cache), kBothTaken,
          want(to_array(Tensor(cache)), to_array(Tensor(cache))));
  }

  TEST_CASE("what is not rows of keys is gathered as before") {
    const Tensor q = to_tensor(short_noise({2, 40, 6}, 1)),
                 k = to_tensor(short_noise({2, 60, 9}, 2)),
                 v = to_tensor(short_noise({2, 60, 4}, 3));
    const auto attention = [&](const Expr& keys) {
      return einsum("bqk,bke->bqe", softmax(einsum("bqd,bkd->bqk", q, keys), "k"), v);
    };
    const auto check = [&](const Expr& keys) {
      const Expr o = attention(keys);
      const std::string plan = explain({o});
      CHECK_MESSAGE(plan.find("attend") != std::string::npos, plan);
      CHECK_MESSAGE(plan.find("attend + take") == std::string::npos, plan);
      CHECK(worst_error(Tensor(o), to_array(attention(Tensor(keys)))) <= 1e-13);
    };
    const Expr features = take(k, tensor<I>({8, 1, 0, 3, 5, 5}), 2);
    check(features);
    check(slice(take(Tensor(features), arange(70, i64) * 0 + 7, 1), 1, 10, 70));
  }
}
