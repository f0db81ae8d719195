// SPDX-License-Identifier: Apache-2.0
// The decoder with its cache: against float64, in pieces against the whole, and blind to what lies
// behind the cache's length.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "../../examples/decode/decoder.h"
#include "../tools/contains.h"
#include "../tools/process.h"

using namespace einkern;
using decode::caches_for;
using decode::Decoder;
using decode::DecoderForm;

namespace {

using Tokens = std::vector<std::int64_t>;
using Caches = std::vector<KeyValueCache>;
using Rows = std::vector<std::vector<double>>;

constexpr DecoderForm kForm = {.layers = 2,
                               .model = 24,
                               .heads = 6,
                               .kv_heads = 2,
                               .head_dim = 8,
                               .inner = 40,
                               .vocabulary = 31,
                               .window = 20};

Tokens random_tokens(std::size_t count, std::uint32_t seed) {
  std::mt19937 generator(seed);
  Tokens tokens(count);
  for (auto& token : tokens) token = generator() % kForm.vocabulary;
  return tokens;
}

Decoder seeded() { return Decoder(kForm, decode::seeded_weights(kForm, 5)); }

/// Logits of all tokens, `chunk` of them at a time.
std::vector<float> logits_in_chunks(const Decoder& decoder, const Tokens& tokens, std::size_t chunk,
                                    Caches& caches) {
  std::vector<float> all;
  for (std::size_t at = 0; at < tokens.size(); at += chunk) {
    const auto end = std::min(at + chunk, tokens.size());
    const Tensor part = decoder.append(Tokens(tokens.begin() + at, tokens.begin() + end), caches);
    const auto values = part.to_vector<float>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

/// Largest difference in units of the largest logit.
double deviation_of(const std::vector<float>& got, const std::vector<float>& want) {
  REQUIRE(got.size() == want.size());
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double difference = std::abs(static_cast<double>(got[i]) - want[i]);
    worst = std::isnan(difference) ? INFINITY : std::max(worst, difference);
    largest = std::max<double>(largest, std::abs(want[i]));
  }
  return worst / largest;
}

// The decoder in float64, row by row from its formula.

Rows rows_of(const Tensor& tensor) {
  const auto values = tensor.astype(f64).to_vector<double>();
  const auto columns = static_cast<std::ptrdiff_t>(tensor.shape(-1));
  Rows rows;
  for (auto at = values.begin(); at != values.end(); at += columns) {
    rows.emplace_back(at, at + columns);
  }
  return rows;
}

Rows product(const Rows& x, const Tensor& weight) {
  const Rows w = rows_of(weight);
  Rows y(x.size(), std::vector<double>(w[0].size()));
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = 0; j < w.size(); ++j) {
      for (std::size_t o = 0; o < w[0].size(); ++o) y[i][o] += x[i][j] * w[j][o];
    }
  }
  return y;
}

Rows normed(Rows x, const Tensor& weight) {
  const auto w = rows_of(weight)[0];
  for (auto& row : x) {
    double square = 0;
    for (const double value : row) square += value * value / static_cast<double>(row.size());
    for (std::size_t j = 0; j < row.size(); ++j) row[j] *= w[j] / std::sqrt(square + kForm.eps);
  }
  return x;
}

/// Pairs (j, j + d / 2) of every head, turned by the row's position.
void turn(Rows& x) {
  const auto d = static_cast<std::size_t>(kForm.head_dim);
  for (std::size_t position = 0; position < x.size(); ++position) {
    for (std::size_t head = 0; head < x[position].size(); head += d) {
      for (std::size_t j = 0; j < d / 2; ++j) {
        const double angle = static_cast<double>(position) *
                             std::pow(kForm.rope_base, -2.0 * static_cast<double>(j) / d);
        double &a = x[position][head + j], &b = x[position][head + j + d / 2];
        const double turned = a * std::cos(angle) - b * std::sin(angle);
        b = b * std::cos(angle) + a * std::sin(angle);
        a = turned;
      }
    }
  }
}

Rows attended(const Rows& q, const Rows& k, const Rows& v, bool windowed) {
  const auto d = static_cast<std::size_t>(kForm.head_dim);
  const auto group = static_cast<std::size_t>(kForm.heads / kForm.kv_heads);
  Rows out(q.size(), std::vector<double>(q[0].size()));
  for (std::size_t i = 0; i < q.size(); ++i) {
    const auto seen = static_cast<std::size_t>(kForm.window);
    const std::size_t first = windowed && i + 1 > seen ? i + 1 - seen : 0;
    for (std::size_t h = 0; h < static_cast<std::size_t>(kForm.heads); ++h) {
      const std::size_t from = h * d, to = h / group * d;
      std::vector<double> weights;
      double total = 0;
      for (std::size_t j = first; j <= i; ++j) {
        double score = 0;
        for (std::size_t c = 0; c < d; ++c) score += q[i][from + c] * k[j][to + c];
        weights.push_back(std::exp(score / std::sqrt(static_cast<double>(d))));
        total += weights.back();
      }
      for (std::size_t j = first; j <= i; ++j) {
        for (std::size_t c = 0; c < d; ++c) {
          out[i][from + c] += weights[j - first] / total * v[j][to + c];
        }
      }
    }
  }
  return out;
}

void add_to(Rows& x, const Rows& y) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = 0; j < x[i].size(); ++j) x[i][j] += y[i][j];
  }
}

std::vector<float> float64_logits(const decode::DecoderWeights& weights, const Tokens& tokens) {
  const Rows table = rows_of(weights.embedding);
  Rows x;
  for (const std::int64_t token : tokens) x.push_back(table[static_cast<std::size_t>(token)]);
  for (std::size_t layer = 0; layer < weights.layers.size(); ++layer) {
    const decode::Layer& w = weights.layers[layer];
    const Rows h = normed(x, w.attention_norm);
    Rows q = product(h, w.q), k = product(h, w.k);
    turn(q);
    turn(k);
    add_to(x, product(attended(q, k, product(h, w.v), layer % 2 == 1), w.out));
    const Rows inner = normed(x, w.inner_norm);
    Rows gate = product(inner, w.gate);
    const Rows up = product(inner, w.up);
    for (std::size_t i = 0; i < gate.size(); ++i) {
      for (std::size_t j = 0; j < gate[i].size(); ++j) {
        gate[i][j] *= up[i][j] / (1 + std::exp(-gate[i][j]));
      }
    }
    add_to(x, product(gate, w.down));
  }
  std::vector<float> logits;
  for (const auto& row : product(normed(x, weights.norm), weights.head)) {
    for (const double value : row) logits.push_back(static_cast<float>(value));
  }
  return logits;
}

}  // namespace

TEST_SUITE("examples") {
  TEST_CASE("the decoder agrees with float64, and with itself token by token") {
    const Decoder decoder = seeded();
    const Tokens tokens = random_tokens(70, 1);
    Caches whole = caches_for(kForm, 96);
    const auto got = logits_in_chunks(decoder, tokens, tokens.size(), whole);
    CHECK(deviation_of(got, float64_logits(decode::seeded_weights(kForm, 5), tokens)) < 2e-6);
    for (const KeyValueCache& cache : whole) CHECK(cache.length() == 70);
    for (const std::size_t chunk : {1, 2, 7, 33}) {
      CAPTURE(chunk);
      Caches cache = caches_for(kForm, 96);
      CHECK(deviation_of(logits_in_chunks(decoder, tokens, chunk, cache), got) < 2e-6);
      CHECK(cache[1].length() == 70);
    }
  }

  TEST_CASE("chunks of whole row tiles give the bits of all at once") {
    const Decoder decoder = seeded();
    const Tokens tokens = random_tokens(576, 2);
    Caches whole = caches_for(kForm, 600);
    const auto want = logits_in_chunks(decoder, tokens, tokens.size(), whole);
    for (const std::size_t chunk : {192, 384}) {
      CAPTURE(chunk);
      Caches cache = caches_for(kForm, 600);
      const auto got = logits_in_chunks(decoder, tokens, chunk, cache);
      REQUIRE(got.size() == want.size());
      CHECK(std::memcmp(got.data(), want.data(), got.size() * sizeof(float)) == 0);
    }
  }

  TEST_CASE("what lies behind the cache's length is not read") {
    const Decoder decoder = seeded();
    const Tokens tokens = random_tokens(40, 3);
    std::vector<std::vector<float>> logits;
    for (const double behind : {0.0, std::numeric_limits<double>::quiet_NaN()}) {
      Caches cache = caches_for(kForm, 64);
      for (const KeyValueCache& layer : cache) {
        layer.keys().fill(behind);
        layer.values().fill(behind);
      }
      logits.push_back(logits_in_chunks(decoder, tokens, 13, cache));
    }
    for (const float value : logits[1]) REQUIRE(std::isfinite(value));
    // NaN in a block of values that is seen in part takes the careful loop: not the same bits.
    CHECK(deviation_of(logits[1], logits[0]) < 2e-6);
  }

  TEST_CASE("steps of one size share their plans, whatever the length") {
    const Decoder decoder = seeded();
    const Tokens tokens = random_tokens(60, 4);
    Caches cache = caches_for(kForm, 64);
    decoder.append({1}, cache);
    const std::int64_t plans = plans_made();
    logits_in_chunks(decoder, tokens, 1, cache);
    CHECK(plans_made() == plans);
  }

  TEST_CASE("tokens that the decoder cannot take") {
    const Decoder decoder = seeded();
    Caches cache = caches_for(kForm, 24);
    CHECK_THROWS_AS(decoder.append(Tokens(6, 1), cache), ValueError);  // more than its window takes
    cache = caches_for(kForm, 24);
    logits_in_chunks(decoder, Tokens(23, 1), 5, cache);
    CHECK_THROWS_AS(decoder.append({1, 2}, cache), ValueError);
    CHECK_THROWS_WITH_AS(decoder.append({}, cache), "append: there are no tokens", ValueError);
    CHECK_THROWS_AS(decoder.append({31}, cache), ValueError);
    CHECK(cache[0].length() == 23);
    CHECK(decoder.append({30}, cache).shape() == Shape{1, 31});
  }

  TEST_CASE("the decode program compares a prompt at once, in chunks and token by token") {
    const test::Finished done = test::Process(EINKERN_DECODE, {}, "/").wait();
    CHECK(done.code == 0);
    CHECK(done.err == "");
    CHECK(test::contains(done.out, "576 tokens in chunks of 192: the bits of all at once\n"));
    CHECK(test::contains(done.out, " of the largest logit from all at once\n"));
    CHECK(test::contains(done.out, ", 0 new plans\n"));
  }
}
