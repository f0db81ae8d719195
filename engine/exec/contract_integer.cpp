// SPDX-License-Identifier: Apache-2.0
// The exact i64 contraction: sums in 128 bits, checked once at the end.
#include <cstdint>
#include <limits>

#include "../base/error.h"
#include "boxes.h"
#include "contract.h"
#include "parallel.h"

namespace einkern::exec {
namespace {

using plan::Loop;
__extension__ using Int128 = __int128;

}  // namespace

void run_integer(const plan::Contract& step, const Frame& frame) {
  EINKERN_CHECK(step.c.dtype == DType::i64);
  const auto* a = reinterpret_cast<const std::int64_t*>(frame.address(step.a));
  const auto* b = reinterpret_cast<const std::int64_t*>(frame.address(step.b));
  auto* c = reinterpret_cast<std::int64_t*>(frame.address(step.c));
  const std::int64_t rows = extent(step.m), columns = extent(step.n), sums = extent(step.k);
  const std::int64_t tiles = extent(step.batch) * rows;
  const OffsetList k_a(step.k, &Loop::a), k_b(step.k, &Loop::b);
  const double work =
      static_cast<double>(tiles) * static_cast<double>(columns) * static_cast<double>(sums);
  parallel_for(tiles, work, [&](std::int64_t tile) {
    const std::int64_t entry = tile / rows, row = tile % rows;
    const auto* from_a =
        a + offset_at(step.batch, entry, &Loop::a) + offset_at(step.m, row, &Loop::a);
    const auto* from_b = b + offset_at(step.batch, entry, &Loop::b);
    auto* to = c + offset_at(step.batch, entry, &Loop::c) + offset_at(step.m, row, &Loop::c);
    for (std::int64_t j = 0; j < columns; ++j) {
      const auto* column = from_b + offset_at(step.n, j, &Loop::b);
      Int128 sum = 0;
      bool overflow = false;
      for (std::size_t p = 0; p < k_a.size(); ++p) {
        const Int128 product = static_cast<Int128>(from_a[k_a[p]]) * column[k_b[p]];
        overflow |= __builtin_add_overflow(sum, product, &sum);
      }
      constexpr Int128 kLow = std::numeric_limits<std::int64_t>::min();
      constexpr Int128 kHigh = std::numeric_limits<std::int64_t>::max();
      if (overflow || sum < kLow || sum > kHigh) fail<ValueError>("einsum: integer overflow");
      to[offset_at(step.n, j, &Loop::c)] = static_cast<std::int64_t>(sum);
    }
  });
}

}  // namespace einkern::exec
