// SPDX-License-Identifier: Apache-2.0
// Counts what calls that have run before allocate: nothing of a compiled plan, the result and the
// nodes of an eager one. Lets each allocation of a call fail in turn.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "../../../engine/base/error.h"
#include "../../../engine/graph/build.h"
#include "../../../engine/graph/compiled.h"
#include "../../../engine/graph/plan_cache.h"
#include "../../../engine/tensor/borrow.h"
#include "../../../engine/tensor/create.h"
#include "../../../engine/tensor/pool.h"
#include "../../../engine/tensor/storage.h"

namespace {

std::atomic<std::int64_t> allocations{0};
thread_local std::int64_t until_failure = 0;  // the allocation of this thread that fails; 0: none

void* counted(std::size_t bytes, std::size_t alignment) noexcept {
  ++allocations;
  if (until_failure > 0 && --until_failure == 0) return nullptr;
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}
void* counted_or_throw(std::size_t bytes, std::size_t alignment) {
  if (void* const data = counted(bytes == 0 ? 1 : bytes, alignment)) return data;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t bytes) { return counted_or_throw(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
// Not inlined: a compiler that sees free() where it knows of operator new warns.
[[gnu::noinline]] void operator delete(void* data) noexcept { std::free(data); }
[[gnu::noinline]] void operator delete(void* data, std::size_t) noexcept { std::free(data); }
[[gnu::noinline]] void operator delete(void* data, std::align_val_t) noexcept { std::free(data); }
[[gnu::noinline]] void operator delete(void* data, std::size_t, std::align_val_t) noexcept {
  std::free(data);
}

namespace einkern {
namespace {

/// Of five calls of a plan that has run before.
std::int64_t allocations_of(const Compiled& f, const std::vector<Tensor>& inputs) {
  const std::vector<Tensor> outs = f(inputs);
  for (int run = 0; run < 20; ++run) f.into(outs, inputs);
  const std::int64_t before = allocations;
  for (int run = 0; run < 5; ++run) f.into(outs, inputs);
  return allocations - before;
}

struct Kind {
  std::string equation;
  std::vector<Shape> shapes;
};

/// The same of `finish` of an einsum.
template <class Finish>
std::int64_t allocations_of(const Kind& kind, const Finish& finish) {
  std::vector<Expr> symbols;
  std::vector<Tensor> inputs;
  for (const Shape& shape : kind.shapes) {
    symbols.push_back(input(f32, shape));
    inputs.push_back(random(shape, inputs.size() + 1));
  }
  return allocations_of(compile(symbols, {finish(einsum(kind.equation, symbols))}), inputs);
}

TEST_CASE("a small plan that has run before allocates nothing") {
  const Expr a = input(f32, {8, 8}), b = input(f32, {8, 8});
  const Compiled f = compile({a, b}, {einsum("ij,jk->ik", a, b)});
  const std::vector<Tensor> inputs{random({8, 8}, 1), random({8, 8}, 2)}, outs{zeros({8, 8})};
  f.into(outs, inputs);
  const std::size_t blocks = pool_bytes() + blocks_in_use().bytes();
  const std::int64_t before = allocations;
  for (int run = 0; run < 10; ++run) f.into(outs, inputs);
  CHECK(allocations - before == 0);
  CHECK(pool_bytes() + blocks_in_use().bytes() == blocks);
}

TEST_CASE("an eager call that has run before allocates its nodes and its result") {
  const Tensor a = random({8, 8}, 1), b = random({8, 8}, 2), out = zeros({8, 8});
  const auto count = [](const auto& call) {
    for (int run = 0; run < 3; ++run) call();
    const std::int64_t before = allocations;
    call();
    return allocations - before;
  };
  CHECK(count([] { const Tensor fresh = empty({8, 8}); }) == 1);
  // A leaf each, the einsum and its list of inputs.
  CHECK(count([&] { const Expr product = einsum("ij,jk->ik", a, b); }) == 4);
  CHECK(count([&] { const Tensor c = einsum("ij,jk->ik", a, b); }) == 5);
  CHECK(count([&] { einsum_into(out, "ij,jk->ik", {a, b}); }) == 4);
  const Expr product = einsum("ij,jk->ik", a, b);
  CHECK(count([&] { const Tensor c = product; }) == 1);
  CHECK(count([&] { eval_into(out, product); }) == 0);
}

/// Calls with the first, the second, ... allocation failing, until none does: how many failed.
/// `after_failure` runs in between.
template <class Call, class After>
std::int64_t failures_of(const Call& call, const After& after_failure) {
  for (std::int64_t failures = 0;; ++failures) {
    bool failed = false;
    until_failure = failures + 1;
    try {
      call();
    } catch (const MemoryLimitError&) {
      failed = true;
    } catch (const std::bad_alloc&) {
      failed = true;
    }
    until_failure = 0;
    if (!failed) return failures;
    after_failure();
  }
}

TEST_CASE("a small tensor without memory is a MemoryLimitError that names its bytes") {
  const auto allocate = [] {
    until_failure = 1;
    Storage::allocate(200);
  };
  CHECK_THROWS_WITH_AS(allocate(), "allocate: the system has no 200 bytes", MemoryLimitError);
}

TEST_CASE("calls whose allocations fail write nothing, keep nothing, and work the next time") {
  const auto owner = std::make_shared<std::vector<double>>(9, 2.0);
  const Tensor a = borrow(owner->data(), {3, 3}, {3, 1}, owner), out = full({3, 3}, -1, f64);
  const std::vector<double> product(9, 12.0), untouched(9, -1.0);
  const long users = owner.use_count();
  const auto clean = [&] {
    CHECK(owner.use_count() == users);
    CHECK(out.to_vector<double>() == untouched);
  };
  // Plans are made in the first round of each, and found in the second.
  std::int64_t failures[2][3];
  for (auto& round : failures) {
    round[0] = failures_of([&] { const Tensor c = einsum("ij,jk->ik", a, a); }, clean);
    round[1] = failures_of([&] { einsum_into(out, "ij,jk->ik", {a, a}, {.alpha = 0.5}); }, clean);
    CHECK(out.to_vector<double>() == std::vector<double>(9, 6.0));
    out.fill(-1);
    round[2] = failures_of([&] { eval({einsum("ij->ji", a), einsum("ij,ij->", a, a)}); }, clean);
    const Tensor c = einsum("ij,jk->ik", a, a);
    CHECK(c.to_vector<double>() == product);
  }
  for (std::size_t i = 0; i < 3; ++i) CHECK(failures[0][i] > failures[1][i]);
  CHECK(failures[1][0] == 5);
}

TEST_CASE("a cache of plans that cannot take one stays as it was") {
  graph::PlanCache<int> cache(2);
  const std::string key(40, 'k'), other(40, 'o'), third(40, 't');
  const auto value = std::make_shared<const int>(1);
  cache.insert(other, value);
  const std::int64_t failures = failures_of([&] { cache.insert(key, value); },
                                            [&] {
                                              CHECK(cache.size() == 1);
                                              CHECK(cache.find(key) == nullptr);
                                              CHECK(value.use_count() == 2);
                                            });
  CHECK(failures >= 2);
  CHECK(cache.find(key) != nullptr);
  CHECK(cache.size() == 2);
  failures_of([&] { cache.insert(third, value); }, [&] { CHECK(cache.size() == 2); });
  CHECK(cache.find(other) == nullptr);
  CHECK(cache.find(third) != nullptr);
}

TEST_CASE("steps of every kind that have run before allocate nothing, cut into tasks or not") {
  for (const Kind& kind :
       std::vector<Kind>{{"ik,kj->ij", {{300, 600}, {600, 700}}},
                         {"bhqd,bhkd->bhqk", {{4, 6, 70, 64}, {4, 6, 90, 64}}},
                         {"ij,jk->ik", {{80, 20000}, {20000, 90}}},
                         {"bij,bjk->bik", {{3000, 8, 8}, {3000, 8, 8}}},
                         {"ijb,jkb->ikb", {{8, 8, 3000}, {8, 8, 3000}}},
                         {"ij,j->i", {{2000, 700}, {700}}},
                         {"ij,i->j", {{2000, 700}, {2000}}},
                         {"ij,ij->", {{2000, 700}, {2000, 700}}},
                         {"i,j->ij", {{900}, {1100}}},
                         {"ijk,ijk->ijk", {{90, 70, 50}, {90, 70, 50}}},
                         {"abcd->bd", {{30, 20, 40, 50}}},
                         {"abcd->dcba", {{30, 20, 40, 50}}},
                         // Streamed, with rows that are packed and with far ones.
                         {"dbea,ec->abcd", {{24, 24, 24, 64}, {24, 40}}},
                         {"deca,be->abcd", {{24, 24, 24, 64}, {40, 24}}},
                         {"ik,kj->ij", {{40000, 32}, {32, 64}}},
                         // Of several steps, with temporaries.
                         {"ij,jk,kl->il", {{200, 300}, {300, 90}, {90, 70}}},
                         {"ab,bc,cd,de->ae", {{8, 8}, {8, 8}, {8, 8}, {8, 8}}}}) {
    CAPTURE(kind.equation);
    CHECK(allocations_of(kind, [](const Expr& x) { return x; }) == 0);
  }
}

TEST_CASE("epilogues that have run before allocate nothing") {
  const auto relu = [](const Expr& x) {
    return graph::elementwise("maximum", map::Op::maximum, {x, 0});
  };
  for (const Kind& kind : std::vector<Kind>{{"ik,kj->ij", {{300, 600}, {600, 700}}},
                                            {"bij,bjk->bik", {{3000, 8, 8}, {3000, 8, 8}}},
                                            {"ijb,jkb->ikb", {{8, 8, 3000}, {8, 8, 3000}}},
                                            {"i,j->ij", {{900}, {1100}}},
                                            {"dbea,ec->abcd", {{24, 24, 24, 64}, {24, 40}}}}) {
    CAPTURE(kind.equation);
    CHECK(allocations_of(kind, relu) == 0);
  }
}

TEST_CASE("plans of several steps with constants that have run before allocate nothing") {
  const Expr a = input(f32, {300, 200}), b = input(f32, {200, 100});
  const auto exp = [](const Expr& x) { return graph::elementwise("exp", map::Op::exp, {x}); };
  const Expr half = graph::elementwise("mul", map::Op::mul, {a, 0.5});
  const Expr sums =
      graph::reduce("sum", plan::ReduceOp::sum, einsum("ij,jk->ik", exp(half), b), {1});
  const Expr weights =
      graph::softmax("softmax", plan::SoftmaxKind::softmax, einsum("ij,jk->ik", a, b), {1});
  const Compiled f = compile({a, b}, {exp(sums), weights});
  const std::vector<Tensor> inputs{random({300, 200}, 1), random({200, 100}, 2)};
  CHECK(allocations_of(f, inputs) == 0);
}

TEST_CASE("keys and values behind a table are not gathered") {
  // 4 MiB in pages that sixteen sequences share: 64 MiB by sequence.
  const std::int64_t batch = 16, blocks = 256, size = 64;
  const Tensor pages = random({blocks, size, 64}, 1);
  const Tensor every = arange(blocks).broadcast({batch, blocks});
  const Expr keys = graph::merge("merge", graph::take("take", pages, every, 0), 1, 2, "");
  for (const std::int64_t queries : {1, 3, 64}) {
    CAPTURE(queries);
    const Expr scores = einsum("bqd,bkd->bqk", random({batch, queries, 64}, 2), keys);
    const Expr weights = graph::softmax("softmax", plan::SoftmaxKind::softmax, scores, {2});
    const Expr output = einsum("bqk,bke->bqe", weights, keys);
    blocks_in_use().reset_peak();
    const std::size_t before = blocks_in_use().bytes();
    const Tensor out(output);
    CHECK(blocks_in_use().peak() - before < std::size_t{16} << 20);
    CHECK(out.shape() == Shape{batch, queries, 64});
  }
}

}  // namespace
}  // namespace einkern
