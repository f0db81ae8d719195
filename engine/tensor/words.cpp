// SPDX-License-Identifier: Apache-2.0
// Shortest decimal digits, rounded and padded as NumPy does.
#include "words.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace einkern {
namespace {

constexpr int kPrecision = 8;

// A finite number in three parts: "-1", "25" and "+07" for -1.25e+07; no exponent when positional.
struct Parts {
  std::string whole;
  std::string fraction;
  std::string exponent;
};

template <class T>
std::string digits_of(T value, std::chars_format format, int precision) {
  char buffer[512];  // the widest: 309 digits of 1e308 and its fraction
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, widen(value), format, precision).ptr;
  return {buffer, end};
}

// The fewest digits that read back as the same value of the type, the nearest to it of those.
template <class T>
std::string shortest_digits(T value) {
  if constexpr (is_half<T>) {
    for (int precision = 0;; ++precision) {
      std::string digits = digits_of(value, std::chars_format::scientific, precision);
      double back = 0;
      std::from_chars(digits.data(), digits.data() + digits.size(), back);
      if (T(back) == value) return digits;
    }
  } else {
    char buffer[64];
    const auto end =
        std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
    return {buffer, end};
  }
}

// Splits "-1.250e+07"; trailing zeros of the fraction go.
Parts parts_of(const std::string& digits) {
  const std::size_t e = std::min(digits.find('e'), digits.size());
  const std::size_t point = std::min(digits.find('.'), e);
  Parts parts{digits.substr(0, point), {}, {}};
  if (point < e) parts.fraction = digits.substr(point + 1, e - point - 1);
  if (e < digits.size()) parts.exponent = digits.substr(e + 1);
  parts.fraction.resize(parts.fraction.find_last_not_of('0') + 1);
  return parts;
}

// Shortest digits; the exact value rounded to `precision` digits after the point when they are
// more.
template <class T>
Parts scientific(T value, int precision) {
  Parts parts = parts_of(shortest_digits(value));
  if (static_cast<int>(parts.fraction.size()) > precision) {
    parts = parts_of(digits_of(value, std::chars_format::scientific, precision));
  }
  return parts;
}

template <class T>
Parts positional(T value, int precision) {
  // The fixed form of to_chars shows all digits of a large float, not the shortest ones followed by
  // zeros: move the point of the scientific form instead.
  const Parts shortest = parts_of(shortest_digits(value));
  const int exponent = std::stoi(shortest.exponent);
  const int fraction_digits = static_cast<int>(shortest.fraction.size()) - exponent;
  if (fraction_digits > precision) {
    return parts_of(digits_of(value, std::chars_format::fixed, precision));
  }
  const bool negative = shortest.whole.front() == '-';
  std::string digits = shortest.whole.substr(negative ? 1 : 0) + shortest.fraction;
  if (exponent < 0) digits.insert(0, static_cast<std::size_t>(-exponent), '0');
  if (fraction_digits < 0) digits.append(static_cast<std::size_t>(-fraction_digits), '0');
  const std::size_t whole = static_cast<std::size_t>(std::max(exponent, 0)) + 1;
  return {
      fmt::format("{}{}", negative ? "-" : "", digits.substr(0, whole)), digits.substr(whole), {}};
}

template <class T>
std::string word_of_special(T value) {
  return std::isnan(widen(value)) ? "nan" : widen(value) < 0 ? "-inf" : "inf";
}

template <class T>
bool is_finite(T value) {
  return std::isfinite(widen(value));
}

// Magnitudes from here up are printed with an exponent: where a type guarantees few digits, 10 to
// their number.
template <class T>
constexpr double largest_positional(double otherwise) {
  if (std::is_same_v<T, float>) return 1e6;
  if (std::is_same_v<T, Float16>) return 1e3;
  if (std::is_same_v<T, BFloat16>) return 1e2;
  return otherwise;
}
template <class T>
constexpr double kLargestPositional = largest_positional<T>(1e8);
template <class T>
constexpr double kLargestPositionalScalar = largest_positional<T>(1e16);

template <class T>
bool needs_exponent(std::span<const T> values) {
  using Number = Widened<T>;
  const auto rounded = [](auto x) { return widen(static_cast<T>(x)); };
  Number largest = 0, smallest = std::numeric_limits<Number>::infinity();
  for (const T value : values) {
    const Number magnitude = std::abs(widen(value));
    if (!is_finite(value) || magnitude == 0) continue;
    largest = std::max(largest, magnitude);
    smallest = std::min(smallest, magnitude);
  }
  if (largest == 0) return false;
  return largest >= rounded(kLargestPositional<T>) || smallest < rounded(1e-4) ||
         rounded(largest / smallest) > rounded(1000);
}

template <class T>
std::vector<std::string> aligned_floats(std::span<const T> values) {
  const bool exponent = needs_exponent(values);
  std::vector<Parts> parts(values.size());
  std::size_t whole = 0, fraction = 0, exponent_digits = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!is_finite(values[i])) continue;
    parts[i] = exponent ? scientific(values[i], kPrecision) : positional(values[i], kPrecision);
    whole = std::max(whole, parts[i].whole.size());
    fraction = std::max(fraction, parts[i].fraction.size());
    if (exponent) exponent_digits = std::max(exponent_digits, parts[i].exponent.size() - 1);
  }
  for (std::size_t i = 0; exponent && i < values.size(); ++i) {
    // Shorter fractions are not padded with zeros but continued with the digits of the exact value.
    if (!is_finite(values[i]) || parts[i].fraction.size() == fraction) continue;
    const std::string digits =
        digits_of(values[i], std::chars_format::scientific, static_cast<int>(fraction));
    parts[i].whole = digits.substr(0, digits.find('.'));
    parts[i].fraction = digits.substr(parts[i].whole.size() + 1, fraction);
  }
  std::size_t tail = 1 + fraction + (exponent ? 2 + exponent_digits : 0);
  std::size_t width = whole + tail;
  for (const T value : values) {
    if (!is_finite(value)) width = std::max(width, word_of_special(value).size());
  }
  std::vector<std::string> words;
  words.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Parts& p = parts[i];
    if (!is_finite(values[i])) {
      words.push_back(fmt::format("{:>{}}", word_of_special(values[i]), width));
    } else if (exponent) {
      words.push_back(fmt::format("{:>{}}.{:0<{}}e{}{:0>{}}", p.whole, width - tail, p.fraction,
                                  fraction, p.exponent.front(), p.exponent.substr(1),
                                  exponent_digits));
    } else {
      words.push_back(fmt::format("{:>{}}.{:<{}}", p.whole, width - tail, p.fraction, fraction));
    }
  }
  return words;
}

}  // namespace

template <Element T>
std::string scalar_word(T value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "True" : "False";
  } else if constexpr (std::is_integral_v<T>) {
    return std::to_string(value);
  } else {
    if (!is_finite(value)) return word_of_special(value);
    const double magnitude = std::abs(static_cast<double>(widen(value)));
    constexpr int kAll = std::numeric_limits<int>::max();
    if (magnitude == 0 || (magnitude >= 1e-4 && magnitude < kLargestPositionalScalar<T>)) {
      const Parts parts = positional(value, kAll);
      return fmt::format("{}.{:0<1}", parts.whole, parts.fraction);
    }
    const Parts parts = scientific(value, kAll);
    return parts.whole + (parts.fraction.empty() ? "" : ".") + parts.fraction + "e" +
           parts.exponent;
  }
}

template <Element T>
std::vector<std::string> aligned_words(std::span<const T> values) {
  if constexpr (is_float(dtype_of<T>)) {
    return aligned_floats(values);
  } else {
    std::vector<std::string> words;
    // A column of booleans is as wide as "False" even when all are true.
    std::size_t width = std::is_same_v<T, bool> ? 5 : 0;
    for (const T value : values) {
      words.push_back(scalar_word(value));
      width = std::max(width, words.back().size());
    }
    for (std::string& word : words) word.insert(0, width - word.size(), ' ');
    return words;
  }
}

template std::string scalar_word(bool);
template std::string scalar_word(std::int8_t);
template std::string scalar_word(std::int16_t);
template std::string scalar_word(std::int32_t);
template std::string scalar_word(std::int64_t);
template std::string scalar_word(Float16);
template std::string scalar_word(BFloat16);
template std::string scalar_word(float);
template std::string scalar_word(double);

template std::vector<std::string> aligned_words(std::span<const bool>);
template std::vector<std::string> aligned_words(std::span<const std::int8_t>);
template std::vector<std::string> aligned_words(std::span<const std::int16_t>);
template std::vector<std::string> aligned_words(std::span<const std::int32_t>);
template std::vector<std::string> aligned_words(std::span<const std::int64_t>);
template std::vector<std::string> aligned_words(std::span<const Float16>);
template std::vector<std::string> aligned_words(std::span<const BFloat16>);
template std::vector<std::string> aligned_words(std::span<const float>);
template std::vector<std::string> aligned_words(std::span<const double>);

}  // namespace einkern
