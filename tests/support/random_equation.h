// SPDX-License-Identifier: Apache-2.0
// Random einsum equations over random strided memory, counting what they have covered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "../../engine/base/dtype.h"
#include "../../engine/spec/spec.h"
#include "oracle.h"

namespace einkern::test {

/// Memory of its own with a strided view into it.
struct RandomTensor {
  std::vector<std::byte> memory;
  std::int64_t offset = 0;  // of element (0, ..., 0), in elements
  DType dtype = DType::f64;
  std::vector<std::int64_t> shape, strides;

  void* data() { return memory.data() + offset * static_cast<std::int64_t>(size_of(dtype)); }
  const void* data() const { return const_cast<RandomTensor*>(this)->data(); }
  RawView view() const { return {data(), dtype, shape, strides}; }
  Layout layout() const { return {Shape(shape), Strides(strides), 0}; }
};

/// An equation, its meaning, operands of small integers (sums of products of them are exact in
/// f64), and an output of the promoted dtype filled with 77.
struct RandomEquation {
  std::string text;  // letters, ellipses, with or without an arrow
  Spec spec;         // what `text` means for these operands; label ids in random order
  std::vector<RandomTensor> operands;
  RandomTensor out;
};

struct RandomEquationOptions {
  int operands = 5;     // at most
  int labels = 6;       // at most, besides those of an ellipsis
  double work = 20000;  // product of all sizes, at most
  bool strided = true;  // views: permuted, padded, negative and zero strides; else C order
  bool strided_out = true;
  bool ellipses = true;
  std::vector<DType> dtypes = {i8, i16, i32, i64, f16, bf16, f32, f64};
};

/// Draws equations from a seed. Every feature that an equation has is counted; `missing()` lists
/// the features that none had, so that a test can assert its own coverage.
class RandomEquations {
 public:
  explicit RandomEquations(std::uint64_t seed, RandomEquationOptions options = {});

  RandomEquation next();
  /// Features not met yet, separated by blanks; empty when all were.
  std::string missing() const;
  /// All counters, one per line.
  std::string coverage() const;

 private:
  bool chance(double probability);
  std::int64_t integer(std::int64_t low, std::int64_t high);
  std::int64_t random_size();
  DType random_dtype(int family);
  RandomTensor random_tensor(const std::vector<std::int64_t>& shape, DType dtype, bool strided,
                             bool may_overlap);
  void fill(RandomTensor& tensor);
  void count(const std::string& feature) { ++counts_[feature]; }
  void count_labels(const RandomEquation& equation);

  std::mt19937_64 random_;
  RandomEquationOptions options_;
  std::map<std::string, std::int64_t> counts_;
};

}  // namespace einkern::test
