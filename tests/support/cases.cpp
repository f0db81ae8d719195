// SPDX-License-Identifier: Apache-2.0
// The checked einsum examples of tests/data/einsum.json as structs, and the operands they speak of.
#include "cases.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace einkern::test {
namespace {

using Json = nlohmann::json;

std::vector<std::int64_t> to_integers(const Json& list) {
  std::vector<std::int64_t> labels;
  for (const Json& label : list) {
    labels.push_back(label == "..." ? EinsumCase::Sublists::kEllipsis : label.get<std::int64_t>());
  }
  return labels;
}

bool holds_names(const Json& sublists) {
  for (const Json& list : sublists) {
    for (const Json& label : list) {
      if (label.is_string() && label != "...") return true;
    }
  }
  return false;
}

std::string to_bracket_term(const Json& list) {
  std::string term = "[";
  for (const Json& label : list) term.append(label.get<std::string>()).append(" ");
  return term.append("]");
}

void read_sublists(const Json& json, EinsumCase& example) {
  const Json& inputs = json.at("sublists");
  const Json& output = json.at("outlist");
  if (holds_names(inputs)) {
    for (const Json& list : inputs) example.spec.append(to_bracket_term(list)).append(",");
    example.spec.pop_back();
    if (!output.is_null()) example.spec.append("->").append(to_bracket_term(output));
    return;
  }
  example.sublists.emplace();
  for (const Json& list : inputs) example.sublists->inputs.push_back(to_integers(list));
  if (!output.is_null()) example.sublists->output = to_integers(output);
}

EinsumCase read_case(const Json& json) {
  EinsumCase example;
  example.id = json.at("id");
  example.spec = json.at("spec");
  if (json.value("format", "") == "sublist") read_sublists(json, example);
  example.shapes = json.at("shapes");
  example.filled_with_ones = json.value("fill", "") == "ones";
  example.note = json.value("note", "");
  example.ext = json.value("ext", "");

  const bool extension = json.contains("ext_out_shape");
  example.ok = json.at("expect") == "ok" || extension;
  if (example.ok) {
    const std::string prefix = extension ? "ext_" : "";
    example.out_shape = json.at(prefix + "out_shape").get<std::vector<std::int64_t>>();
    example.out_sum = json.at(prefix + "out_sum");
    example.out_wsum = json.at(prefix + "out_wsum");
  }
  return example;
}

}  // namespace

std::vector<EinsumCase> read_einsum_cases() {
  std::ifstream file(EINKERN_TEST_DATA "/einsum.json");
  if (!file) throw std::runtime_error("no file " EINKERN_TEST_DATA "/einsum.json");
  const Json json = Json::parse(file);
  std::vector<EinsumCase> examples;
  for (const Json& example : json.at("cases")) examples.push_back(read_case(example));
  return examples;
}

std::vector<double> operand_values(const EinsumCase& example, std::size_t operand) {
  std::size_t count = 1;
  for (const std::int64_t size : example.shapes.at(operand))
    count *= static_cast<std::size_t>(size);
  std::vector<double> values(count, 1.0);
  if (example.filled_with_ones) return values;
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<double>((7 * i + 3 * operand + 1) % 11) - 5;
  }
  return values;
}

}  // namespace einkern::test
