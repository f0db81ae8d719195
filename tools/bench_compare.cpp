// SPDX-License-Identifier: Apache-2.0
// A stored run of the benchmark beside this one.
#include "bench_compare.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "../engine/base/error.h"

namespace einkern::tools {

StoredRun read_stored_run(const std::string& path) {
  std::ifstream file(path);
  if (!file) fail<IoError>(fmt::format("bench: {}: cannot be read", path));
  try {
    const auto report = nlohmann::json::parse(file);
    const auto& machine = report.at("machine");
    StoredRun stored;
    stored.limits.peak_f32_gflops = machine.at("peak_f32_gflops");
    stored.limits.read_gbs = machine.at("read_gbs");
    stored.limits.write_gbs = machine.at("write_gbs");
    stored.threads = machine.at("threads");
    const auto& canary = machine.at("canary");
    stored.canary = {canary.at("library"), canary.at("before_ms").get<double>() / 1e3,
                     canary.at("after_ms").get<double>() / 1e3};
    for (const auto& row : report.at("results")) {
      stored.medians[row.at("name")] = row.at("median_ms").get<double>() / 1e3;
    }
    return stored;
  } catch (const nlohmann::json::exception&) {
    fail<IoError>(fmt::format("bench: {}: not a report of einkern bench --json", path));
  }
}

double slowdown_since(const StoredRun& stored, const Canary& canary) {
  return (canary.before + canary.after) / (stored.canary.before + stored.canary.after);
}

std::vector<std::string> flags_of(const StoredRun& stored, const Limits& limits,
                                  const Canary& canary, int threads) {
  constexpr double kSameMachine = 0.9;
  std::vector<std::string> flags;
  if (stored.threads != threads) {
    flags.push_back(fmt::format("void: the stored run had {} threads", stored.threads));
  }
  if (stored.canary.library != canary.library) {
    flags.push_back(
        fmt::format("void: the canary of the stored run is {}'s", stored.canary.library));
  }
  const auto check = [&](const char* name, double now, double then) {
    if (now < kSameMachine * then) {
      flags.push_back(fmt::format("void: {} is {:.2f} of the stored run's", name, now / then));
    }
  };
  check("the peak", limits.peak_f32_gflops, stored.limits.peak_f32_gflops);
  check("the read bandwidth", limits.read_gbs, stored.limits.read_gbs);
  check("the write bandwidth", limits.write_gbs, stored.limits.write_gbs);
  return flags;
}

}  // namespace einkern::tools
