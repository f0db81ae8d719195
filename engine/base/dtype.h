// SPDX-License-Identifier: Apache-2.0
// Element types: what storage may hold, how they promote, and dispatch from a value to a type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "error.h"
#include "half.h"

namespace einkern {

/// Element type of a tensor. Arithmetic runs in `i64`, `f32` or `f64` (`compute_dtype`); the
/// narrower integers are storage for masks, lengths and indices, the narrower floats for keys,
/// values and weights.
enum class DType : std::uint8_t { boolean, i8, i16, i32, i64, f16, bf16, f32, f64 };

inline constexpr DType boolean = DType::boolean;
inline constexpr DType i8 = DType::i8;
inline constexpr DType i16 = DType::i16;
inline constexpr DType i32 = DType::i32;
inline constexpr DType i64 = DType::i64;
inline constexpr DType f16 = DType::f16;
inline constexpr DType bf16 = DType::bf16;
inline constexpr DType f32 = DType::f32;
inline constexpr DType f64 = DType::f64;

/// Bytes of one element.
constexpr std::size_t size_of(DType dtype) noexcept {
  constexpr std::size_t kSizes[] = {1, 1, 2, 4, 8, 2, 2, 4, 8};
  return kSizes[static_cast<std::size_t>(dtype)];
}

/// `"bool"`, `"i8"`, ..., `"f64"`: the names used in messages and on the command line.
constexpr std::string_view name_of(DType dtype) noexcept {
  constexpr std::string_view kNames[] = {"bool", "i8",   "i16", "i32", "i64",
                                         "f16",  "bf16", "f32", "f64"};
  return kNames[static_cast<std::size_t>(dtype)];
}

constexpr bool is_float(DType dtype) noexcept { return dtype >= DType::f16; }
constexpr bool is_half_float(DType dtype) noexcept {
  return dtype == DType::f16 || dtype == DType::bf16;
}
constexpr bool is_integer(DType dtype) noexcept {
  return dtype >= DType::i8 && dtype <= DType::i64;
}

/// The dtype arithmetic on `dtype` runs in: integers and bool in i64, f16 and bf16 in f32, f32 and
/// f64 in themselves.
constexpr DType compute_dtype(DType dtype) noexcept {
  if (is_half_float(dtype)) return DType::f32;
  return is_float(dtype) ? dtype : DType::i64;
}

/// The common dtype of two tensors: the wider of those that they are computed in (a float beats an
/// integer); two bools stay bool.
constexpr DType promote(DType a, DType b) noexcept {
  if (a == DType::boolean && b == DType::boolean) return DType::boolean;
  return compute_dtype(a) > compute_dtype(b) ? compute_dtype(a) : compute_dtype(b);
}

/// The DType of a C++ element type: `dtype_of<float>` is `f32`.
template <class T>
inline constexpr DType dtype_of = [] {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, bool>)
    return DType::boolean;
  else if constexpr (std::is_same_v<U, Float16>)
    return DType::f16;
  else if constexpr (std::is_same_v<U, BFloat16>)
    return DType::bf16;
  else if constexpr (std::is_same_v<U, float>)
    return DType::f32;
  else if constexpr (std::is_same_v<U, double>)
    return DType::f64;
  else if constexpr (std::is_integral_v<U> && std::is_signed_v<U> && sizeof(U) == 1)
    return DType::i8;
  else if constexpr (std::is_integral_v<U> && std::is_signed_v<U> && sizeof(U) == 2)
    return DType::i16;
  else if constexpr (std::is_integral_v<U> && std::is_signed_v<U> && sizeof(U) == 4)
    return DType::i32;
  else if constexpr (std::is_integral_v<U> && std::is_signed_v<U> && sizeof(U) == 8)
    return DType::i64;
  else
    static_assert(!sizeof(U), "not an element type of einkern");
}();

/// An element type that a tensor can hold.
template <class T>
concept Element = std::is_same_v < std::remove_cv_t<T>,
bool > || std::is_same_v<std::remove_cv_t<T>, float> ||
    std::is_same_v<std::remove_cv_t<T>, double> || is_half<T> ||
    (std::is_integral_v<T> && std::is_signed_v<T> && sizeof(T) <= 8);

/// Calls `f(std::type_identity<T>{})` with the C++ type of `dtype` and returns what it returns.
template <class F>
decltype(auto) dispatch(DType dtype, F&& f) {
  switch (dtype) {
    case DType::boolean:
      return std::forward<F>(f)(std::type_identity<bool>{});
    case DType::i8:
      return std::forward<F>(f)(std::type_identity<std::int8_t>{});
    case DType::i16:
      return std::forward<F>(f)(std::type_identity<std::int16_t>{});
    case DType::i32:
      return std::forward<F>(f)(std::type_identity<std::int32_t>{});
    case DType::i64:
      return std::forward<F>(f)(std::type_identity<std::int64_t>{});
    case DType::f16:
      return std::forward<F>(f)(std::type_identity<Float16>{});
    case DType::bf16:
      return std::forward<F>(f)(std::type_identity<BFloat16>{});
    case DType::f32:
      return std::forward<F>(f)(std::type_identity<float>{});
    case DType::f64:
      break;
  }
  return std::forward<F>(f)(std::type_identity<double>{});
}

}  // namespace einkern
