// SPDX-License-Identifier: Apache-2.0
// Checks element types, their names, sizes and promotion, and axis labels.
#include <doctest/doctest.h>

#include <string>
#include <type_traits>

#include "../../../engine/base/dtype.h"
#include "../../../engine/base/labels.h"

using namespace einkern;

static_assert(dtype_of<long> == i64 && dtype_of<long long> == i64 && dtype_of<const float> == f32);
static_assert(Element<bool> && Element<const double> && Element<std::int8_t>);
static_assert(!Element<unsigned> && !Element<float*> && !Element<long double>);

TEST_SUITE("base") {
  TEST_CASE("dispatch hands over the type whose dtype was asked for") {
    for (const DType dtype : {boolean, i8, i16, i32, i64, f16, bf16, f32, f64}) {
      dispatch(dtype, [&]<class T>(std::type_identity<T>) {
        CHECK(dtype_of<T> == dtype);
        CHECK(sizeof(T) == size_of(dtype));
        CHECK(std::is_floating_point_v<Widened<T>> == is_float(dtype));
        CHECK(is_half<T> == is_half_float(dtype));
      });
    }
    CHECK(name_of(boolean) == "bool");
    CHECK(name_of(i16) == "i16");
    CHECK(name_of(f64) == "f64");
    CHECK(name_of(f16) == "f16");
    CHECK(name_of(bf16) == "bf16");
    CHECK_FALSE(is_integer(boolean));
    CHECK(is_integer(i8));
    CHECK(compute_dtype(boolean) == i64);
    CHECK(compute_dtype(f32) == f32);
    CHECK(compute_dtype(f16) == f32);
    CHECK(compute_dtype(bf16) == f32);
  }

  TEST_CASE("promotion is symmetric and follows the table") {
    CHECK(promote(boolean, boolean) == boolean);
    CHECK(promote(boolean, i8) == i64);
    CHECK(promote(i8, i8) == i64);
    CHECK(promote(i64, f32) == f32);
    CHECK(promote(f32, f64) == f64);
    CHECK(promote(f16, f16) == f32);
    CHECK(promote(f16, bf16) == f32);
    CHECK(promote(bf16, f32) == f32);
    CHECK(promote(f16, f64) == f64);
    CHECK(promote(i64, bf16) == f32);
    for (const DType a : {boolean, i8, i16, i32, i64, f16, bf16, f32, f64}) {
      for (const DType b : {boolean, i8, i16, i32, i64, f16, bf16, f32, f64}) {
        CHECK(promote(a, b) == promote(b, a));
      }
    }
  }

  TEST_CASE("labels name some axes, or none") {
    const Labels none, blanks({"", ""}), some({"b", "", "q"});
    CHECK(none.empty());
    CHECK(blanks.empty());
    CHECK_FALSE(some.empty());
    CHECK(some[0] == "b");
    CHECK(some[1] == "");
    CHECK(some[9] == "");
    CHECK(none[0] == "");
    CHECK(some.to_vector(4) == std::vector<std::string>{"b", "", "q", ""});
    CHECK(none.to_vector(1) == std::vector<std::string>{""});
  }
}
