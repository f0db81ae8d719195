// SPDX-License-Identifier: Apache-2.0
// Decoding with a cache: a prompt at once, in chunks and token by token gives the same, and how
// fast.
#include <einkern.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "decoder.h"

namespace {

namespace ek = einkern;
using Tokens = std::vector<std::int64_t>;
using Caches = std::vector<ek::KeyValueCache>;

constexpr std::int64_t kPrompt = 576, kChunk = 192, kCapacity = 768, kSteps = 64;
constexpr double kTolerance = 2e-6;  // of the largest logit

/// Tokens from a seed.
Tokens some_tokens(std::int64_t count, std::int64_t vocabulary) {
  Tokens tokens;
  const ek::Tensor uniform = ek::random({count}, 99, ek::f64);
  for (const double u : uniform.to_vector<double>()) {
    tokens.push_back(static_cast<std::int64_t>(u * static_cast<double>(vocabulary)));
  }
  return tokens;
}

/// Logits of all tokens, `chunk` of them at a time.
ek::Tensor in_chunks(const decode::Decoder& decoder, const Tokens& tokens, std::int64_t chunk,
                     Caches& caches) {
  std::vector<ek::Expr> parts;
  for (auto at = tokens.begin(); at != tokens.end();) {
    const auto end = at + std::min<std::int64_t>(chunk, tokens.end() - at);
    parts.emplace_back(decoder.append(Tokens(at, end), caches));
    at = end;
  }
  return ek::concat(parts, 0);
}

double largest(const ek::Expr& x) { return ek::Tensor(ek::max(ek::abs(x), {0, 1})).item<double>(); }

bool same_bits(const ek::Tensor& a, const ek::Tensor& b) {
  return std::memcmp(a.bytes(), b.bytes(), static_cast<std::size_t>(a.size()) * 4) == 0;
}

int run() {
  const decode::DecoderForm form;
  const decode::Decoder decoder(form, decode::seeded_weights(form, 1));
  const Tokens prompt = some_tokens(kPrompt, form.vocabulary);
  Caches caches = decode::caches_for(form, kCapacity);
  Caches chunked = decode::caches_for(form, kCapacity);
  Caches single = decode::caches_for(form, kCapacity);

  const ek::Tensor whole = decoder.append(prompt, caches);
  const ek::Tensor chunks = in_chunks(decoder, prompt, kChunk, chunked);
  const ek::Tensor steps = in_chunks(decoder, prompt, 1, single);
  const double difference = largest(steps - whole) / largest(whole);
  const bool equal = same_bits(chunks, whole), close = difference <= kTolerance;
  fmt::print("{} layers, {} heads on {} of keys, a window of {} in every second layer\n",
             form.layers, form.heads, form.kv_heads, form.window);
  fmt::print("{} tokens in chunks of {}: {}\n", kPrompt, kChunk,
             equal ? "the bits of all at once" : "DIFFERENT from all at once");
  fmt::print("{} tokens one by one: {:.1e} of the largest logit from all at once{}\n", kPrompt,
             difference, close ? "" : ", TOO MUCH");

  // The likeliest token again and again.
  Tokens said;
  ek::Tensor logits = whole.slice(0, kPrompt - 1);
  const std::int64_t plans = ek::plans_made();
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t step = 0; step < kSteps; ++step) {
    const auto row = logits.to_vector<float>();
    said.push_back(std::max_element(row.begin(), row.end()) - row.begin());
    logits = decoder.append({said.back()}, caches);
  }
  const std::chrono::duration<double, std::milli> passed = std::chrono::steady_clock::now() - start;
  fmt::print("then {} tokens, the likeliest each: {} ...\n", kSteps,
             fmt::join(said.begin(), said.begin() + 12, " "));
  fmt::print("{:.3f} ms a token, {} new plans\n", passed.count() / kSteps,
             ek::plans_made() - plans);
  return equal && close ? 0 : 1;
}

}  // namespace

int main(int argc, char**) {
  try {
    if (argc > 1) throw std::runtime_error("takes no arguments");
    return run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "decode: %s\n", error.what());
    return 1;
  }
}
