// SPDX-License-Identifier: Apache-2.0
// Contractions with an epilogue: the bits of two steps, in every regime and on every SIMD target,
// and the numbers of a plain loop in double.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>

#include "../../../engine/exec/execute.h"
#include "../../../engine/plan/einsum.h"
#include "../../support/close.h"
#include "../../support/oracle.h"
#include "threads.h"
#include "views.h"

using namespace einkern;
using namespace einkern::test;
using map::Op;

namespace {

/// What a random program does, in order, to the sum r: with a tensor x, a number s, or positions.
enum class Act : std::uint8_t {
  add_tensor,
  mul_tensor,
  sub_from_tensor,
  scale,
  relu,
  tanh,
  gate,      // r sigmoid(r)
  erf_gate,  // r (1 + erf(r))
  again,     // max(r, sum)
  band,      // where position along one axis <= that along another, r, else s
  count
};

template <class T>
class Case {
 public:
  /// A contraction `equation` with these sizes by letter, its output in C order, other tensors in
  /// any layout.
  Case(const std::string& equation, const std::map<char, std::int64_t>& sizes, bool plain_operands,
       std::mt19937& random)
      : random_(random), spec_(make_spec(equation, shapes_of(equation, sizes))) {
    for (const Shape& shape : spec_.shapes) {
      views_.push_back(plain_operands ? View<T>(shape) : View<T>(shape, random, false));
    }
    shape_ = spec_.output_shape();
    write_program();
  }

  /// One step or two.
  plan::Plan plan(bool joined, const kernel::Kernels& kernels) const {
    plan::Builder builder(kernels.target);
    std::vector<plan::Operand> inputs;
    for (const View<T>& view : views_) {
      Layout layout = view.layout;
      layout.offset = 0;
      inputs.push_back(builder.add_input(dtype_of<T>, layout));
    }
    builder.set_scalars(2);
    const plan::Operand out = builder.add_output(dtype_of<T>, contiguous(shape_));
    const plan::Operand sums = builder.add_temporary(dtype_of<T>, shape_);
    plan::add_einsum(builder, spec_, {inputs[0], inputs[1]}, sums);
    std::vector<plan::Operand> of_map{sums};
    of_map.insert(of_map.end(), inputs.begin() + 2, inputs.end());
    builder.add(plan::Map{program_, of_map, out});
    if (joined) builder.join_epilogues();
    return builder.finish();
  }

  std::vector<T> run(const plan::Plan& plan, int threads = 0) {
    std::vector<T> out(static_cast<std::size_t>(element_count(shape_)), T{55});
    std::vector<const void*> inputs;
    for (View<T>& view : views_) inputs.push_back(&view[0]);
    void* const outputs[] = {out.data()};
    const map::Scalar scalars[] = {map::Scalar::of(kScale), map::Scalar::of(0.0)};
    exec::execute(plan, {inputs, outputs, scalars}, threads);
    return out;
  }

  void fill(bool exact) {
    for (View<T>& view : views_) {
      view.fill([&] {
        const double x = uniform(random_, -1, 1);
        return exact ? std::round(8 * x) / 8 : x;
      });
    }
  }

  std::vector<double> expected() {
    std::vector<RawView> raw;
    for (std::size_t i = 0; i < 2; ++i) {
      const Layout& layout = views_[i].layout;
      raw.push_back({&views_[i][0],
                     dtype_of<T>,
                     {layout.shape.begin(), layout.shape.end()},
                     {layout.strides.begin(), layout.strides.end()}});
    }
    std::vector<double> values = oracle_einsum(spec_, raw);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = act(values[i], static_cast<std::int64_t>(i));
    }
    return values;
  }

  const std::vector<Act>& acts() const { return acts_; }
  double products() const {
    double count = 1;
    for (const std::int64_t size : spec_.sizes) count *= static_cast<double>(size);
    return count;
  }

 private:
  static constexpr double kScale = 0.375;

  static std::vector<Shape> shapes_of(const std::string& equation,
                                      const std::map<char, std::int64_t>& sizes) {
    std::vector<Shape> shapes(1);
    for (const char c : equation.substr(0, equation.find('-'))) {
      if (c == ',') {
        shapes.emplace_back();
      } else {
        shapes.back().push_back(sizes.at(c));
      }
    }
    return shapes;
  }

  std::int32_t load_tensor() {
    views_.push_back(View<T>(shape_, random_, true));
    return program_.emit({.op = Op::load,
                          .dtype = dtype_of<T>,
                          .arg = static_cast<std::int32_t>(views_.size()) - 2});
  }

  void write_program() {
    constexpr DType t = dtype_of<T>;
    const std::int32_t sum = program_.emit({Op::load, t});
    std::int32_t r = sum;
    const auto length = 1 + random_() % 4;
    while (acts_.size() < length) {
      const Act act = static_cast<Act>(random_() % static_cast<unsigned>(Act::count));
      if (act == Act::band && shape_.empty()) continue;
      acts_.push_back(act);
      const auto scalar = [&](std::int32_t slot) {
        return program_.emit({.op = Op::scalar, .dtype = t, .arg = slot});
      };
      switch (act) {
        case Act::add_tensor:
          r = program_.emit({Op::add, t, r, load_tensor()});
          break;
        case Act::mul_tensor:
          r = program_.emit({Op::mul, t, load_tensor(), r});
          break;
        case Act::sub_from_tensor:
          r = program_.emit({Op::sub, t, load_tensor(), r});
          break;
        case Act::scale:
          r = program_.emit({Op::mul, t, r, scalar(0)});
          break;
        case Act::relu:
          r = program_.emit({Op::maximum, t, r, scalar(1)});
          break;
        case Act::tanh:
          r = program_.emit({Op::tanh, t, r});
          break;
        case Act::gate:
          r = program_.emit({Op::mul, t, r, program_.emit({Op::sigmoid, t, r})});
          break;
        case Act::erf_gate: {
          const std::int32_t erf = program_.emit({Op::erf, t, r});
          r = program_.emit({Op::add, t, program_.emit({Op::mul, t, r, erf}), r});
          break;
        }
        case Act::again:
          r = program_.emit({Op::maximum, t, r, sum});
          break;
        case Act::band:
        case Act::count: {
          bands_.emplace_back(random_() % shape_.size(), random_() % shape_.size());
          const auto position = [&](std::size_t axis) {
            return program_.emit(
                {.op = Op::index, .dtype = i64, .arg = static_cast<std::int32_t>(axis)});
          };
          const std::int32_t one = position(bands_.back().first);
          const std::int32_t other = position(bands_.back().second);
          const std::int32_t below = program_.emit({Op::less_equal, boolean, one, other});
          r = program_.emit({Op::select, t, below, r, scalar(0)});
          break;
        }
      }
    }
    if (r + 1 != static_cast<std::int32_t>(program_.code.size())) {
      program_.emit({Op::neg, t, r});  // found equal to an earlier one: make it the last
      negated_ = true;
    }
  }

  std::int64_t position(std::int64_t element, std::size_t axis) const {
    for (std::size_t d = shape_.size() - 1; d > axis; --d) element /= shape_[d];
    return element % shape_[axis];
  }

  double act(double sum, std::int64_t i) {
    double r = sum;
    std::size_t tensor = 2, band = 0;
    for (const Act act : acts_) {
      switch (act) {
        case Act::add_tensor:
          r += static_cast<double>(views_[tensor++][i]);
          break;
        case Act::mul_tensor:
          r *= static_cast<double>(views_[tensor++][i]);
          break;
        case Act::sub_from_tensor:
          r = static_cast<double>(views_[tensor++][i]) - r;
          break;
        case Act::scale:
          r *= kScale;
          break;
        case Act::relu:
          r = std::max(r, 0.0);
          break;
        case Act::tanh:
          r = std::tanh(r);
          break;
        case Act::gate:
          r /= 1 + std::exp(-r);
          break;
        case Act::erf_gate:
          r += r * std::erf(r);
          break;
        case Act::again:
          r = std::max(r, sum);
          break;
        case Act::band:
        case Act::count:
          r = position(i, bands_[band].first) <= position(i, bands_[band].second) ? r : kScale;
          ++band;
          break;
      }
    }
    return negated_ ? -r : r;
  }

  std::mt19937& random_;
  const Spec spec_;
  Dims shape_;
  std::vector<View<T>> views_;  // a, b, then what the program loads
  map::Program program_;
  std::vector<Act> acts_;
  std::vector<std::pair<std::size_t, std::size_t>> bands_;
  bool negated_ = false;
};

/// What all cases together have met.
struct Seen {
  std::map<plan::Regime, int> regimes;
  std::map<Act, int> acts;
};

/// The current target for as long as this lives.
class Forced {
 public:
  explicit Forced(const kernel::Kernels& table) : before_(kernel::kernels()) {
    kernel::force_target(table);
  }
  ~Forced() { kernel::force_target(before_); }

 private:
  const kernel::Kernels& before_;
};

template <class T>
void check(Case<T>& example, const kernel::Kernels& kernels, Seen& seen) {
  const Forced forced(kernels);
  CAPTURE(kernels.target.name);
  const plan::Plan joined = example.plan(true, kernels), plain = example.plan(false, kernels);
  REQUIRE(plain.steps.size() == 2);
  const auto* before = std::get_if<plan::Contract>(&plain.steps[0]);
  if (before == nullptr) return;  // a product of elements is a map as it is
  REQUIRE(joined.steps.size() == 1);
  const auto& step = std::get<plan::Contract>(joined.steps[0]);
  CHECK(step.regime == before->regime);
  ++seen.regimes[step.regime];
  for (const Act act : example.acts()) ++seen.acts[act];
  example.fill(false);
  const std::vector<T> want = example.run(plain);
  with_threads([&](int) { CHECK(same_bits(example.run(joined), want)); });
  if (example.products() > 3e5) return;
  example.fill(true);
  const double error = worst_error(std::span<const T>(example.run(joined)),
                                   std::span<const double>(example.expected()));
  CHECK(error <= (sizeof(T) == 4 ? 1e-5 : 1e-13));
}

template <class T>
void check_large(const std::string& equation, const std::map<char, std::int64_t>& sizes, Seen& seen,
                 unsigned seed) {
  std::mt19937 random(seed);
  for (const kernel::Kernels* kernels : kernel::supported_kernels()) {
    CAPTURE(equation);
    Case<T> example(equation, sizes, true, random);
    check(example, *kernels, seen);
  }
}

/// A pair of terms and its output over letters of every group, shuffled.
std::string random_equation(std::mt19937& random, std::map<char, std::int64_t>& sizes) {
  std::string a, b, c;
  const auto add = [&](const char* letters, std::size_t most,
                       std::initializer_list<std::string*> to) {
    const std::size_t count = random() % (most + 1);
    for (std::size_t i = 0; i < count; ++i) {
      sizes[letters[i]] = random() % 3 == 0 ? 1 + static_cast<std::int64_t>(random() % 40)
                                            : 1 + static_cast<std::int64_t>(random() % 7);
      for (std::string* term : to) *term += letters[i];
    }
  };
  add("xyz", 2, {&a, &b, &c});
  add("mno", 2, {&a, &c});
  add("pqr", 2, {&b, &c});
  add("kl", 2, {&a, &b});
  for (std::string* term : {&a, &b, &c}) std::shuffle(term->begin(), term->end(), random);
  return a + ',' + b + "->" + c;
}

template <class T>
void check_random_epilogues(unsigned seed, int count, Seen& seen) {
  std::mt19937 random(seed);
  const auto& tables = kernel::supported_kernels();
  for (int i = 0; i < count; ++i) {
    std::map<char, std::int64_t> sizes;
    const std::string equation = random_equation(random, sizes);
    double products = 1;
    for (const auto& [letter, size] : sizes) products *= static_cast<double>(size);
    if (products > 2e6) continue;
    CAPTURE(i);
    CAPTURE(equation);
    Case<T> example(equation, sizes, random() % 2 == 0, random);
    check(example, *tables[static_cast<std::size_t>(i) % tables.size()], seen);
  }
}

}  // namespace

TEST_SUITE("exec") {
  TEST_CASE("random contractions with random epilogues") {
    Seen seen;
    check_random_epilogues<float>(1, 500, seen);
    check_random_epilogues<double>(2, 300, seen);
    for (int act = 0; act < static_cast<int>(Act::count); ++act) {
      CAPTURE(act);
      CHECK(seen.acts[static_cast<Act>(act)] >= 10);
    }
    for (const plan::Regime regime :
         {plan::Regime::matmul, plan::Regime::small_batched, plan::Regime::matvec,
          plan::Regime::dot, plan::Regime::outer}) {
      CAPTURE(plan::name_of(regime));
      CHECK(seen.regimes[regime] >= 10);
    }
  }

  TEST_CASE("epilogues at the ends of blocks") {
    Seen seen;
    unsigned seed = 3;
    // One block of the sum, its last step, one more, several; rows and columns around panels.
    for (const std::int64_t k : {64, 512, 513, 1100}) {
      for (const std::int64_t m : {95, 130}) {
        for (const std::int64_t n : {96, 193}) {
          check_large<float>("mk,kn->mn", {{'m', m}, {'n', n}, {'k', k}}, seen, ++seed);
        }
      }
      check_large<double>("mk,kn->mn", {{'m', 70}, {'n', 101}, {'k', k}}, seen, ++seed);
    }
    // Blocks of columns, of the batch, of labels; a long sum cut into parts.
    check_large<float>("mk,kn->mn", {{'m', 9}, {'n', 3000}, {'k', 80}}, seen, ++seed);
    check_large<float>("xmk,xkn->xmn", {{'x', 20}, {'m', 50}, {'n', 60}, {'k', 40}}, seen, ++seed);
    check_large<float>("xmyk,nkz->mznyx",
                       {{'x', 5}, {'y', 7}, {'m', 30}, {'n', 17}, {'z', 6}, {'k', 40}}, seen,
                       ++seed);
    check_large<float>("mk,kn->mn", {{'m', 40}, {'n', 50}, {'k', 9000}}, seen, ++seed);
    CHECK(seen.regimes[plan::Regime::matmul] >= 20);
  }

  TEST_CASE("epilogues of results that go around the caches") {
    Seen seen;
    unsigned seed = 100;
    const std::int64_t elements = machine().l2_bytes + 40000;  // of f32: four times L2 and more
    check_large<float>("mk,nk->nm", {{'m', 700}, {'n', elements / 700}, {'k', 3}}, seen, ++seed);
    check_large<float>("xmk,xkn->xmn", {{'x', 3}, {'m', 501}, {'n', elements / 1503}, {'k', 5}},
                       seen, ++seed);
    // Products, small matrices in rows or one after another or apart, matrices in lanes.
    check_large<float>("m,n->mn", {{'m', 800}, {'n', elements / 800}}, seen, ++seed);
    check_large<float>("ab,cb->cba", {{'a', 70}, {'b', 90}, {'c', elements / 6300}}, seen, ++seed);
    check_large<float>("xmk,xkn->xmn", {{'x', elements / 72}, {'m', 8}, {'n', 9}, {'k', 4}}, seen,
                       ++seed);
    check_large<float>("xmk,xkn->mxn", {{'x', elements / 72}, {'m', 8}, {'n', 9}, {'k', 4}}, seen,
                       ++seed);
    check_large<float>("xmk,xkn->nxm", {{'x', elements / 72}, {'m', 8}, {'n', 9}, {'k', 4}}, seen,
                       ++seed);
    check_large<float>("mkx,knx->mnx", {{'x', elements / 72}, {'m', 8}, {'n', 9}, {'k', 4}}, seen,
                       ++seed);
    check_large<float>("mkx,nkx->nmx", {{'x', elements / 24}, {'m', 4}, {'n', 6}, {'k', 3}}, seen,
                       ++seed);
    for (const plan::Regime regime :
         {plan::Regime::matmul, plan::Regime::outer, plan::Regime::small_batched}) {
      CAPTURE(plan::name_of(regime));
      CHECK(seen.regimes[regime] >= 2);
    }
  }

  TEST_CASE("epilogues of few rows and of few columns") {
    Seen seen;
    unsigned seed = 300;
    // Dots and weighted sums, in a batch, over several labels, in several parts of the sum.
    check_large<float>("mk,nk->mn", {{'m', 3}, {'n', 131}, {'k', 70}}, seen, ++seed);
    check_large<float>("nk,mk->nm", {{'m', 3}, {'n', 131}, {'k', 70}}, seen, ++seed);
    check_large<double>("xmk,xnk->xmn", {{'x', 3}, {'m', 2}, {'n', 150}, {'k', 65}}, seen, ++seed);
    check_large<float>("mk,nyk->ymn", {{'m', 2}, {'n', 30}, {'y', 5}, {'k', 4100}}, seen, ++seed);
    check_large<float>("mk,kn->mn", {{'m', 3}, {'n', 259}, {'k', 130}}, seen, ++seed);
    check_large<double>("xmk,xkn->xmn", {{'x', 2}, {'m', 4}, {'n', 133}, {'k', 67}}, seen, ++seed);
    // Without vectors, two rows of doubles are too many.
    CHECK(seen.regimes[plan::Regime::skinny] ==
          6 * static_cast<int>(kernel::supported_kernels().size()) - 1);
  }

  TEST_CASE("epilogues of streamed products") {
    Seen seen;
    unsigned seed = 200;
    // Rows packed and rows that are far; whole lines and ragged ones; reads across.
    check_large<float>("mk,kn->mn", {{'m', 600}, {'n', 1000}, {'k', 16}}, seen, ++seed);
    check_large<double>("mk,kn->mn", {{'m', 500}, {'n', 600}, {'k', 5}}, seen, ++seed);
    check_large<float>("mk,kn->mn", {{'m', 20000}, {'n', 32}, {'k', 16}}, seen, ++seed);
    check_large<float>("mk,kn->mn", {{'m', 20000}, {'n', 37}, {'k', 16}}, seen, ++seed);
    check_large<float>("abk,kn->ban", {{'a', 30}, {'b', 20}, {'n', 1003}, {'k', 6}}, seen, ++seed);
    check_large<float>("mk,kyx->mxy", {{'m', 40}, {'x', 60}, {'y', 240}, {'k', 8}}, seen, ++seed);
    check_large<float>("mk,xyk->yxm", {{'m', 33}, {'x', 130}, {'y', 140}, {'k', 8}}, seen, ++seed);
    check_large<double>("mk,kyx->xmy", {{'m', 12}, {'x', 300}, {'y', 90}, {'k', 7}}, seen, ++seed);
    CHECK(seen.regimes[plan::Regime::stream] >= 8);
  }
}
