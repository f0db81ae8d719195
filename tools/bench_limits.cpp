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
constexpr std::int64_t kPieceBytes = std::int64_t{4} << 20;
// Of a part of the buffers, for each thread: two milliseconds.
constexpr std::int64_t kPiecesOfPart = 8;
// Threads that sleep take part in the second repetition.
constexpr int kTwice = 2;
constexpr double kMuchWork = 1e12;  // always worth a parallel loop

std::atomic<double> sink = 0;  // what the probes return must not be unused

void use(double value) { sink.store(value, std::memory_order_relaxed); }

/// Work a second, the best of some repetitions: `pieces` of `piece_work` each.
double best_rate(int repetitions, std::int64_t pieces, double piece_work,
                 exec::TileFunction piece) {
  double best = 0;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    const Stopwatch watch;
    exec::parallel_for(pieces, kMuchWork, piece);
    best = std::max(best, static_cast<double>(pieces) * piece_work / watch.seconds());
  }
  return best / 1e9;
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

void keep_best(double& best, double rate) { best = std::max(best, rate); }

}  // namespace

LimitProbe::LimitProbe(std::int64_t buffer_bytes)
    : pieces_(std::max<std::int64_t>(1, buffer_bytes / kPieceBytes)) {
  from_ = full({pieces_, kPieceBytes / 8}, 1.1, f64);  // zeros may be copied faster
  to_ = zeros({pieces_, kPieceBytes / 8}, f64);
  read_ = static_cast<const char*>(from_.bytes());
  written_ = static_cast<char*>(to_.mutable_bytes("bench"));
  const kernel::ProbeKernels& kernels = kernel::kernels().probe;
  f32_ = {kernels.f32, rounds_for_a_millisecond(kernels.f32)};
  f64_ = {kernels.f64, rounds_for_a_millisecond(kernels.f64)};
}

void LimitProbe::read_piece(std::int64_t piece) const {
  use(static_cast<double>(
      kernel::kernels().probe.read(read_ + piece * kPieceBytes, kPieceBytes / kLine)));
}
void LimitProbe::copy_piece(std::int64_t piece) const {
  const kernel::CopyKernels& copy = kernel::kernels().copy;
  copy.stream(read_ + piece * kPieceBytes, written_ + piece * kPieceBytes, kPieceBytes);
  copy.fence();
}
void LimitProbe::write_piece(std::int64_t piece) const {
  kernel::kernels().probe.write(written_ + piece * kPieceBytes, kPieceBytes / kLine);
}

double LimitProbe::peak_rate(const PeakTask& task, int repetitions) const {
  return best_rate(repetitions, std::int64_t{8} * exec::concurrency(),
                   task.fma.flops_per_round * static_cast<double>(task.rounds),
                   [&](std::int64_t) { use(task.fma.run(task.rounds)); });
}

double LimitProbe::part_rate(void (LimitProbe::*piece)(std::int64_t) const) {
  const std::int64_t first = next_piece_,
                     count = std::min(pieces_, kPiecesOfPart * exec::concurrency());
  next_piece_ = (first + kTwice * count) % pieces_;
  // The first half wakes the threads.
  double best = 0;
  for (std::int64_t half = 0; half < kTwice; ++half) {
    keep_best(best, best_rate(1, count, kPieceBytes, [&](std::int64_t i) {
                (this->*piece)((first + half * count + i) % pieces_);
              }));
  }
  return best;
}

double LimitProbe::peak_gflops_now(DType dtype) {
  return peak_rate(compute_dtype(dtype) == f32 ? f32_ : f64_, kTwice);
}
double LimitProbe::read_gbs_now() { return part_rate(&LimitProbe::read_piece); }
double LimitProbe::write_gbs_now() { return part_rate(&LimitProbe::write_piece); }

void LimitProbe::measure() {
  constexpr int kThrice = 3;
  const double peak = peak_rate(f32_, kThrice);
  slowest_peak_ = std::min(slowest_peak_, peak);
  keep_best(best_.peak_f32_gflops, peak);
  keep_best(best_.peak_f64_gflops, peak_rate(f64_, kThrice));
  const auto whole = [&](double bytes, void (LimitProbe::*piece)(std::int64_t) const) {
    return best_rate(kThrice, pieces_, bytes, [&](std::int64_t at) { (this->*piece)(at); });
  };
  keep_best(best_.read_gbs, whole(kPieceBytes, &LimitProbe::read_piece));
  keep_best(best_.copy_gbs, whole(2 * kPieceBytes, &LimitProbe::copy_piece));
  keep_best(best_.write_gbs, whole(kPieceBytes, &LimitProbe::write_piece));
}

LimitsInTurn::LimitsInTurn(LimitProbe& probe, DType dtype, bool memory_bound) : probe_(probe) {
  if (memory_bound) {
    rates_.push_back({[&probe] { return probe.read_gbs_now(); }, &Limits::read_gbs, {}});
    rates_.push_back({[&probe] { return probe.write_gbs_now(); }, &Limits::write_gbs, {}});
  } else {
    rates_.push_back(
        {[&probe, dtype] { return probe.peak_gflops_now(dtype); },
         compute_dtype(dtype) == f32 ? &Limits::peak_f32_gflops : &Limits::peak_f64_gflops,
         {}});
  }
}

bool LimitsInTurn::after_turn(double seconds) {
  since_ += seconds;
  if (since_ < took_) return false;
  const Stopwatch watch;
  for (Rate& rate : rates_) rate.rates.push_back(rate.now());
  took_ = watch.seconds();
  since_ = 0;
  return true;
}

Limits LimitsInTurn::limits() const {
  Limits limits = probe_.best();
  for (const Rate& rate : rates_) {
    if (rate.rates.empty()) continue;
    std::vector<double> rates = rate.rates;
    const auto middle = rates.begin() + std::ssize(rates) / 2;
    std::ranges::nth_element(rates, middle);
    limits.*rate.limit = *middle;
  }
  return limits;
}

}  // namespace einkern::tools
