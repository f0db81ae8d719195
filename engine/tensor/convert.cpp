// SPDX-License-Identifier: Apache-2.0
// Copies elements between views of any strides and dtypes.
#include "convert.h"

#include <fmt/format.h>

#include <cstring>

#include "../base/error.h"
#include "nest.h"

namespace einkern {
namespace {

template <class From, class To>
void convert_row(const char* function, std::int64_t count, const From* from, std::int64_t from_step,
                 To* to, std::int64_t to_step) {
  if (from_step == 1 && to_step == 1) {
    if constexpr (std::is_same_v<From, To>) {
      std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(To));
    } else {
      for (std::int64_t i = 0; i < count; ++i) to[i] = convert<To>(load(from + i), function);
    }
  } else {
    for (std::int64_t i = 0; i < count; ++i) {
      to[i * to_step] = convert<To>(load(from + i * from_step), function);
    }
  }
}

}  // namespace

void fail_conversion(const char* function, double value, DType to) {
  fail<ValueError>(fmt::format("{}: {} does not fit {}", function, value, name_of(to)));
}

void fail_conversion(const char* function, std::int64_t value, DType to) {
  fail<ValueError>(fmt::format("{}: {} does not fit {}", function, value, name_of(to)));
}

void convert_elements(const char* function, const Dims& shape, ConstView from, MutableView to) {
  const Nest<2> nest(shape, {&to.strides, &from.strides});
  dispatch(from.dtype, [&]<class From>(std::type_identity<From>) {
    dispatch(to.dtype, [&]<class To>(std::type_identity<To>) {
      const auto* const source = static_cast<const From*>(from.data);
      auto* const target = static_cast<To*>(to.data);
      nest.for_each_row([&](std::int64_t count, const auto& offsets, const auto& steps) {
        convert_row(function, count, source + offsets[1], steps[1], target + offsets[0], steps[0]);
      });
    });
  });
}

}  // namespace einkern
