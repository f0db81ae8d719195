// SPDX-License-Identifier: Apache-2.0
// Times problems, the compute-bound ones in turn.
#include "bench_measure.h"

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "../engine/graph/expr.h"
#include "../engine/tensor/create.h"
#include "../ops/elementwise.h"
#include "bench_gemm_route.h"
#include "stopwatch.h"

namespace einkern::tools {
namespace {

constexpr std::size_t kFewestTurns = 11;
// Neighbours that are timed in turn hold their operands at the same time.
constexpr double kGroupBytes = 2e9;
// Reading the clock costs tens of nanoseconds: shorter calls are timed together.
constexpr double kTurnSeconds = 2e-4;
// Untimed calls refill the caches and wake the threads: this many, or for so long.
constexpr int kSettleCalls = 3;
constexpr double kSettleSeconds = 5e-2;
// Waiting threads of whoever ran before sleep after less than this. While they still spin, the
// threads of the next are put on one core (products of 55 ms took 30 % longer).
constexpr std::chrono::milliseconds kPause(2);
// A peer that is far behind is not waited for.
constexpr std::size_t kFewestPeerTurns = 3;
constexpr double kMostPeerSeconds = 10;

/// One set of operands and the output they are contracted into.
struct OperandSet {
  std::vector<Tensor> operands;
  std::vector<Expr> leaves;
  Tensor out;

  OperandSet(const Problem& problem, std::uint64_t seed)
      : operands(make_operands(problem, seed)), leaves(operands.begin(), operands.end()) {
    // Touched: its pages are there before the first run.
    out = zeros(einsum(problem.equation, leaves, {problem.path}).shape(),
                compute_dtype(problem.dtype));
  }

 private:
  static std::vector<Tensor> make_operands(const Problem& problem, std::uint64_t seed) {
    std::vector<Tensor> operands;
    for (const Shape& shape : problem.shapes) {
      operands.push_back(random(shape, seed++, compute_dtype(problem.dtype)) - 0.5);
    }
    operands.back() = operands.back().astype(problem.dtype);
    return operands;
  }
};

double bytes_of(const Tensor& tensor) {
  return static_cast<double>(tensor.size()) * static_cast<double>(size_of(tensor.dtype()));
}

/// A problem while it is being timed.
class Timing {
 public:
  Timing(const Problem& problem, const Peers* peers) : problem_(problem) {
    sets_.emplace_back(problem, 1);
    const OperandSet& set = sets_[0];
    run_into(set);
    const Spec spec = make_spec(problem.equation, problem.shapes);
    samples_ = check_samples(problem.name, spec, set.operands, set.out);
    read_plan(set);
    if (peers != nullptr) add_peers(*peers, spec, set);
    for (const Tensor& operand : set.operands) work_.bytes_read += bytes_of(operand);
    work_.bytes_written = bytes_of(set.out);
  }

  const Work& work() const { return work_; }
  double bytes() const { return work_.bytes_read + work_.bytes_written; }

  /// Adds operand sets until they are `bytes` in all, and touches each.
  void grow(std::int64_t bytes) {
    cold_ = true;
    const double each = std::max(1.0, this->bytes());
    const auto wanted = static_cast<std::int64_t>(static_cast<double>(bytes) / each) + 1;
    for (std::int64_t i = 1; i < std::min(wanted, kMostSets); ++i) {
      sets_.emplace_back(problem_, 1 + 64 * static_cast<std::uint64_t>(i));
    }
    for (const OperandSet& set : sets_) run_into(set);
  }
  /// Turns need it.
  void compare_with(LimitProbe& probe) {
    limits_.emplace(probe, problem_.dtype, work_.is_memory_bound(probe.best()));
  }
  /// All forms once, or often enough for the clock.
  void take_turn() {
    const Stopwatch turn;
    // Ours comes first, after other problems, and must find its operands as near as the forms after
    // it do: 30 MB are in the shared cache after the third call only (3.9 ms after one, then 2.5).
    const Stopwatch watch;
    for (int call = 0; call < kSettleCalls && watch.seconds() < kSettleSeconds; ++call) {
      run_into(next_set());
    }
    take_turn(into_, [this](const OperandSet& set) { run_into(set); });
    take_turn(fresh_, [this](const OperandSet& set) {
      const Tensor made = einsum(problem_.equation, set.leaves, {problem_.path});
    });
    for (PeerForm& form : peers_) {
      if (form.turns.size() >= kFewestPeerTurns && form.total > kMostPeerSeconds) continue;
      take_turn(form, [&](const OperandSet& set) { form.run(set, *route_); });
      form.ratios.push_back(form.turns.back() / into_.turns.back());
    }
    limits_->after_turn(turn.seconds());
  }
  /// Median of calls of one library alone, the first peer or else ours.
  double first_library(double min_seconds) {
    Form* const form = peers_.empty() ? &into_ : &peers_[0];
    do {
      take_turn(*form, [&](const OperandSet& set) {
        peers_.empty() ? run_into(set) : peers_[0].run(set, *route_);
      });
    } while (form->turns.size() < kFewestTurns && form->total < min_seconds);
    return summarise(form->turns).median;
  }
  bool done(double min_seconds) const {
    return into_.turns.size() >= kFewestTurns && into_.total >= min_seconds;
  }
  void release() {
    sets_.clear();
    route_.reset();
  }
  Result result() const {
    Result result{samples_, work_, regime_,        summarise(into_.turns), summarise(fresh_.turns),
                  cold_,    {},    peers_permute_, limits_->limits()};
    for (const PeerForm& form : peers_) {
      result.peers.push_back(
          {form.peer->name, summarise(form.turns), summarise(form.ratios).median});
    }
    return result;
  }

 private:
  struct Form {
    std::vector<double> turns;  // seconds a call
    double total = 0;
  };
  struct PeerForm : Form {
    const Peer* peer = nullptr;
    std::vector<double> ratios;

    void run(const OperandSet& set, const GemmRoute& route) const {
      route.run(*peer, set.operands, set.out);
    }
  };

  /// Those that can do the problem; CheckFailed for one that does it wrongly.
  void add_peers(const Peers& peers, const Spec& spec, const OperandSet& set) {
    route_ = GemmRoute::make(spec, set.operands, set.out);
    if (!route_) return;
    peers_permute_ = route_->permutes();
    for (const Peer& peer : peers.found) {
      if (!peer.has(problem_.dtype)) continue;
      PeerForm& form = peers_.emplace_back();
      form.peer = &peer;
      set.out.fill(0);
      form.run(set, *route_);
      check_samples(problem_.name + ": " + peer.name, spec, set.operands, set.out);
    }
  }
  void run_into(const OperandSet& set) const {
    einsum_into(set.out, problem_.equation, set.leaves, {.path = problem_.path});
  }
  const OperandSet& next_set() { return sets_[calls_++ % sets_.size()]; }

  template <class Run>
  void take_turn(Form& form, const Run& run) {
    if (!peers_.empty()) std::this_thread::sleep_for(kPause);
    if (form.turns.empty() || form.turns.back() < kSettleSeconds) run(next_set());
    std::size_t calls = 0;
    double seconds = 0;
    for (const Stopwatch watch; seconds < kTurnSeconds; ++calls) {
      run(next_set());
      seconds = watch.seconds();
    }
    form.turns.push_back(seconds / static_cast<double>(calls));
    form.total += seconds;
  }

  /// Operations, and the kinds of the steps: each once, in order.
  void read_plan(const OperandSet& set) {
    const auto plan = nlohmann::json::parse(
        explain_json({einsum(problem_.equation, set.leaves, {problem_.path})}));
    std::vector<std::string> kinds;
    for (const auto& step : plan.at("steps")) {
      work_.flops += step.at("flops").get<double>();
      const auto kind = step.at("kind").get<std::string>();
      if (std::ranges::find(kinds, kind) != kinds.end()) continue;
      kinds.push_back(kind);
      regime_ += (regime_.empty() ? "" : "+") + kind;
    }
    work_.dtype = compute_dtype(problem_.dtype);
  }

  const Problem& problem_;
  std::vector<OperandSet> sets_;
  std::size_t calls_ = 0;
  Form into_, fresh_;
  std::optional<GemmRoute> route_;
  std::vector<PeerForm> peers_;
  bool peers_permute_ = false;
  bool cold_ = false;
  Samples samples_;
  Work work_;
  std::string regime_;
  std::optional<LimitsInTurn> limits_;
};

/// Times a group of neighbours in turn and lets go of their operands.
void time_in_turn(const std::vector<Timing*>& group, double min_seconds) {
  for (bool busy = true; busy;) {
    busy = false;
    for (Timing* const timing : group) {
      if (timing->done(min_seconds)) continue;
      timing->take_turn();
      busy = true;
    }
  }
  for (Timing* const timing : group) timing->release();
}

/// Times the canary by OpenBLAS, the one that runs of different builds share, or else by ourselves.
class CanaryTimer {
 public:
  explicit CanaryTimer(const Peers* peers) {
    const Peer* const blas = peers == nullptr ? nullptr : peers->find("openblas");
    if (blas != nullptr) peers_.found.push_back(*blas);
  }
  const char* library() const { return peers_.found.empty() ? "einkern" : "openblas"; }
  double seconds(double min_seconds) const {
    const Problem product{"canary", "ik,kj->ij", {{1024, 1024}, {1024, 1024}}, f32, {}};
    return Timing(product, &peers_).first_library(min_seconds);
  }

 private:
  Peers peers_;
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

Report measure(const std::vector<Problem>& problems, const MeasureOptions& options) {
  Report report;
  report.peers = options.peers;
  const CanaryTimer canary(options.peers);
  report.canary = {canary.library(), canary.seconds(options.min_seconds), 0};
  LimitProbe probe(options.buffer_bytes);
  probe.measure();
  std::vector<Timing> timings;
  timings.reserve(problems.size());  // the group points into it
  std::vector<Timing*> group;
  double group_bytes = 0;
  const auto finish_group = [&] {
    time_in_turn(group, options.min_seconds);
    group.clear();
    group_bytes = 0;
  };
  for (const Problem& problem : problems) {
    if (timings.size() == problems.size() / 2) probe.measure();
    options.progress(problem);
    Timing& timing = timings.emplace_back(problem, options.peers);
    timing.compare_with(probe);
    if (!timing.work().is_memory_bound(probe.best())) {
      if (group_bytes + timing.bytes() > kGroupBytes) finish_group();
      group.push_back(&timing);
      group_bytes += timing.bytes();
      continue;
    }
    if (!options.warm) timing.grow(options.buffer_bytes);
    time_in_turn({&timing}, options.min_seconds);
  }
  finish_group();
  probe.measure();
  for (const Timing& timing : timings) report.results.push_back(timing.result());
  report.canary.after = canary.seconds(options.min_seconds);
  report.limits = probe.best();
  report.steadiness = probe.steadiness();
  return report;
}

}  // namespace einkern::tools
