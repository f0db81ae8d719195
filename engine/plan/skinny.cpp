// SPDX-License-Identifier: Apache-2.0
// When a large operand is read where it lies for a few rows of the other.
#include "skinny.h"

#include <algorithm>

#include "loops.h"

namespace einkern::plan {
namespace {

/// Rows up to which dots beat packed matrices, for every lane of a vector: beyond, a packed operand
/// is used often enough. On two AVX-512 cores layers of 4096 x 4096 took 0.68 of the time with 24
/// rows, 0.86 with 48, 1.02 with 64; in f64, or with AVX2, 0.93 with 24 and more than 1 with 37.
constexpr double kRowsPerLane = 3;
/// Steps of a sum for each of those rows, and at least: the lanes of every sum are added at its
/// end. 32 rows took 0.95 of the time under sums of 512, 1.02 under 256 and 1.28 under 128.
constexpr double kStepsPerRow = 16, kLeastSteps = 64;
/// Rows up to which weighted sums beat the tiles of packed matrices, which read columns where they
/// lie too: always, and where a matrix comes from memory (0.62 of the time with 12 rows of 4096 x
/// 4096, 1.13 with 12 of 1024 x 1024).
constexpr double kMostSums = 4, kMostSumsFromMemory = 16, kFromMemoryBytes = 8 << 20;
/// Rows of the large operand.
constexpr double kLeastMany = 128;

}  // namespace

bool few_rows(const Contract& contract) noexcept {
  return extent(contract.m) <= extent(contract.n);
}

SkinnyForm skinny_form(const Contract& contract) noexcept {
  const bool rows = few_rows(contract);
  const Loops &many = rows ? contract.n : contract.m, &k = contract.k;
  const auto stride = rows ? &Loop::b : &Loop::a;
  if (many.empty() || k.empty() || !is_float(contract.c.dtype)) return SkinnyForm::none;
  if (k.size() == 1 && k[0].*stride == 1) return SkinnyForm::dots;
  const bool along = many.size() == 1 && many[0].*stride == 1 && many[0].c == 1;
  return along ? SkinnyForm::sums : SkinnyForm::none;
}

bool is_skinny(const Contract& contract, const Target& target) noexcept {
  const double rows = extent(contract.m), columns = extent(contract.n), steps = extent(contract.k);
  const double few = std::min(rows, columns), many = std::max(rows, columns);
  const auto bytes = static_cast<double>(size_of(contract.c.dtype));
  if (many < kLeastMany || steps < kLeastSteps) return false;
  switch (skinny_form(contract)) {
    case SkinnyForm::dots:
      return few <= kRowsPerLane * target.vector_bytes / bytes && steps >= kStepsPerRow * few;
    case SkinnyForm::sums:
      return few <= kMostSums ||
             (few <= kMostSumsFromMemory && many * steps * bytes >= kFromMemoryBytes);
    case SkinnyForm::none:
      break;
  }
  return false;
}

}  // namespace einkern::plan
