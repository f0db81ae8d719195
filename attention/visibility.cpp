// SPDX-License-Identifier: Apache-2.0
// Options of attention as masks and sinks, each checked against the scores.
#include "visibility.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "../engine/base/error.h"
#include "../engine/graph/build.h"
#include "../ops/ops.h"

namespace einkern {
namespace {

/// Axes of the scores that the last axes of an option meet when it carries no labels.
using ScoreAxes = std::vector<std::size_t>;

ScoreAxes first_axes(std::size_t count) {
  ScoreAxes places(count);
  std::iota(places.begin(), places.end(), std::size_t{0});
  return places;
}

/// Does every size of the option broadcast to the scores without making them larger? Open axes
/// (`index("q")`) take their sizes from the scores.
void check_fits(const char* function, const char* name, const Expr& option, const Expr& s,
                const ScoreAxes& places) {
  if (graph::has_open_axes(option)) return;
  const std::vector<std::string> labels = s.labels().to_vector(s.rank());
  const std::size_t rank = option.rank();
  for (std::size_t d = 0; d < rank; ++d) {
    const std::string& label = option.labels()[d];
    std::size_t axis = s.rank();
    if (!label.empty()) {
      axis =
          static_cast<std::size_t>(std::find(labels.begin(), labels.end(), label) - labels.begin());
    } else if (rank - d <= places.size()) {
      axis = places[places.size() - (rank - d)];
    }
    const std::int64_t size = option.shape()[d];
    if (axis == s.rank() || (size != 1 && size != s.shape()[axis])) {
      fail<ShapeError>(fmt::format("{}: {} of shape {} cannot broadcast to the scores {}", function,
                                   name, to_string(option.shape()), to_string(s.shape())));
    }
  }
}

void check_integers(const char* function, const char* name, const Expr& option) {
  if (!is_integer(option.dtype())) {
    fail<TypeError>(
        fmt::format("{}: {} are {}, not integers", function, name, name_of(option.dtype())));
  }
}

/// The option under the labels of the axes it meets, for alignment by name; an option that carries
/// labels keeps them.
Expr named_at(const char* function, const char* name, const Expr& option, const Expr& s,
              const ScoreAxes& places) {
  check_fits(function, name, option, s, places);
  const std::size_t rank = option.rank();
  std::vector<std::string> labels = option.labels().to_vector(rank);
  if (option.labels().empty()) {
    for (std::size_t d = 0; d < rank; ++d) labels[d] = s.labels()[places[places.size() - rank + d]];
  }
  return graph::relabel(function, option, labels, true);
}

/// Number of leading axes that count batch entries: those before h, q and k.
std::size_t batch_rank(const Expr& s) { return s.rank() < 3 ? 0 : s.rank() - 3; }

Expr lengths_term(const char* function, const Expr& lengths, const Expr& s) {
  check_integers(function, "lengths", lengths);
  const std::int64_t keys = s.shape().back();
  // Sizes that are known only when a plan is called cannot be compared here.
  Expr checked =
      keys < 0 ? lengths
               : graph::bounded(
                     lengths, 0, keys,
                     fmt::format("{}: a length is {{}}, but there are {} keys", function, keys));
  if (checked.rank() == 0) return checked;
  return named_at(function, "lengths", checked, s, first_axes(batch_rank(s)));
}

/// Segment numbers (..., position) of the axis `at` of the scores: heads are passed over.
Expr segment_term(const char* function, const Expr& segments, const Expr& s, std::size_t at) {
  check_integers(function, "segments", segments);
  if (segments.rank() == 0) {
    fail<ShapeError>(fmt::format("{}: segments need a number for every position", function));
  }
  ScoreAxes places = first_axes(batch_rank(s));
  places.push_back(at);
  return named_at(function, "segments", segments, s, places);
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
    check_fits(function, "bias", *options.bias, s, first_axes(s.rank()));
    masks.push_back(bias(*options.bias));
  }
  if (options.mask) {
    if (options.mask->dtype() != boolean) {
      fail<TypeError>(fmt::format("{}: mask is {}, not bool; numbers to add are given as bias",
                                  function, name_of(options.mask->dtype())));
    }
    check_fits(function, "mask", *options.mask, s, first_axes(s.rank()));
    masks.emplace_back(*options.mask);
  }
  std::optional<Expr> lengths;
  if (options.lengths) {
    lengths = lengths_term(function, *options.lengths, s);
    masks.emplace_back(index("k") < *lengths);
  }
  if (options.segments) {
    masks.emplace_back(segment_term(function, options.segments->q, s, s.rank() - 2) ==
                       segment_term(function, options.segments->k, s, s.rank() - 1));
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
  return named_at(function, "sinks", *options.sinks, s,
                  s.rank() < 3 ? ScoreAxes{} : ScoreAxes{s.rank() - 3});
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
