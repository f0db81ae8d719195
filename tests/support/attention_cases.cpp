// SPDX-License-Identifier: Apache-2.0
// Reads attention.json: shapes, operands by the file's filling rules, options, expected results.
#include "attention_cases.h"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace einkern::test {
namespace {

using Json = nlohmann::json;

double number(const Json& json) {
  if (json.is_number()) return json.get<double>();
  const auto text = json.get<std::string>();
  if (text == "inf" || text == "+inf") return INFINITY;
  if (text == "-inf") return -INFINITY;
  throw std::runtime_error("attention.json: not a number: " + text);
}

/// A nested list; `shape` of a ragged or empty list is not needed.
Array array_from(const Json& json) {
  Array result;
  result.data.clear();
  const Json* level = &json;
  while (level->is_array()) {
    result.shape.push_back(static_cast<std::int64_t>(level->size()));
    level = &level->front();
  }
  const auto collect = [&](const auto& self, const Json& part) -> void {
    if (!part.is_array()) return result.data.push_back(number(part));
    for (const Json& item : part) self(self, item);
  };
  collect(collect, json);
  return result;
}

/// An operand described by a rule, a list, or one of the file's sentences.
Array operand(const Json& rule, const Sizes& shape) {
  if (rule.is_array()) return array_from(rule);
  if (rule.is_object()) return generated(shape, rule.at("gen").get<std::int64_t>());
  const auto text = rule.get<std::string>();
  Array result(shape);
  if (text == "zeros") return result;
  if (text == "v[j]=j") {
    for_each_index(shape,
                   [&](const Sizes& i) { result.at(i) = static_cast<double>(i[i.size() - 2]); });
    return result;
  }
  if (text == "all rows equal gen(1x8,3)") {
    const Array row = generated({1, 8}, 3);
    for_each_index(shape, [&](const Sizes& i) { result.at(i) = row.at(i); });
    return result;
  }
  if (text == "kv head 0 all 10, kv head 1 all 20") {
    for_each_index(shape, [&](const Sizes& i) { result.at(i) = i[1] == 0 ? 10 : 20; });
    return result;
  }
  throw std::runtime_error("attention.json: unknown filling rule: " + text);
}

Array bias_from(const Json& rule, std::int64_t queries, std::int64_t keys) {
  if (rule.is_array()) return array_from(rule);
  if (rule.get<std::string>() != "0 where i-10<j<=i else -inf") {
    throw std::runtime_error("attention.json: unknown bias: " + rule.get<std::string>());
  }
  Array result({queries, keys});
  for_each_index(result.shape, [&](const Sizes& i) {
    result.at(i) = i[0] - 10 < i[1] && i[1] <= i[0] ? 0 : -INFINITY;
  });
  return result;
}

Digest digest_from(const Json& json) {
  return {json.at("shape").get<Sizes>(),    json.at("sum").get<double>(),
          json.at("sum_abs").get<double>(), json.at("weighted_sum").get<double>(),
          json.at("first").get<double>(),   json.at("last").get<double>()};
}

void read_options(const Json& options, AttentionCase& result) {
  if (options.contains("scale") && options["scale"].is_number()) {
    result.scale = options["scale"].get<double>();
  }
  if (options.contains("softcap")) result.softcap = options["softcap"].get<double>();
  if (options.contains("window")) {
    result.window = {options["window"][0].get<std::int64_t>(),
                     options["window"][1].get<std::int64_t>()};
  }
  if (options.contains("kv_lens")) options["kv_lens"].get_to(result.lengths);
  if (options.contains("slopes")) options["slopes"].get_to(result.slopes);
  result.bottom_right = options.contains("causal") && options["causal"] == "bottom-right";
  // A few examples list their operands among the options.
  for (const char* name : {"q", "k"}) {
    if (options.contains(name) && options[name].is_array()) {
      result.inputs[name] = array_from(options[name]);
    }
  }
  if (options.contains("bias")) {
    const Sizes &q = result.shapes.at("q"), &k = result.shapes.at("k");
    result.inputs["bias"] = bias_from(options["bias"], q[q.size() - 2], k[k.size() - 2]);
  }
}

void read_expected(const Json& expected, AttentionCase& result) {
  result.error = expected.value("error", false);
  if (expected.contains("value")) result.value = array_from(expected["value"]);
  if (expected.contains("property")) result.property = expected["property"].get<std::string>();
  if (expected.contains("digest")) result.digests[""] = digest_from(expected["digest"]);
  for (const auto& [name, json] : expected.items()) {
    if (name != "digest" && json.is_object()) result.digests[name] = digest_from(json);
  }
}

AttentionCase read_case(const Json& json) {
  AttentionCase result;
  result.id = json.at("id").get<std::string>();
  result.variant = json.at("variant").get<std::string>();
  result.stage = json.at("stage").get<std::string>();
  for (const auto& [name, shape] : json.at("shapes").items()) {
    if (shape.is_array()) result.shapes[name] = shape.get<Sizes>();
  }
  const Json inputs = json.value("inputs", Json::object());
  for (const auto& [name, rule] : inputs.items()) {
    if (result.shapes.count(name) > 0) {
      result.inputs[name] = operand(rule, result.shapes.at(name));
    }
  }
  read_options(json.at("options"), result);
  const std::pair<const char*, std::int64_t> defaults[] = {{"q", 1}, {"k", 2}, {"v", 3}};
  for (const auto& [name, s] : defaults) {
    const auto shape = result.shapes.find(name);
    if (shape != result.shapes.end() && result.inputs.count(name) == 0) {
      result.inputs[name] = generated(shape->second, s);
    }
  }
  read_expected(json.at("expected"), result);
  return result;
}

}  // namespace

Digest digest_of(const Array& array) {
  Digest digest{array.shape, 0, 0, 0, 0, 0};
  for (std::size_t i = 0; i < array.data.size(); ++i) {
    digest.sum += array.data[i];
    digest.sum_abs += std::fabs(array.data[i]);
    digest.weighted_sum += static_cast<double>(i % 97 + 1) * array.data[i];
  }
  if (!array.data.empty()) {
    digest.first = array.data.front();
    digest.last = array.data.back();
  }
  return digest;
}

std::vector<AttentionCase> read_attention_cases() {
  std::ifstream file(EINKERN_TEST_DATA "/attention.json");
  if (!file) throw std::runtime_error("attention.json: cannot be read");
  std::vector<AttentionCase> cases;
  const Json whole = Json::parse(file);
  for (const Json& json : whole.at("cases")) cases.push_back(read_case(json));
  return cases;
}

Array generated(const Sizes& shape, std::int64_t s) {
  Array result(shape);
  for (std::size_t i = 0; i < result.data.size(); ++i) {
    result.data[i] = static_cast<double>((7 * static_cast<std::int64_t>(i) + 13 * s) % 23) / 11 - 1;
  }
  return result;
}

Array linspace(const Sizes& shape, double first, double last) {
  Array result(shape);
  const auto steps = static_cast<double>(result.data.size() - 1);
  for (std::size_t i = 0; i < result.data.size(); ++i) {
    result.data[i] = first + (last - first) * static_cast<double>(i) / steps;
  }
  return result;
}

Array transposed(const Array& matrix) {
  Array result({matrix.shape[1], matrix.shape[0]});
  for_each_index(matrix.shape, [&](const Sizes& i) { result.at({i[1], i[0]}) = matrix.at(i); });
  return result;
}

double error_of(const Array& got, const Array& value) {
  // A value may be given for the flat result only.
  return got.data.size() == value.data.size()
             ? worst_error(std::span<const double>(got.data), std::span<const double>(value.data))
             : INFINITY;
}

double error_of(const Array& got, const Digest& want) {
  const Digest have = digest_of(got);
  if (have.shape != want.shape) return INFINITY;
  const double size = std::max(1.0, want.sum_abs);
  const double errors[] = {
      std::fabs(have.sum - want.sum) / size, std::fabs(have.sum_abs - want.sum_abs) / size,
      std::fabs(have.weighted_sum - want.weighted_sum) / (97 * size),
      std::fabs(have.first - want.first) / std::max(1.0, std::fabs(want.first)),
      std::fabs(have.last - want.last) / std::max(1.0, std::fabs(want.last))};
  double worst = 0;
  for (const double error : errors) worst = std::isnan(error) ? INFINITY : std::max(worst, error);
  return worst;
}

}  // namespace einkern::test
