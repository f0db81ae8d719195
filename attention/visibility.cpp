// SPDX-License-Identifier: Apache-2.0
// Options of attention as masks and sinks, each checked against the scores.
#include "visibility.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "../engine/base/error.h"
#include "../engine/graph/build.h"
#include "../ops/ops.h"

namespace einkern {
namespace {

/// Axis of the scores that axis `d` of an option meets: by label, or by position from the right.
std::optional<std::size_t> met_axis(const Expr& option, std::size_t d, const Expr& s) {
  const std::string& label = option.labels()[d];
  if (label.empty()) {
    const std::size_t from_right = option.rank() - d;
    if (from_right > s.rank()) return {};
    return s.rank() - from_right;
  }
  for (std::size_t axis = 0; axis < s.rank(); ++axis) {
    if (s.labels()[axis] == label) return axis;
  }
  return {};
}

/// Does every size of the option broadcast to the scores without making them larger? Open axes
/// (`index("q")`) take their sizes from the scores.
void check_fits(const char* function, const char* name, const Expr& option, const Expr& s) {
  if (graph::has_open_axes(option)) return;
  for (std::size_t d = 0; d < option.rank(); ++d) {
    const std::optional<std::size_t> axis = met_axis(option, d, s);
    const std::int64_t size = option.shape()[d];
    if (!axis || (size != 1 && size != s.shape()[*axis])) {
      fail<ShapeError>(fmt::format("{}: {} {} does not broadcast to the scores {}", function, name,
                                   to_string(option.shape()), to_string(s.shape())));
    }
  }
}

void check_integers(const char* function, const char* name, const Expr& option) {
  if (!is_integer(option.dtype())) {
    fail<TypeError>(
        fmt::format("{}: {} are {}, not integers", function, name, name_of(option.dtype())));
  }
}

/// The option under the labels of the scores' axes up to `last`, for alignment by name; an option
/// that carries labels keeps them.
Expr named_up_to(const char* function, const char* name, const Expr& option, const Expr& s,
                 std::size_t last) {
  const std::size_t rank = option.rank();
  if (rank == 0) return option;
  std::vector<std::string> labels = option.labels().to_vector(rank);
  if (option.labels().empty()) {
    if (rank > last + 1) {
      fail<ShapeError>(fmt::format("{}: {} {} have more axes than the scores {}", function, name,
                                   to_string(option.shape()), to_string(s.shape())));
    }
    for (std::size_t d = 0; d < rank; ++d) labels[d] = s.labels()[last + 1 - rank + d];
  }
  const Expr term = graph::relabel(function, option, labels, true);
  check_fits(function, name, term, s);
  return term;
}

/// Number of leading axes that count batch entries: those before h, q and k.
std::size_t batch_rank(const Expr& s) { return s.rank() < 3 ? 0 : s.rank() - 3; }

Expr lengths_term(const char* function, const Expr& lengths, const Expr& s) {
  check_integers(function, "lengths", lengths);
  if (lengths.rank() == 0) return lengths;
  if (batch_rank(s) == 0) {
    fail<ShapeError>(fmt::format("{}: lengths {} need a batch axis, but the scores are {}",
                                 function, to_string(lengths.shape()), to_string(s.shape())));
  }
  return named_up_to(function, "lengths", lengths, s, batch_rank(s) - 1);
}

/// Segment numbers (..., position) labelled with the batch axes and the label of the position.
Expr segment_term(const char* function, const Expr& segments, const Expr& s, const char* position) {
  check_integers(function, "segments", segments);
  const std::size_t rank = segments.rank(), batch = batch_rank(s);
  if (rank == 0 || rank > batch + 1) {
    fail<ShapeError>(fmt::format("{}: segments {} do not number the axis '{}' of the scores {}",
                                 function, to_string(segments.shape()), position,
                                 to_string(s.shape())));
  }
  std::vector<std::string> labels = segments.labels().to_vector(rank);
  if (segments.labels().empty()) {
    for (std::size_t d = 0; d + 1 < rank; ++d) labels[d] = s.labels()[batch + 1 - rank + d];
    labels.back() = position;
  }
  const Expr term = graph::relabel(function, segments, labels, true);
  check_fits(function, "segments", term, s);
  return term;
}

using Given = std::pair<const char*, bool>;

void refuse(const char* function, const std::vector<Given>& options, const char* reason) {
  for (const auto& [name, given] : options) {
    if (given) fail<ValueError>(fmt::format("{}: option {} {}", function, name, reason));
  }
}

}  // namespace

std::vector<Mask> visibility(const char* function, const Expr& s, const AttentionOptions& options) {
  std::vector<Mask> masks;
  if (options.bias) {
    if (options.bias->dtype() == boolean) {
      fail<TypeError>(fmt::format("{}: bias is bool; truth values are given as mask", function));
    }
    check_fits(function, "bias", *options.bias, s);
    masks.push_back(bias(*options.bias));
  }
  if (options.mask) {
    if (options.mask->dtype() != boolean) {
      fail<TypeError>(fmt::format("{}: mask is {}, not bool; numbers to add are given as bias",
                                  function, name_of(options.mask->dtype())));
    }
    check_fits(function, "mask", *options.mask, s);
    masks.emplace_back(*options.mask);
  }
  std::optional<Expr> lengths;
  if (options.lengths) {
    lengths = lengths_term(function, *options.lengths, s);
    masks.emplace_back(index("k") < *lengths);
  }
  if (options.segments) {
    masks.emplace_back(segment_term(function, options.segments->q, s, "q") ==
                       segment_term(function, options.segments->k, s, "k"));
  }
  if (options.window) {
    masks.emplace_back(window("q", "k", options.window->left, options.window->right));
  }
  if (options.causal && options.causal->align == Align::bottom_right && lengths) {
    // The last query stands at the last key of its own batch entry.
    masks.emplace_back(index("k") - index("q") <= *lengths - s.shape()[s.rank() - 2]);
  } else if (options.causal) {
    masks.push_back(causal("q", "k", *options.causal));
  }
  return masks;
}

std::optional<Expr> sink_term(const char* function, const Expr& s,
                              const AttentionOptions& options) {
  if (!options.sinks || options.sinks->rank() == 0) return options.sinks;
  const Expr& sinks = *options.sinks;
  if (s.rank() < 3 || (sinks.labels().empty() && sinks.rank() != 1)) {
    fail<ShapeError>(fmt::format("{}: sinks {} do not fit the heads of the scores {}", function,
                                 to_string(sinks.shape()), to_string(s.shape())));
  }
  return named_up_to(function, "sinks", sinks, s, s.rank() - 3);
}

void refuse_weights(const char* function, const AttentionOptions& options) {
  refuse(function,
         {{"qkv", options.qkv.has_value()},
          {"q", options.q.has_value()},
          {"k", options.k.has_value()},
          {"v", options.v.has_value()},
          {"out", options.out.has_value()},
          {"qkv_bias", options.qkv_bias.has_value()},
          {"q_bias", options.q_bias.has_value()},
          {"k_bias", options.k_bias.has_value()},
          {"v_bias", options.v_bias.has_value()},
          {"out_bias", options.out_bias.has_value()}},
         "is a weight; it cannot be used here");
}

void refuse_scoring(const char* function, const AttentionOptions& options) {
  refuse(function,
         {{"mask", options.mask.has_value()},
          {"bias", options.bias.has_value()},
          {"lengths", options.lengths.has_value()},
          {"segments", options.segments.has_value()},
          {"window", options.window.has_value()},
          {"scale", options.scale.has_value()},
          {"softcap", options.softcap.has_value()},
          {"sinks", options.sinks.has_value()},
          {"causal", options.causal.has_value()}},
         "belongs to the call");
}

}  // namespace einkern
