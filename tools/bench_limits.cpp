// SPDX-License-Identifier: Apache-2.0
// The limits of this machine, measured by kernels that do nothing else.
#include "bench_limits.h"

#include <algorithm>
#include <atomic>

#include "../engine/exec/parallel.h"
#include "../engine/kernel/kernels.h"
#include "../engine/tensor/create.h"
#include "stopwatch.h"

namespace einkern::tools {
namespace {

constexpr std::int64_t kLine = 64;
// A piece outlasts the start of a task (microseconds) and is small beside a buffer.
constexpr std::int64_t kPieceLines = (std::int64_t{4} << 20) / kLine;
constexpr double kMuchWork = 1e12;  // always worth a parallel loop

std::atomic<double> sink = 0;  // what the probes return must not be unused

void use(double value) { sink.store(value, std::memory_order_relaxed); }

/// Work a second, the best of three: `pieces` of `piece_work` each.
double best_rate(std::int64_t pieces, double piece_work, exec::TileFunction piece) {
  double best = 0;
  for (int repetition = 0; repetition < 3; ++repetition) {
    const Stopwatch watch;
    exec::parallel_for(pieces, kMuchWork, piece);
    best = std::max(best, static_cast<double>(pieces) * piece_work / watch.seconds());
  }
  return best;
}

/// Rounds of multiply-adds that take about a millisecond, on any target and in any build.
std::int64_t rounds_for_a_millisecond(const kernel::MultiplyAddProbe& fma) {
  for (std::int64_t rounds = 1 << 10;; rounds *= 2) {
    const Stopwatch watch;
    use(fma.run(rounds));
    const double seconds = watch.seconds();
    if (seconds > 1e-4)
      return static_cast<std::int64_t>(static_cast<double>(rounds) * 1e-3 / seconds) + 1;
  }
}

void keep_best(double& best, double rate) { best = std::max(best, rate / 1e9); }

}  // namespace

LimitProbe::LimitProbe(std::int64_t buffer_bytes) {
  const std::int64_t pieces = std::max<std::int64_t>(1, buffer_bytes / (kPieceLines * kLine));
  from_ = full({pieces, kPieceLines * kLine / 8}, 1.1, f64);  // zeros may be copied faster
  to_ = zeros({pieces, kPieceLines * kLine / 8}, f64);
}

void LimitProbe::measure() {
  const kernel::Kernels& kernels = kernel::kernels();
  const std::int64_t pieces = from_.shape()[0];
  const auto bytes = static_cast<double>(kPieceLines * kLine);
  const auto* const from = static_cast<const char*>(from_.bytes());
  auto* const to = static_cast<char*>(to_.mutable_bytes("bench"));
  const auto offset = [](std::int64_t piece) { return piece * kPieceLines * kLine; };

  const std::int64_t tasks = std::int64_t{8} * exec::concurrency();
  const auto peak_of = [&](const kernel::MultiplyAddProbe& fma) {
    const std::int64_t rounds = rounds_for_a_millisecond(fma);
    return best_rate(tasks, fma.flops_per_round * static_cast<double>(rounds),
                     [&](std::int64_t) { use(fma.run(rounds)); });
  };
  const double peak = peak_of(kernels.probe.f32);
  slowest_peak_ = std::min(slowest_peak_, peak / 1e9);
  keep_best(best_.peak_f32_gflops, peak);
  keep_best(best_.peak_f64_gflops, peak_of(kernels.probe.f64));
  keep_best(best_.read_gbs, best_rate(pieces, bytes, [&](std::int64_t piece) {
              use(static_cast<double>(kernels.probe.read(from + offset(piece), kPieceLines)));
            }));
  keep_best(best_.copy_gbs, best_rate(pieces, 2 * bytes, [&](std::int64_t piece) {
              kernels.copy.stream(from + offset(piece), to + offset(piece), kPieceLines * kLine);
              kernels.copy.fence();
            }));
  keep_best(best_.write_gbs, best_rate(pieces, bytes, [&](std::int64_t piece) {
              kernels.probe.write(to + offset(piece), kPieceLines);
            }));
}

}  // namespace einkern::tools
