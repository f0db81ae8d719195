// SPDX-License-Identifier: Apache-2.0
// The checked attention examples of tests/data/attention.json as structs, their operands filled in.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arrays.h"

namespace einkern::test {

/// Sums that stand for a large result.
struct Digest {
  Sizes shape;
  double sum = 0, sum_abs = 0;
  double weighted_sum = 0;  // weight of C-order index i: i mod 97 + 1
  double first = 0, last = 0;
};
Digest digest_of(const Array& array);

/// One example. `inputs` holds every operand that the example describes (q, k, v, bias, ...);
/// operands that it leaves out follow the file's rule: q gen 1, k gen 2, v gen 3.
struct AttentionCase {
  std::string id, variant, stage;
  std::map<std::string, Sizes> shapes;
  std::map<std::string, Array> inputs;

  // Options.
  std::optional<double> scale, softcap;
  std::optional<std::pair<std::int64_t, std::int64_t>> window;
  std::vector<std::int64_t> lengths;
  std::vector<double> slopes;
  bool bottom_right = false;

  // What is expected.
  bool error = false;
  std::optional<Array> value;
  std::map<std::string, Digest> digests;  // one without a name, or named ones
  std::string property;
};

/// All examples of the file, in its order. Throws when the file is missing or not what it should
/// be.
std::vector<AttentionCase> read_attention_cases();

/// gen(shape, s): element i in C order is ((7 i + 13 s) mod 23) / 11 - 1.
Array generated(const Sizes& shape, std::int64_t s);
/// Evenly spaced from `first` to `last`, both included.
Array linspace(const Sizes& shape, double first, double last);
/// The transpose of a matrix.
Array transposed(const Array& matrix);

/// Largest error of a result as the file measures it: values by
/// max(1, |value|), sums by max(1, sum_abs), the weighted sum by 97 max(1, sum_abs).
double error_of(const Array& got, const Array& value);
double error_of(const Array& got, const Digest& digest);
/// The file's suggested tolerance.
inline double case_tolerance(DType dtype) { return dtype == f32 ? 2e-6 : 1e-11; }

}  // namespace einkern::test
