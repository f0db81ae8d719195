// SPDX-License-Identifier: Apache-2.0
// `einkern compare`: the worst element of two tensors, and whether they are close.
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "commands.h"
#include "exit_code.h"
#include "files.h"
#include "tensor_files.h"
#include "values.h"

namespace einkern::tools {
namespace {

/// Where a float stands among all floats of its kind, in order.
template <class Float, class Integer>
std::int64_t place_of(double value) {
  const auto bits = std::bit_cast<Integer>(static_cast<Float>(value));
  const auto place = static_cast<std::int64_t>(bits);
  return place < 0 ? std::numeric_limits<Integer>::min() - place : place;
}

/// Floats of the dtype between two values, saturating.
std::string ulps_text(double a, double b, DType dtype) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b) ? "0" : "-";
  std::int64_t x = 0, y = 0;
  switch (dtype) {
    case DType::f64:
      x = place_of<double, std::int64_t>(a);
      y = place_of<double, std::int64_t>(b);
      break;
    default:
      x = place_of<float, std::int32_t>(a);
      y = place_of<float, std::int32_t>(b);
      // Sixteen bits are the upper half of the order of f32 (bf16), or lie in it (f16).
      if (dtype == DType::bf16) x >>= 16, y >>= 16;
      if (dtype == DType::f16) x >>= 13, y >>= 13;
  }
  // Unsigned, the difference of any two is right.
  const std::uint64_t distance =
      x > y ? static_cast<std::uint64_t>(x) - static_cast<std::uint64_t>(y)
            : static_cast<std::uint64_t>(y) - static_cast<std::uint64_t>(x);
  return fmt::format("{}", distance);
}

struct Worst {
  std::int64_t at = -1;      // index in C order
  long double excess = -1;   // difference over what is allowed
  std::int64_t outside = 0;  // elements that are not close
};

long double excess_of(double a, double b, double rtol, double atol) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const long double difference = std::abs(static_cast<long double>(a) - b);
  const long double allowed = atol + static_cast<long double>(rtol) * std::abs(b);
  const long double excess = difference / allowed;
  return std::isfinite(static_cast<double>(difference)) && excess == excess
             ? excess
             : std::numeric_limits<long double>::infinity();
}

/// Both as doubles; integers exactly where a double cannot hold them.
Worst worst_of(const Tensor& a, const Tensor& b, double rtol, double atol) {
  Worst worst;
  const auto visit = [&](auto x, auto y, std::int64_t count, auto excess_at) {
    for (std::int64_t i = 0; i < count; ++i) {
      const long double excess = excess_at(x[i], y[i]);
      if (excess > 1) ++worst.outside;
      if (excess > worst.excess) worst = {i, excess, worst.outside};
    }
  };
  if (!is_float(a.dtype()) && !is_float(b.dtype())) {
    const Tensor x = a.astype(i64), y = b.astype(i64);
    visit(x.data<const std::int64_t>(), y.data<const std::int64_t>(), x.size(),
          [&](std::int64_t p, std::int64_t q) -> long double {
            if (p == q) return 0;
            const long double difference = std::abs(static_cast<long double>(p) - q);
            return difference / (atol + rtol * std::abs(static_cast<long double>(q)));
          });
  } else {
    const Tensor x = a.astype(f64), y = b.astype(f64);
    visit(x.data<const double>(), y.data<const double>(), x.size(),
          [&](double p, double q) { return excess_of(p, q, rtol, atol); });
  }
  return worst;
}

std::string index_text(std::int64_t at, const Shape& shape) {
  std::vector<std::int64_t> index(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    index[d] = at % shape[d];
    at /= shape[d];
  }
  return fmt::format("({})", fmt::join(index, ", "));
}

/// One element, with the digits that tell it from its neighbours.
std::string element_text(const Tensor& tensor, std::int64_t at) {
  if (!is_float(tensor.dtype())) {
    return fmt::format("{}", tensor.astype(i64).data<const std::int64_t>()[at]);
  }
  const double value = tensor.astype(f64).data<const double>()[at];
  return tensor.dtype() == f64 ? fmt::format("{}", value)
                               : fmt::format("{}", static_cast<float>(value));
}

}  // namespace

void compare_command(const std::vector<std::string>& arguments) {
  Options options({
      .command = "compare",
      .usage = "A B [OPTIONS]",
      .summary =
          "Compares two tensors, |a - b| <= atol + rtol |b| everywhere and NaN where NaN is, and\n"
          "prints the worst element. Exit code 1 when they are not close.",
      .examples = {"einkern compare O.npy want.npy", "einkern compare a.npz:o b.npz:o --rtol 1e-4",
                   "einkern compare O.npy want.npy --rtol 0 --atol 0"},
  });
  std::optional<std::string> rtol_text, atol_text;
  options.value("--rtol", "R", rtol_text, "relative tolerance (default: 1e-5)");
  options.value("--atol", "A", atol_text, "absolute tolerance (default: 1e-8)");
  const auto positional = options.parse(arguments);
  if (!positional) return;
  if (positional->size() != 2) {
    options.refuse(fmt::format("two tensors are needed, not {}", positional->size()));
  }
  const auto tolerance = [&](const char* option, const std::optional<std::string>& text,
                             double otherwise) {
    const double value = text ? parse_number(option, *text) : otherwise;
    if (value < 0) options.refuse(fmt::format("{}: '{}' is negative", option + 9, *text));
    return value;
  };
  const double rtol = tolerance("compare: --rtol", rtol_text, 1e-5);
  const double atol = tolerance("compare: --atol", atol_text, 1e-8);

  const Tensor a = load_tensor((*positional)[0]), b = load_tensor((*positional)[1]);
  if (a.shape() != b.shape()) {
    throw CheckFailed(fmt::format("compare: shapes {} and {} differ", to_string(a.shape()),
                                  to_string(b.shape())));
  }
  if (a.size() == 0) return print("close: no elements\n");
  const Worst worst = worst_of(a, b, rtol, atol);
  const DType dtype =
      a.dtype() == b.dtype() || size_of(a.dtype()) < size_of(b.dtype()) ? a.dtype() : b.dtype();
  const double x = a.astype(f64).data<const double>()[worst.at];
  const double y = b.astype(f64).data<const double>()[worst.at];
  std::string text =
      fmt::format("worst element {}: {} and {}, difference {:.3g}", index_text(worst.at, a.shape()),
                  element_text(a, worst.at), element_text(b, worst.at), std::abs(x - y));
  if (is_float(a.dtype()) && is_float(b.dtype())) {
    text += fmt::format(", {} ulps of {}", ulps_text(x, y, dtype), name_of(dtype));
  }
  if (worst.outside > 0) {
    throw CheckFailed(
        fmt::format("compare: {} of {} elements differ; {}", worst.outside, a.size(), text));
  }
  print(fmt::format("close: {} elements; {}\n", a.size(), text));
}

}  // namespace einkern::tools
