// SPDX-License-Identifier: Apache-2.0
// Contractions of a few rows or columns with a large operand that is read where it lies, against a
// naive double sum: both forms, all types, ragged ends of runs and tasks, on every SIMD target.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "../../../engine/base/half.h"
#include "../../../engine/base/machine.h"
#include "../../../engine/exec/contract.h"
#include "../../../engine/exec/execute.h"
#include "../../../engine/plan/skinny.h"
#include "contraction.h"
#include "threads.h"

using namespace einkern;
using namespace einkern::test;
using plan::Regime;
using plan::SkinnyForm;

namespace {

struct SkinnyLook {
  SkinnyForm form = SkinnyForm::dots;
  bool few_rows = true;     // a is the small operand, otherwise b
  std::int64_t gap = 0;     // elements between innermost rows of each tensor
  std::int64_t skew = 0;    // elements before the first one
  bool reverse = false;     // rows of the large operand, in memory, and the few of c downwards
  bool few_turned = false;  // the small operand has its sum outermost
};

/// Sizes of the loops of every group.
struct SkinnySizes {
  std::vector<std::int64_t> batch, few, many, k;
};

Loops loops_of_sizes(const std::vector<std::int64_t>& sizes) {
  Loops loops;
  for (const std::int64_t size : sizes) loops.push_back({.size = size});
  return loops;
}

/// A step of regime skinny. Elements of a and b that belong to no position are NaN.
template <class T>
class SkinnyStep : public Contraction<T> {
 public:
  SkinnyStep(const SkinnySizes& sizes, const SkinnyLook& look, std::mt19937& random)
      : Contraction<T>(loops_of_sizes(sizes.batch),
                       loops_of_sizes(look.few_rows ? sizes.few : sizes.many),
                       loops_of_sizes(look.few_rows ? sizes.many : sizes.few),
                       loops_of_sizes(sizes.k), Look{.shuffle = false}, random),
        look_(look) {
    step.regime = Regime::skinny;
    Loops &few = look.few_rows ? step.m : step.n, &many = look.few_rows ? step.n : step.m;
    const StrideOf of_few = look.few_rows ? &Loop::a : &Loop::b;
    const StrideOf of_many = look.few_rows ? &Loop::b : &Loop::a;
    std::vector<T>& few_values = values_[0];
    std::vector<T>& many_values = values_[1];
    using Groups = std::vector<Loops*>;
    const std::int64_t few_first = place(
        look.few_turned ? Groups{&step.k, &few, &step.batch} : Groups{&step.batch, &few, &step.k},
        of_few, nullptr, few_values);
    const bool dots = look.form == SkinnyForm::dots;
    const std::int64_t many_first =
        place(dots ? Groups{&step.batch, &many, &step.k} : Groups{&step.batch, &step.k, &many},
              of_many, dots ? &many : &step.k, many_values);
    // Few columns side by side in c where they may be.
    std::vector<T> c_values;
    step.c.layout.offset = place(dots && !look.few_rows ? Groups{&step.batch, &many, &few}
                                                        : Groups{&step.batch, &few, &many},
                                 &Loop::c, &few, c_values);
    this->c.assign(c_values.size() + kBehind, Contraction<T>::kUntouched);
    set_values(few, of_few, few_first, few_values, random);
    set_values(many, of_many, many_first, many_values, random);
    (look.few_rows ? step.a : step.b).layout.offset = few_first;
    (look.few_rows ? step.b : step.a).layout.offset = many_first;
    this->a.assign(values_[look.few_rows ? 0 : 1].begin(), values_[look.few_rows ? 0 : 1].end());
    this->b.assign(values_[look.few_rows ? 1 : 0].begin(), values_[look.few_rows ? 1 : 0].end());
  }

  /// Stores the operands as these, values rounded to what both halves hold.
  void store_as(DType few, DType many) {
    narrow(step.a, look_.few_rows ? few : many, this->a, half_a_);
    narrow(step.b, look_.few_rows ? many : few, this->b, half_b_);
  }

  exec::Frame frame(const kernel::Kernels& kernels) {
    const auto bytes = [](auto& full, auto& half) {
      return half.empty() ? reinterpret_cast<std::byte*>(full.data())
                          : reinterpret_cast<std::byte*>(half.data());
    };
    return {.values = {bytes(this->a, half_a_), bytes(this->b, half_b_),
                       reinterpret_cast<std::byte*>(this->c.data())},
            .scalars = {},
            .kernels = kernels};
  }
  /// Runs it; false where its strides do not suit.
  bool run_skinny(const kernel::Kernels& kernels) { return exec::run_skinny(step, frame(kernels)); }
  void run(const kernel::Kernels& kernels) { exec::run(step, frame(kernels)); }

  using Contraction<T>::step;

 private:
  static constexpr std::size_t kBehind = 32;
  using Words = std::vector<std::uint16_t, Guarded<std::uint16_t>>;

  /// Strides of groups, outermost first; the offset of the first element.
  std::int64_t place(const std::vector<Loops*>& groups, StrideOf stride, const Loops* downwards,
                     std::vector<T>& memory) const {
    std::int64_t total = 1, first = look_.skew;
    bool innermost = true;
    for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
      for (auto loop = (*group)->rbegin(); loop != (*group)->rend(); ++loop) {
        // A unit stride stays one: it is what makes the form.
        const bool down = look_.reverse && *group == downwards && !innermost;
        (*loop).*stride = down ? -total : total;
        if (down) first += total * (loop->size - 1);
        total *= loop->size;
        if (std::exchange(innermost, false)) total += look_.gap;
      }
    }
    // Nothing behind the last element: a gap there would hide reads behind it.
    memory.assign(static_cast<std::size_t>(total + look_.skew - (innermost ? 0 : look_.gap)),
                  std::numeric_limits<T>::quiet_NaN());
    return first;
  }

  void set_values(const Loops& own, StrideOf stride, std::int64_t first, std::vector<T>& memory,
                  std::mt19937& random) const {
    std::uniform_real_distribution<T> uniform(T(0.25), 1);
    for (const std::int64_t e : offsets(step.batch, stride)) {
      for (const std::int64_t i : offsets(own, stride)) {
        for (const std::int64_t p : offsets(step.k, stride)) {
          memory[static_cast<std::size_t>(first + e + i + p)] =
              random() % 2 == 0 ? uniform(random) : -uniform(random);
        }
      }
    }
  }

  static void narrow(plan::Operand& operand, DType dtype, auto& full, Words& half) {
    operand.dtype = dtype;
    if (!is_half_float(dtype)) return;
    half.resize(full.size());
    for (std::size_t i = 0; i < full.size(); ++i) {
      // What bf16 holds between a quarter and 1, f16 does too.
      full[i] = static_cast<T>(static_cast<float>(BFloat16(full[i])));
      half[i] = dtype == DType::f16 ? Float16(full[i]).bits : BFloat16(full[i]).bits;
    }
  }

  SkinnyLook look_;
  std::vector<T> values_[2];  // of the few, of the many
  Words half_a_, half_b_;
};

template <class T>
void check_skinny_on_all_targets(SkinnyStep<T>& product, const SkinnyLook& look) {
  const auto answers = product.answers();
  CAPTURE(look.few_rows);
  CAPTURE(look.gap);
  CAPTURE(look.skew);
  CAPTURE(look.reverse);
  REQUIRE(plan::skinny_form(product.step) == look.form);
  for (const kernel::Kernels* kernels : kernel::supported_kernels()) {
    CAPTURE(kernels->target.name.data());
    product.clear();
    REQUIRE(product.run_skinny(*kernels));
    CHECK(product.worst(answers) <= 1);
  }
}

/// Few rows and few columns; dense, and strided and misaligned with rows in any direction.
template <class T>
void check_skinny(const SkinnySizes& sizes, SkinnyForm form) {
  std::mt19937 random(41);
  for (const bool few_rows : {true, false}) {
    for (SkinnyLook look :
         {SkinnyLook{}, SkinnyLook{.gap = 3, .skew = 1, .reverse = true, .few_turned = true}}) {
      look.form = form;
      look.few_rows = few_rows;
      SkinnyStep<T> product(sizes, look, random);
      check_skinny_on_all_targets(product, look);
    }
  }
}

/// Operands of f32, f16 and bf16 in all pairs.
void check_skinny_halves(const SkinnySizes& sizes, SkinnyForm form) {
  std::mt19937 random(42);
  for (const DType few : {f32, f16, bf16}) {
    for (const DType many : {f32, f16, bf16}) {
      CAPTURE(name_of(few));
      CAPTURE(name_of(many));
      const bool odd = few != many;
      const SkinnyLook look{.form = form,
                            .few_rows = few != bf16,
                            .gap = odd ? 1 : 0,
                            .skew = odd ? 3 : 0,
                            .reverse = odd};
      SkinnyStep<float> product(sizes, look, random);
      product.store_as(few, many);
      check_skinny_on_all_targets(product, look);
    }
  }
}

/// The bits of one thread with any number of them.
template <class T>
void check_skinny_threads(const SkinnySizes& sizes, SkinnyForm form) {
  std::mt19937 random(43);
  for (const bool few_rows : {true, false}) {
    SkinnyStep<T> product(sizes, {.form = form, .few_rows = few_rows}, random);
    decltype(product.c) first;
    with_threads([&](int threads) {
      product.clear();
      REQUIRE(product.run_skinny(kernel::kernels()));
      if (threads == 1) {
        first = product.c;
        CHECK(product.worst(product.answers()) <= 1);
      }
      CHECK(std::memcmp(product.c.data(), first.data(), first.size() * sizeof(T)) == 0);
    });
  }
}

struct SkinnyTaken {
  int dots = 0, sums = 0, neither = 0;
};

/// Any groups and strides: what does not suit is left to other code.
template <class T>
void check_random_skinny(int count, std::uint32_t seed, SkinnyTaken& taken) {
  std::mt19937 random(seed);
  const auto group = [&](std::int64_t largest, std::size_t least, std::size_t most) {
    Loops loops;
    for (std::size_t l = least + random() % (most + 1 - least); l > 0; --l) {
      loops.push_back({.size = 2 + static_cast<std::int64_t>(random()) % largest});
    }
    return loops;
  };
  const auto& tables = kernel::supported_kernels();
  for (int i = 0; i < count; ++i) {
    // The fewer labels, the more often rows lie so that they suit.
    const std::size_t most = 1 + random() % 2;
    const Loops batch = group(4, 0, most), few = group(5, 0, most), many = group(70, 1, most),
                k = group(40, 1, most);
    if (positions(batch) * positions(few) * positions(many) * positions(k) > 1 << 18) continue;
    const bool few_rows = random() % 2 == 0;
    const Look look{.shuffle = random() % 4 != 0,
                    .reverse = random() % 4 == 0,
                    .pad = random() % 3 == 0,
                    .skew = static_cast<std::int64_t>(random() % 5)};
    Contraction<T> contraction(batch, few_rows ? few : many, few_rows ? many : few, k, look,
                               random);
    if (random() % 2 == 0) contraction.arrange();
    contraction.step.regime = Regime::skinny;
    const SkinnyForm form = plan::skinny_form(contraction.step);
    ++(form == SkinnyForm::dots   ? taken.dots
       : form == SkinnyForm::sums ? taken.sums
                                  : taken.neither);
    CAPTURE(i);
    contraction.run(*tables[random() % tables.size()]);
    REQUIRE(contraction.worst(contraction.answers()) <= 1);
  }
}

constexpr SkinnyForm kDots = SkinnyForm::dots, kSums = SkinnyForm::sums;

}  // namespace

TEST_SUITE("exec") {
  TEST_CASE("few rows, dots: ends of tasks, of runs and of vectors") {
    for (const std::int64_t many : {15, 16, 17, 18, 257, 290}) {
      check_skinny<float>({{}, {5}, {many}, {67}}, kDots);
      check_skinny<double>({{}, {4}, {many}, {37}}, kDots);
    }
    // A part of the sum at a time: 16 KiB of every row.
    for (const std::int64_t k : {4095, 4096, 4097, 8209}) {
      check_skinny<float>({{}, {2}, {7}, {k}}, kDots);
    }
    for (const std::int64_t k : {2047, 2048, 2049, 4111}) {
      check_skinny<double>({{}, {2}, {5}, {k}}, kDots);
    }
    check_skinny<float>({{}, {29}, {41}, {33}}, kDots);
    check_skinny<float>({{}, {1}, {33}, {130}}, kDots);
    check_skinny<float>({{}, {}, {33}, {130}}, kDots);
    check_skinny<float>({{}, {3}, {5}, {3}}, kDots);
  }

  TEST_CASE("few rows, weighted sums: ends of tasks, of parts of the sum and of vectors") {
    for (const std::int64_t columns : {127, 128, 129, 1025, 2111}) {
      check_skinny<float>({{}, {3}, {columns}, {11}}, kSums);
      check_skinny<double>({{}, {2}, {columns}, {9}}, kSums);
    }
    // More than 16 tasks of the most columns.
    check_skinny<float>({{}, {2}, {16 * 1024 + 19}, {3}}, kSums);
    for (const std::int64_t k : {1, 63, 64, 65, 128, 201}) {
      check_skinny<float>({{}, {5}, {45}, {k}}, kSums);
      check_skinny<double>({{}, {4}, {37}, {k}}, kSums);
    }
    check_skinny<float>({{}, {29}, {70}, {70}}, kSums);
    check_skinny<float>({{}, {}, {150}, {70}}, kSums);
  }

  TEST_CASE("few rows in a batch") {
    for (const std::int64_t batch : {1, 3, 20}) {
      check_skinny<float>({{batch}, {3}, {37}, {69}}, kDots);
      check_skinny<float>({{batch}, {3}, {69}, {67}}, kSums);
      check_skinny<double>({{batch}, {5}, {19}, {18}}, kDots);
      check_skinny<double>({{batch}, {5}, {43}, {13}}, kSums);
    }
    check_skinny<float>({{2, 3}, {2}, {35}, {40}}, kDots);
    check_skinny<float>({{2, 3}, {2}, {35}, {40}}, kSums);
  }

  TEST_CASE("several labels among few rows, among many, and in the sum") {
    check_skinny<float>({{}, {2, 3}, {5, 7, 9}, {70}}, kDots);
    check_skinny<double>({{2}, {3, 2}, {23, 4}, {35}}, kDots);
    check_skinny<float>({{}, {2, 3}, {133}, {6, 13}}, kSums);
    check_skinny<double>({{2}, {3, 2}, {40}, {3, 5, 5}}, kSums);
  }

  TEST_CASE("few rows and many of them as f16 and bf16") {
    check_skinny_halves({{}, {4}, {43}, {85}}, kDots);
    check_skinny_halves({{}, {2}, {5}, {4099}}, kDots);
    check_skinny_halves({{3}, {}, {19}, {77}}, kDots);
    check_skinny_halves({{}, {4}, {139}, {67}}, kSums);
    check_skinny_halves({{3}, {}, {75}, {66}}, kSums);
  }

  TEST_CASE("few rows give the same bits for any number of threads") {
    for (const SkinnyForm form : {kDots, kSums}) {
      check_skinny_threads<float>({{}, {5}, {301}, {133}}, form);
      check_skinny_threads<double>({{3}, {4}, {133}, {70}}, form);
      // Few rows that no thread copies for itself: together larger than a quarter of L2.
      const std::int64_t steps = machine().l2_bytes / 4 / (16 * 4 * 4) + 33;
      check_skinny_threads<float>({{4}, {16}, {20}, {steps}}, form);
    }
  }

  TEST_CASE("any strides under the regime of few rows") {
    SkinnyTaken taken;
    check_random_skinny<float>(400, 1, taken);
    check_random_skinny<double>(200, 2, taken);
    CHECK(taken.dots >= 40);
    CHECK(taken.sums >= 40);
    CHECK(taken.neither >= 40);
    SkinnyTaken integers;
    check_random_skinny<std::int64_t>(60, 3, integers);
    CHECK(integers.dots + integers.sums == 0);
  }

  TEST_CASE("halves whose strides do not suit few rows") {
    std::mt19937 random(44);
    // Two labels in the sum, or along the rows.
    for (const auto& [form, sizes] :
         {std::pair<SkinnyForm, SkinnySizes>{kDots, {{}, {3}, {41}, {5, 9}}},
          {kSums, {{}, {3}, {4, 33}, {41}}}}) {
      SkinnyStep<float> product(sizes, {.form = form}, random);
      product.store_as(f32, bf16);
      REQUIRE(plan::skinny_form(product.step) == SkinnyForm::none);
      const auto answers = product.answers();
      for (const kernel::Kernels* kernels : kernel::supported_kernels()) {
        CAPTURE(kernels->target.name.data());
        product.clear();
        CHECK_FALSE(product.run_skinny(*kernels));
        CHECK(std::count(product.c.begin(), product.c.end(), -77.0F) ==
              static_cast<std::ptrdiff_t>(product.c.size()));
        product.run(*kernels);
        CHECK(product.worst(answers) <= 1);
      }
    }
  }

  TEST_CASE("infinities and NaN reach their own sums of few rows and no others") {
    std::mt19937 random(45);
    for (const SkinnyForm form : {kDots, kSums}) {
      const SkinnyLook look{.form = form};
      SkinnyStep<float> product({{}, {5}, {139}, {67}}, look, random);
      product.a[66] = std::numeric_limits<float>::infinity();  // the last step of a row
      product.b[40] = -std::numeric_limits<float>::infinity();
      product.b[product.b.size() - 1] = std::numeric_limits<float>::infinity();
      product.b[3000] = std::numeric_limits<float>::quiet_NaN();
      check_skinny_on_all_targets(product, look);
    }
  }

  TEST_CASE("empty sums of few rows are zero") {
    std::mt19937 random(46);
    Contraction<float> contraction({}, loops_of({3}), loops_of({130}), loops_of({0}),
                                   Look{.shuffle = false}, random);
    contraction.step.regime = Regime::skinny;
    contraction.run(kernel::kernels());
    CHECK(std::count(contraction.c.begin(), contraction.c.end(), 0.0F) == 3 * 130);
  }
}
