// SPDX-License-Identifier: Apache-2.0
// A stored run of the benchmark beside this one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "bench_limits.h"

namespace einkern::tools {

/// What `--json` of another run left: medians in seconds by problem, limits, canary.
struct StoredRun {
  std::map<std::string, double> medians;
  Limits limits;
  Canary canary;
  int threads = 0;
};

/// Reads a report that `einkern bench --json` wrote. IoError naming the file.
StoredRun read_stored_run(const std::string& path);

/// How much slower the machine is now than in the stored run, by the canaries of both; stored times
/// are multiplied by it before they are compared.
double slowdown_since(const StoredRun& stored, const Canary& canary);

/// What makes a comparison void: other threads, canaries of two libraries, or limits below 0.9 of
/// the stored ones.
std::vector<std::string> flags_of(const StoredRun& stored, const Limits& limits,
                                  const Canary& canary, int threads);

}  // namespace einkern::tools
