// SPDX-License-Identifier: Apache-2.0
// Times problems, the compute-bound ones in turn.
#include "bench_measure.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "../engine/graph/expr.h"
#include "../engine/tensor/create.h"
#include "../ops/elementwise.h"
#include "stopwatch.h"

namespace einkern::tools {
namespace {

constexpr std::size_t kFewestRuns = 11;
constexpr std::int64_t kMostSets = 4096;

/// One set of operands and the output they are contracted into.
struct OperandSet {
  std::vector<Tensor> operands;
  Expr value;
  Tensor out;

  OperandSet(const Problem& problem, std::uint64_t seed)
      : operands(make_operands(problem, seed)),
        value(einsum(problem.equation, {operands.begin(), operands.end()}, {problem.path})),
        out(zeros(value.shape(), problem.dtype)) {
  }  // touched: pages are there before the first run

  void run() const { eval_into(out, value); }

 private:
  static std::vector<Tensor> make_operands(const Problem& problem, std::uint64_t seed) {
    std::vector<Tensor> operands;
    for (const Shape& shape : problem.shapes) {
      operands.push_back(random(shape, seed++, problem.dtype) - 0.5);
    }
    return operands;
  }
};

Work work_of(const OperandSet& set) {
  Work work;
  const auto plan = nlohmann::json::parse(explain_json({set.value}));
  for (const auto& step : plan.at("steps")) work.flops += step.at("flops").get<double>();
  const auto bytes = [](const Tensor& tensor) {
    return static_cast<double>(tensor.size()) * static_cast<double>(size_of(tensor.dtype()));
  };
  for (const Tensor& operand : set.operands) work.bytes_read += bytes(operand);
  work.bytes_written = bytes(set.out);
  return work;
}

/// A problem while it is being timed.
class Timing {
 public:
  explicit Timing(const Problem& problem) : problem_(problem) {
    sets_.emplace_back(problem, 1);
    sets_[0].run();
    samples_ =
        check_samples(make_spec(problem.equation, problem.shapes), sets_[0].operands, sets_[0].out);
    work_ = work_of(sets_[0]);
  }

  bool is_cold(const Limits& limits) const {
    return work_.memory_seconds(limits) > work_.compute_seconds(limits);
  }
  /// Adds operand sets until they are `bytes` in all, and touches each.
  void grow(std::int64_t bytes) {
    const double each = std::max(1.0, work_.bytes_read + work_.bytes_written);
    const auto wanted = static_cast<std::int64_t>(static_cast<double>(bytes) / each) + 1;
    for (std::int64_t i = 1; i < std::min(wanted, kMostSets); ++i) {
      sets_.emplace_back(problem_, 1 + 64 * static_cast<std::uint64_t>(i));
    }
    for (const OperandSet& set : sets_) set.run();
  }
  void time_once() {
    const OperandSet& set = sets_[seconds_.size() % sets_.size()];
    const Stopwatch watch;
    set.run();
    seconds_.push_back(watch.seconds());
    total_ += seconds_.back();
  }
  bool done(double min_seconds) const {
    return seconds_.size() >= kFewestRuns && total_ >= min_seconds;
  }
  void release() { sets_.clear(); }
  Result result(const Limits& limits) const {
    return {samples_, work_, summarise(seconds_), is_cold(limits), limits};
  }

 private:
  const Problem& problem_;
  std::vector<OperandSet> sets_;
  std::vector<double> seconds_;
  double total_ = 0;
  Samples samples_;
  Work work_;
};

}  // namespace

Times summarise(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const auto at = [&](double part) {
    const double place = std::round(part * static_cast<double>(seconds.size() - 1));
    return seconds[static_cast<std::size_t>(place)];
  };
  return {at(0.5), (at(0.75) - at(0.25)) / at(0.5), seconds.size()};
}

std::vector<Result> measure(const std::vector<Problem>& problems, double min_seconds,
                            std::int64_t buffer_bytes) {
  LimitProbe probe(problems[0].dtype, buffer_bytes);
  probe.measure();
  std::vector<Timing> timings;
  std::vector<std::size_t> warm;
  timings.reserve(problems.size());
  for (const Problem& problem : problems) {
    Timing& timing = timings.emplace_back(problem);
    if (!timing.is_cold(probe.best())) {
      warm.push_back(timings.size() - 1);
      continue;
    }
    timing.grow(buffer_bytes);
    while (!timing.done(min_seconds)) timing.time_once();
    timing.release();
  }
  probe.measure();
  for (bool busy = true; busy;) {
    busy = false;
    for (const std::size_t i : warm) {
      if (timings[i].done(min_seconds)) continue;
      timings[i].time_once();
      busy = true;
    }
  }
  probe.measure();
  std::vector<Result> results;
  for (const Timing& timing : timings) results.push_back(timing.result(probe.best()));
  return results;
}

}  // namespace einkern::tools
