// SPDX-License-Identifier: Apache-2.0
// The fused pair of contractions against plain loops in double, on every SIMD target.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "../../support/extremes.h"
#include "../../support/sanitizer.h"
#include "attend_case.h"
#include "threads.h"

using namespace einkern;
using namespace einkern::test;

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

template <class T>
constexpr double kTolerance = sizeof(T) == 4 ? 5e-7 : 1e-12;

/// Runs on every target and compares with the rows that are right.
template <class T>
void check(AttendCase<T>& attend, const std::vector<typename AttendCase<T>::Row>& rows,
           double tolerance = kTolerance<T>) {
  for (const kernel::Kernels* kernels : kernel::supported_kernels()) {
    CAPTURE(kernels->target.name);
    attend.clear(3);
    if (attend.step.logsumexp.value >= 0) {
      attend.clear(static_cast<std::size_t>(attend.step.logsumexp.value));
    }
    attend.run(*kernels);
    const auto errors = attend.worst(rows);
    CHECK(errors.out <= tolerance);
    CHECK(errors.logsumexp <= 2 * tolerance);
  }
}
template <class T>
void check(AttendCase<T>& attend) {
  check(attend, attend.rows());
}

template <class T>
using Axes = std::vector<typename AttendCase<T>::Axis>;

/// Self-attention of batch x rows x keys.
template <class T>
AttendCase<T> simple(std::int64_t batch, std::int64_t rows, std::int64_t keys, std::int64_t inner,
                     std::int64_t columns, unsigned seed = 1) {
  const Axes<T> axes = {{Role::batch, batch}, {Role::row, rows}, {Role::streamed, keys}};
  return AttendCase<T>(axes, {inner}, {columns}, {}, seed);
}

/// Appends `dot * factor`.
std::int32_t scaled(Writer& write, double factor) {
  return write.emit(Op::mul, write.real, write.dot(), write.number(factor));
}

/// Appends the condition index(row) + offset >= index(key).
std::int32_t causal(Writer& write, std::size_t row, std::size_t key, std::int64_t offset = 0) {
  const auto q = write.emit(Op::add, DType::i64, write.index(row), write.integer(offset));
  return write.emit(Op::less_equal, DType::boolean, write.index(key), q);
}

template <class T>
void check_sizes() {
  for (const std::int64_t rows : {1, 5, 16, 33, 64, 100}) {
    for (const std::int64_t keys : {1, 7, 48, 191, 192, 193, 400}) {
      for (const std::pair<int, int>& widths : {std::pair{1, 1}, {8, 5}, {33, 17}, {64, 64}}) {
        const int inner = widths.first, columns = widths.second;
        AttendCase<T> attend = simple<T>(2, rows, keys, inner, columns);
        attend.add_logsumexp();
        Writer write = attend.writer();
        scaled(write, 1 / std::sqrt(static_cast<double>(inner)));
        attend.step.scores = write.program;
        CAPTURE(rows);
        CAPTURE(keys);
        CAPTURE(inner);
        check(attend);
      }
    }
  }
}

template <class T>
void check_empty() {
  AttendCase<T> keyless = simple<T>(2, 5, 0, 8, 6);
  keyless.add_logsumexp();
  check(keyless);
  keyless.add_sink({Role::batch});
  check(keyless);
  AttendCase<T> innerless = simple<T>(2, 5, 9, 0, 6);
  check(innerless);
  AttendCase<T> columnless = simple<T>(2, 5, 9, 8, 0);
  columnless.add_logsumexp();
  check(columnless);
  AttendCase<T> rowless = simple<T>(2, 0, 9, 8, 4);
  check(rowless);
  AttendCase<T> batchless = simple<T>(0, 3, 9, 8, 4);
  check(batchless);
}

/// One of the score functions that attention uses.
template <class T>
void write_scores(AttendCase<T>& attend, int kind) {
  std::vector<std::size_t> rows, keys;
  for (std::size_t a = 0; a < attend.step.axes.size(); ++a) {
    if (attend.step.axes[a].role == Role::row) rows.push_back(a);
    if (attend.step.axes[a].role == Role::streamed) keys.push_back(a);
  }
  const std::size_t row = rows.empty() ? 0 : rows.back();
  const std::size_t key = keys.empty() ? 0 : keys.back();
  constexpr DType real = dtype_of<T>;
  Writer write = attend.writer();
  double inner = 1;
  for (const plan::Loop& loop : attend.step.inner) inner *= static_cast<double>(loop.size);
  std::int32_t s = scaled(write, 1 / std::sqrt(inner));
  switch (kind) {
    case 0:
      break;
    case 1:  // causal
      s = write.hide_unless(causal(write, row, key), s);
      break;
    case 2: {  // a window around the diagonal
      const auto left = causal(write, row, key, 3);
      const auto right =
          write.emit(Op::less_equal, DType::boolean, write.index(row),
                     write.emit(Op::add, DType::i64, write.index(key), write.integer(40)));
      s = write.hide_unless(write.emit(Op::logical_and, DType::boolean, left, right), s);
      break;
    }
    case 3: {  // soft cap
      s = write.emit(Op::mul, real,
                     write.emit(Op::tanh, real, write.emit(Op::div, real, s, write.number(2))),
                     write.number(2));
      s = write.hide_unless(causal(write, row, key, 5), s);
      break;
    }
    case 4: {  // a slope for every batch position times the distance
      attend.fill_uniform(attend.add_input({Role::batch}, real), 0, 0.1);
      const auto distance = write.emit(Op::sub, DType::i64, write.index(key), write.index(row));
      const auto slope = write.load(static_cast<std::int32_t>(attend.step.inputs.size()) - 1, real);
      s = write.emit(Op::add, real, s,
                     write.emit(Op::mul, real, slope, write.emit(Op::cast, real, distance)));
      s = write.hide_unless(causal(write, row, key), s);
      break;
    }
    case 5: {  // a dense bias
      attend.fill_uniform(attend.add_input({Role::row, Role::streamed}, real), -1, 1);
      s = write.emit(Op::add, real, s, write.load(0, real));
      break;
    }
    case 6: {  // a dense mask over everything
      const std::size_t mask =
          attend.add_input({Role::batch, Role::row, Role::streamed}, DType::boolean);
      attend.template each<bool>(mask, [&](bool& x) { x = attend.random() % 3 == 0; });
      s = write.hide_unless(write.load(0, DType::boolean), s);
      break;
    }
    case 7: {  // lengths by batch position
      const std::size_t lengths = attend.add_input({Role::batch}, DType::i64);
      const std::int64_t most = attend.step.axes[key].size;
      attend.template each<std::int64_t>(lengths, [&](std::int64_t& x) {
        x = static_cast<std::int64_t>(attend.random()) % (most + 1);
      });
      s = write.hide_unless(
          write.emit(Op::less, DType::boolean, write.index(key), write.load(0, DType::i64)), s);
      break;
    }
    default: {  // segments
      const std::size_t mine = attend.add_input({Role::row}, DType::i64);
      const std::size_t theirs = attend.add_input({Role::streamed}, DType::i64);
      for (const std::size_t ids : {mine, theirs}) {
        std::int64_t i = 0;
        attend.template each<std::int64_t>(ids, [&](std::int64_t& x) { x = i++ / 50; });
      }
      s = write.hide_unless(write.emit(Op::equal, DType::boolean, write.load(0, DType::i64),
                                       write.load(1, DType::i64)),
                            s);
    }
  }
  attend.step.scores = write.program;
}
constexpr int kScoreKinds = 9;

template <class T>
void check_scores() {
  for (int kind = 0; kind < kScoreKinds; ++kind) {
    CAPTURE(kind);
    for (const std::pair<int, int>& sizes : {std::pair{70, 300}, {130, 130}, {3, 2000}}) {
      const int rows = sizes.first, keys = sizes.second;
      CAPTURE(keys);
      AttendCase<T> attend = simple<T>(3, rows, keys, 16, 20);
      attend.add_logsumexp();
      write_scores(attend, kind);
      check(attend);
      attend.add_sink({Role::batch});
      check(attend);
    }
  }
}

template <class T>
void check_random_attends() {
  std::mt19937 random(7);
  const auto sizes = [&](std::size_t most_axes, std::initializer_list<std::int64_t> choices) {
    std::vector<std::int64_t> result(random() % (most_axes + 1));
    for (std::int64_t& size : result) size = choices.begin()[random() % choices.size()];
    return result;
  };
  int hits[kScoreKinds] = {};
  for (unsigned round = 0; round < static_cast<unsigned>(fewer_if_sanitized(150)); ++round) {
    CAPTURE(round);
    Axes<T> axes;
    for (const std::int64_t size : sizes(2, {1, 2, 3})) {
      const bool in_k = random() % 4 != 0;
      axes.push_back({Role::batch, size, random() % 4 != 0, in_k, !in_k || random() % 4 != 0});
    }
    for (const std::int64_t size : sizes(3, {1, 2, 7, 20})) axes.push_back({Role::row, size});
    std::vector<std::int64_t> keys = sizes(2, {1, 2, 13, 30});
    if (random() % 10 != 0) keys.push_back(5);
    for (const std::int64_t size : keys) axes.push_back({Role::streamed, size});
    std::shuffle(axes.begin(), axes.end(), random);
    const AttendLook look{
        .shuffle = random() % 2 == 0, .reverse = random() % 2 == 0, .pad = random() % 2 == 0};
    AttendCase<T> attend(axes, sizes(2, {1, 3, 8}), sizes(2, {1, 3, 8}), look, round);
    const bool indexed = std::any_of(axes.begin(), axes.end(),
                                     [](const auto& axis) { return axis.role == Role::row; }) &&
                         !keys.empty();
    const int kind = indexed ? static_cast<int>(round % kScoreKinds) : 0;
    ++hits[kind];
    write_scores(attend, kind);
    if (random() % 2 == 0) attend.add_logsumexp();
    if (random() % 3 == 0) attend.add_sink({Role::row});
    check(attend);
  }
  for (const int hit : hits) CHECK(hit > 0);
}

template <class T>
void check_special() {
  for (const std::int64_t keys : {5, 200, 1100}) {
    for (const std::int64_t rows : {3, 70}) {
      CAPTURE(keys);
      CAPTURE(rows);
      // A bias of -inf everywhere in row 1, NaN in row 2, inf in row 0.
      AttendCase<T> attend = simple<T>(1, rows, keys, 8, 8);
      attend.add_logsumexp();
      const std::size_t bias = attend.add_input({Role::row, Role::streamed}, dtype_of<T>);
      Writer write = attend.writer();
      write.emit(Op::add, dtype_of<T>, write.dot(), write.load(0, dtype_of<T>));
      attend.step.scores = write.program;
      attend.fill_uniform(bias, -1, 1);
      T* const x = attend.tensors[bias].template data<T>();
      std::fill_n(x + keys, keys, static_cast<T>(-kInfinity));
      x[2 * keys + keys / 2] = static_cast<T>(kNaN);
      x[keys - 1] = static_cast<T>(kInfinity);
      check(attend);
      // Lowest everywhere: the mean of the values, whatever the dot products.
      std::fill_n(x, rows * keys, std::numeric_limits<T>::lowest());
      attend.run(kernel::kernels());
      const double mean = [&] {
        double sum = 0;
        for (std::int64_t j = 0; j < keys; ++j) {
          sum += static_cast<double>(attend.tensors[2].template data<T>()[j * 8]);
        }
        return sum / static_cast<double>(keys);
      }();
      for (std::int64_t r = 0; r < rows; ++r) {
        CHECK(std::abs(static_cast<double>(attend.tensors[3].template data<T>()[r * 8]) - mean) <=
              kTolerance<T>);
      }
    }
  }
}

/// Hidden keys whose keys and values hold NaN and infinity.
template <class T>
void check_hidden() {
  for (const std::int64_t rows : {3, 70}) {
    for (const bool far : {false, true}) {
      AttendCase<T> attend = simple<T>(2, rows, far ? 1500 : 90, 8, 8);
      attend.add_logsumexp();
      const std::size_t mask =
          attend.add_input({Role::batch, Role::row, Role::streamed}, DType::boolean);
      attend.template each<bool>(mask, [&](bool& x) { x = attend.random() % 2 == 0; });
      const std::int64_t keys = attend.step.axes[2].size;
      bool* const seen = attend.tensors[mask].template data<bool>();
      const std::int64_t bad = keys / 2, worse = keys - 3;
      for (std::int64_t r = 0; r < rows; ++r) {
        seen[r * keys + bad] = false;
        seen[r * keys + worse] = false;
      }
      Writer write = attend.writer();
      write.hide_unless(write.load(0, DType::boolean), scaled(write, 0.5));
      attend.step.scores = write.program;
      Writer visible = attend.writer();
      visible.load(0, DType::boolean);
      attend.step.visible = visible.program;
      attend.tensors[1].template data<T>()[bad * 8 + 1] = static_cast<T>(kNaN);
      attend.tensors[1].template data<T>()[worse * 8 + 1] = static_cast<T>(kInfinity);
      attend.tensors[2].template data<T>()[bad * 8 + 2] = static_cast<T>(kInfinity);
      attend.tensors[2].template data<T>()[worse * 8 + 3] = static_cast<T>(kNaN);
      check(attend);
      // Without a program of visible keys, a weight of 0 times NaN is NaN.
      attend.step.visible = {};
      attend.run(kernel::kernels());
      CHECK(std::isnan(attend.tensors[3].template data<T>()[3]));
    }
  }
}

/// The plain route in T: scores, then softmax with a maximum, then the second product.
template <class T>
double plain_error(AttendCase<T>& attend, const std::vector<typename AttendCase<T>::Row>& rows,
                   std::int64_t keys, std::int64_t inner) {
  double worst = 0, size = 0;
  const T* const q = attend.tensors[0].template data<T>();
  const T* const k = attend.tensors[1].template data<T>();
  const T* const v = attend.tensors[2].template data<T>();
  attend.template each<T>(2,
                          [&](T& x) { size = std::max(size, std::abs(static_cast<double>(x))); });
  for (const auto& want : rows) {
    const T* const query = q + want.out_at;  // q and out are laid out alike
    std::vector<T> weights;
    T most = -std::numeric_limits<T>::infinity();
    for (std::int64_t j = 0; j < keys; ++j) {
      T dot = 0;
      for (std::int64_t i = 0; i < inner; ++i) dot = std::fma(query[i], k[j * inner + i], dot);
      weights.push_back(dot);
      most = std::max(most, dot);
    }
    T sum = 0;
    for (T& weight : weights) sum += weight = std::exp(weight - most);
    for (std::int64_t c = 0; c < inner; ++c) {
      T result = 0;
      for (std::int64_t j = 0; j < keys; ++j) {
        result = std::fma(weights[static_cast<std::size_t>(j)] / sum, v[j * inner + c], result);
      }
      worst = std::max(
          worst, std::abs(static_cast<double>(result) - want.out[static_cast<std::size_t>(c)]));
    }
  }
  return worst / size;
}

/// The largest error of several tensors: a single one may meet good luck on either route.
void check_large(double deviation) {
  constexpr std::int64_t kKeys = 1024, kInner = 64;
  CAPTURE(deviation);
  std::vector<AttendCase<float>> cases;
  std::vector<std::vector<AttendCase<float>::Row>> rows;
  double plain = 0;
  // Fewer seeds would let a lucky plain route set too hard a bound; under the sanitizers fewer
  // rows.
  const std::int64_t rows_each = fewer_if_sanitized(64);
  for (unsigned seed = 1; seed <= 6; ++seed) {
    cases.push_back(simple<float>(1, rows_each, kKeys, kInner, kInner, seed));
    cases.back().fill_normal(0, deviation / std::sqrt(static_cast<double>(kInner)));
    cases.back().fill_normal(1, 1);
    rows.push_back(cases.back().rows());
    plain = std::max(plain, plain_error(cases.back(), rows.back(), kKeys, kInner));
  }
  for (std::size_t i = 0; i < cases.size(); ++i) check(cases[i], rows[i], 1.5 * plain);
}

/// Bits for any number of threads.
template <class T>
void check_threads() {
  for (int kind = 0; kind < kScoreKinds; ++kind) {
    for (const std::int64_t rows : {2, 200}) {
      AttendCase<T> attend = simple<T>(3, rows, 2500, 16, 24);
      attend.add_logsumexp();
      write_scores(attend, kind);
      std::vector<std::vector<std::byte>> outs;
      with_threads([&](int) {
        attend.run(kernel::kernels());
        outs.push_back(attend.tensors[3].bytes);
        outs.back().insert(outs.back().end(), attend.tensors[4].bytes.begin(),
                           attend.tensors[4].bytes.end());
      });
      CHECK(outs[0] == outs[1]);
      CHECK(outs[0] == outs[2]);
    }
  }
}

}  // namespace

TEST_SUITE("exec") {
  TEST_CASE("attend: sizes") {
    check_sizes<float>();
    check_sizes<double>();
  }
  TEST_CASE("attend: empty axes") {
    check_empty<float>();
    check_empty<double>();
  }
  TEST_CASE("attend: score programs") {
    check_scores<float>();
    check_scores<double>();
  }
  TEST_CASE("attend: random axes and layouts") {
    check_random_attends<float>();
    check_random_attends<double>();
  }
  TEST_CASE("attend: -inf, NaN, inf and lowest") {
    check_special<float>();
    check_special<double>();
  }
  TEST_CASE("attend: hidden keys hold anything") {
    check_hidden<float>();
    check_hidden<double>();
  }
  TEST_CASE("attend: large scores") {
    for (const double deviation : {3.0, 17.0, 58.0}) check_large(deviation);
  }
  TEST_CASE("attend: same bits for any number of threads") {
    check_threads<float>();
    check_threads<double>();
  }
}
