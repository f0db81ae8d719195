// SPDX-License-Identifier: Apache-2.0
// `einkern attention`: scaled dot-product attention over .npy files.
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../attention/dot_product.h"
#include "commands.h"
#include "files.h"
#include "run_options.h"
#include "stopwatch.h"
#include "values.h"

namespace einkern::tools {
namespace {

using OptionalText = std::optional<std::string>;

/// The options as they stand on the command line.
struct Texts {
  OptionalText causal, scale, mask, bias, window, lengths, softcap;
};

constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::min();

Causal parse_causal(const Options& options, const std::string& text) {
  if (text == "top_left") return top_left;
  if (text == "bottom_right") return bottom_right;
  if (text.find_first_not_of("-0123456789") == text.npos) {
    return parse_integer("attention: --causal", text, kAny);
  }
  options.refuse("--causal: unknown place '" + text +
                 "'; choices: top_left, bottom_right, or an offset");
}

Window parse_window(const Options& options, const std::string& text) {
  const auto sides = split_at(text, ',');
  if (sides.size() != 2) {
    options.refuse("--window: '" + text + "' is no window; it looks like 128,0, and -1 is open");
  }
  return {parse_integer("attention: --window", sides[0], -1),
          parse_integer("attention: --window", sides[1], -1)};
}

/// What needs no file; before any work.
AttentionOptions parse(const Options& options, const Texts& texts) {
  AttentionOptions attention;
  if (texts.causal) attention.causal = parse_causal(options, *texts.causal);
  if (texts.window) attention.window = parse_window(options, *texts.window);
  if (texts.scale) attention.scale = parse_number("attention: --scale", *texts.scale);
  if (texts.softcap) {
    attention.softcap = parse_number("attention: --softcap", *texts.softcap);
    if (*attention.softcap <= 0)
      options.refuse("--softcap: '" + *texts.softcap + "' is not positive");
  }
  return attention;
}

}  // namespace

void attention_command(const std::vector<std::string>& arguments) {
  Options options({
      .command = "attention",
      .usage = "Q.npy K.npy V.npy [OPTIONS]",
      .summary =
          "Computes softmax(q k^T scale) v on arrays (..., head, position, dim). Fewer heads in k\n"
          "and v than in q are grouped heads. All that is given holds at once.",
      .examples =
          {"einkern attention Q.npy K.npy V.npy --causal -o O.npy",
           "einkern attention Q.npy K.npy V.npy --causal=bottom_right --window 128,0 -o O.npy",
           "einkern attention Q.npy K.npy V.npy --lengths L.npy --weights W.npy -o O.npy"},
  });
  Texts texts;
  OptionalText out, weights, lse;
  bool plain = false;
  RunOptions run;
  options.value("-o,--out", "FILE", out, "write the output instead of printing it");
  options.value("--weights", "FILE", weights, "write the weights too, (..., head, query, key)");
  options.value("--lse", "FILE", lse, "write logsumexp of the scores too, (..., head, query)");
  options.optional_value("--causal", "PLACE", "top_left", texts.causal,
                         "hide later keys: top_left (default), bottom_right or an offset");
  options.value("--window", "L,R", texts.window,
                "see keys from query - L to query + R; -1 is open");
  options.value("--mask", "FILE", texts.mask, "bool, true attends; broadcasts from the right");
  options.value("--bias", "FILE", texts.bias, "added to the scores; -inf hides");
  options.value("--lengths", "FILE", texts.lengths, "integers: how many keys each batch entry has");
  options.value("--scale", "S", texts.scale, "factor of the scores (default: 1/sqrt(dim))");
  options.value("--softcap", "C", texts.softcap,
                "scores become C tanh(score / C) before the masks");
  options.flag("--no-fuse", plain, "run every step by itself; the same answer");
  run.add_to(options);
  const auto positional = options.parse(arguments);
  if (!positional) return;
  if (positional->size() == 4 && texts.causal) {
    for (const std::string& file : *positional) {
      if (file == "top_left" || file == "bottom_right") {
        options.refuse("--causal takes its value behind '=': --causal=" + file);
      }
    }
  }
  if (positional->size() != 3) {
    options.refuse("three files are needed, Q.npy K.npy V.npy, not " +
                   std::to_string(positional->size()));
  }
  AttentionOptions attention = parse(options, texts);
  run.check("attention");

  std::vector<std::string> inputs = *positional;
  for (const OptionalText& text : {texts.mask, texts.bias, texts.lengths}) {
    if (text) inputs.push_back(*text);
  }
  std::vector<OutputFile> outputs;
  if (out) outputs.push_back({"--out", *out});
  if (weights) outputs.push_back({"--weights", *weights});
  if (lse) outputs.push_back({"--lse", *lse});
  check_outputs(options, outputs, inputs);

  const Stopwatch loading;
  const Tensor q = load_tensor(inputs[0]), k = load_tensor(inputs[1]), v = load_tensor(inputs[2]);
  if (texts.mask) attention.mask = load_tensor(*texts.mask);
  if (texts.bias) attention.bias = load_tensor(*texts.bias);
  if (texts.lengths) attention.lengths = load_tensor(*texts.lengths);
  const double load_seconds = loading.seconds();

  const AttentionResult result = dot_product_attention(q, k, v, attention);
  std::vector<Expr> wanted = {result.output};
  if (weights) wanted.push_back(result.weights);
  if (lse) wanted.push_back(result.logsumexp);
  const std::vector<Tensor> values = run.run(wanted, !plain, load_seconds);

  std::vector<std::pair<std::string, Tensor>> files;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    files.emplace_back(outputs[i].path, values[i + (out ? 0 : 1)]);
  }
  write_outputs(files);
  if (!out) print_tensor(values[0]);
}

}  // namespace einkern::tools
