// SPDX-License-Identifier: Apache-2.0
// Softmax, its logarithm and its normaliser as nodes.
#include "softmax.h"

#include "../engine/graph/build.h"

namespace einkern {
namespace {

Expr normalise(const char* function, plan::SoftmaxKind kind, const Expr& s, const Axes& axes,
               const SoftmaxOptions& options) {
  return graph::softmax(function, kind, s, graph::resolve_axes(function, s, axes), options.sink);
}

}  // namespace

Expr softmax(const Expr& s, const Axes& axes, const SoftmaxOptions& options) {
  return normalise("softmax", plan::SoftmaxKind::softmax, s, axes, options);
}

Expr log_softmax(const Expr& s, const Axes& axes, const SoftmaxOptions& options) {
  return normalise("log_softmax", plan::SoftmaxKind::log_softmax, s, axes, options);
}

Expr logsumexp(const Expr& s, const Axes& axes, const SoftmaxOptions& options) {
  return normalise("logsumexp", plan::SoftmaxKind::logsumexp, s, axes, options);
}

}  // namespace einkern
