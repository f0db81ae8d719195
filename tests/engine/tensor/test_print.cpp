// SPDX-License-Identifier: Apache-2.0
// Checks printing against texts made by NumPy (tests/data/print/make.py).
#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "../../../engine/tensor/create.h"

using namespace einkern;

namespace {

DType dtype_named(const std::string& name) {
  for (const DType dtype : {boolean, i8, i16, i32, i64, f16, f32, f64}) {
    if (name_of(dtype) == name) return dtype;
  }
  FAIL("no dtype ", name);
  return f32;
}

// Reads a number as its own dtype would: an f32 is rounded once, from its text.
template <class T>
T parse(const std::string& text) {
  if constexpr (is_half<T>)
    return T(std::strtod(text.c_str(), nullptr));
  else if constexpr (std::is_same_v<T, float>)
    return std::strtof(text.c_str(), nullptr);
  else if constexpr (std::is_same_v<T, double>)
    return std::strtod(text.c_str(), nullptr);
  else
    return static_cast<T>(std::strtoll(text.c_str(), nullptr, 10));
}

Tensor tensor_of(const nlohmann::json& entry) {
  const DType dtype = dtype_named(entry.at("dtype"));
  Tensor result = empty(Shape(entry.at("shape").get<std::vector<std::int64_t>>()), dtype);
  dispatch(dtype, [&]<class T>(std::type_identity<T>) {
    T* const out = result.data<T>();
    for (std::int64_t i = 0; i < result.size(); ++i) {
      if (entry.contains("values")) {
        out[i] = parse<T>(entry["values"].at(static_cast<std::size_t>(i)).get<std::string>());
      } else {
        out[i] = static_cast<T>(entry.at("start").get<double>() +
                                entry.at("step").get<double>() * static_cast<double>(i));
      }
    }
  });
  return result;
}

}  // namespace

TEST_SUITE("tensor") {
  TEST_CASE("tensors print as NumPy prints them") {
    std::ifstream file(EINKERN_TEST_DATA "/print/arrays.json");
    const nlohmann::json arrays = nlohmann::json::parse(file);
    CHECK(arrays.size() >= 100);
    for (const nlohmann::json& entry : arrays) {
      const Tensor t = tensor_of(entry);
      const std::string text = entry.at("text");
      CHECK(to_string(t) == text);
      std::ostringstream out;
      out << t;
      CHECK(out.str() == text);
    }
  }

  TEST_CASE("bf16 prints like the floats of NumPy, with the digits that it has") {
    CHECK(to_string(tensor<float>({0.1F}).astype(bf16)(0)) == "0.1");
    CHECK(to_string(tensor<float>({1.0F / 3}).astype(bf16)(0)) == "0.334");
    CHECK(to_string(tensor<float>({3e38F}).astype(bf16)(0)) == "3e+38");
    CHECK(to_string(tensor<float>({1, -2.5, 0.3}).astype(bf16)) == "[ 1.  -2.5  0.3]");
    CHECK(to_string(tensor<float>({100, NAN}).astype(bf16)) == "[1.e+02    nan]");
  }

  TEST_CASE("views print their own elements") {
    const Tensor t = arange(6, f32).split(0, {}, {2, 3});
    CHECK(to_string(t.permute({1, 0})) == "[[0. 3.]\n [1. 4.]\n [2. 5.]]");
    CHECK(to_string(t.slice(1, {}, {}, -2)) == "[[2. 0.]\n [5. 3.]]");
    CHECK(to_string(t(1, 1)) == "4.0");
    CHECK(to_string(t.slice(0, 0, 0)) == "[]");
  }

  TEST_CASE("only the shown elements of a huge view are read") {
    const Tensor t = tensor<float>({1.5}).broadcast({1 << 20, 1 << 20, 1 << 10});
    CHECK(to_string(t(0, 0)) == "[1.5 1.5 1.5 ... 1.5 1.5 1.5]");
    CHECK(to_string(t).size() < 2000);
  }
}
