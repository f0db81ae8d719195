// SPDX-License-Identifier: Apache-2.0
// From an expression graph to an executable plan: the passes, in order.
#pragma once

#include <memory>

#include "collect.h"
#include "lower.h"

namespace einkern::graph {

/// A plan and what its caller needs to bind it.
struct Prepared {
  plan::Plan plan;
  Target target;
};

/// canonicalise, rewrite, verify, lower. `collected` is the result of `collect(roots)`.
std::shared_ptr<const Prepared> prepare(const std::vector<NodePtr>& roots,
                                        const Collected& collected, const LowerOptions& options);

/// How often `prepare` has run in this process.
std::int64_t prepared_count();

}  // namespace einkern::graph
