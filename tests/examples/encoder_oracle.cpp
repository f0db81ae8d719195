// SPDX-License-Identifier: Apache-2.0
// The sentence encoder in float64: embedding, attention, two layers, norms, mean.
#include "encoder_oracle.h"

#include <algorithm>
#include <cmath>

namespace einkern::test {
namespace {

Matrix linear(const Matrix& x, const Matrix& weight, const Matrix& bias) {
  Matrix y{x.rows, weight.rows, std::vector<double>(x.rows * weight.rows)};
  for (std::size_t i = 0; i < x.rows; ++i) {
    for (std::size_t o = 0; o < weight.rows; ++o) {
      double sum = bias(0, o);
      for (std::size_t j = 0; j < x.columns; ++j) sum += x(i, j) * weight(o, j);
      y(i, o) = sum;
    }
  }
  return y;
}

void normalise(Matrix& x, const Matrix& weight, const Matrix& bias, double eps) {
  for (std::size_t i = 0; i < x.rows; ++i) {
    double mean = 0, variance = 0;
    const auto n = static_cast<double>(x.columns);
    for (std::size_t j = 0; j < x.columns; ++j) mean += x(i, j) / n;
    for (std::size_t j = 0; j < x.columns; ++j) variance += std::pow(x(i, j) - mean, 2) / n;
    for (std::size_t j = 0; j < x.columns; ++j) {
      x(i, j) = (x(i, j) - mean) / std::sqrt(variance + eps) * weight(0, j) + bias(0, j);
    }
  }
}

void add(Matrix& x, const Matrix& y) {
  for (std::size_t i = 0; i < x.values.size(); ++i) x.values[i] += y.values[i];
}

Matrix attend(const Matrix& q, const Matrix& k, const Matrix& v, std::size_t heads) {
  const std::size_t d = q.columns / heads;
  Matrix out{q.rows, q.columns, std::vector<double>(q.values.size())};
  for (std::size_t h = 0; h < heads; ++h) {
    for (std::size_t i = 0; i < q.rows; ++i) {
      std::vector<double> weights(k.rows);
      double total = 0;
      for (std::size_t j = 0; j < k.rows; ++j) {
        double score = 0;
        for (std::size_t c = h * d; c < (h + 1) * d; ++c) score += q(i, c) * k(j, c);
        weights[j] = std::exp(score / std::sqrt(static_cast<double>(d)));
        total += weights[j];
      }
      for (std::size_t j = 0; j < k.rows; ++j) {
        for (std::size_t c = h * d; c < (h + 1) * d; ++c) {
          out(i, c) += weights[j] / total * v(j, c);
        }
      }
    }
  }
  return out;
}

}  // namespace

std::vector<double> encode_sentence(const std::map<std::string, Matrix>& weights,
                                    const std::vector<std::int64_t>& words, std::size_t heads,
                                    double eps) {
  const auto at = [&](const std::string& name) -> const Matrix& { return weights.at(name); };
  const Matrix& table = at("embeddings.word_embeddings.weight");
  const std::size_t m = table.columns;
  Matrix x{words.size(), m, std::vector<double>(words.size() * m)};
  for (std::size_t i = 0; i < x.rows; ++i) {
    for (std::size_t j = 0; j < m; ++j) {
      x(i, j) = table(static_cast<std::size_t>(words[i]), j) +
                at("embeddings.position_embeddings.weight")(i, j) +
                at("embeddings.token_type_embeddings.weight")(0, j);
    }
  }
  const auto norm = [&](const std::string& name) {
    normalise(x, at(name + ".weight"), at(name + ".bias"), eps);
  };
  norm("embeddings.LayerNorm");
  for (int i = 0; weights.count("encoder.layer." + std::to_string(i) + ".output.dense.weight");
       ++i) {
    const std::string prefix = "encoder.layer." + std::to_string(i) + ".";
    const auto apply = [&](const std::string& name, const Matrix& y) {
      return linear(y, at(prefix + name + ".weight"), at(prefix + name + ".bias"));
    };
    const Matrix heads_out =
        attend(apply("attention.self.query", x), apply("attention.self.key", x),
               apply("attention.self.value", x), heads);
    add(x, apply("attention.output.dense", heads_out));
    norm(prefix + "attention.output.LayerNorm");
    Matrix hidden = apply("intermediate.dense", x);
    for (double& h : hidden.values) h = h / 2 * (1 + std::erf(h / std::sqrt(2.0)));
    add(x, apply("output.dense", hidden));
    norm(prefix + "output.LayerNorm");
  }
  std::vector<double> mean(m);
  double square = 0;
  for (std::size_t j = 0; j < m; ++j) {
    for (std::size_t i = 0; i < x.rows; ++i) mean[j] += x(i, j) / static_cast<double>(x.rows);
    square += mean[j] * mean[j];
  }
  for (double& value : mean) value /= std::sqrt(square);
  return mean;
}

}  // namespace einkern::test
