// SPDX-License-Identifier: Apache-2.0
// The table of words to a TextMate grammar.
#include "textmate.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace einkern::tools {
namespace {

using Json = nlohmann::ordered_json;

Json match(const std::string& name, const std::string& pattern) {
  return {{"name", name + ".einkern"}, {"match", pattern}};
}

/// One of these, as a whole name.
std::string any_of(const std::vector<std::string>& names) {
  return fmt::format("\\b({})\\b", fmt::join(names, "|"));
}

}  // namespace

std::string textmate_grammar(const Words& words) {
  std::vector<std::string> dtypes;
  for (int i = 0; i <= static_cast<int>(DType::f64); ++i) {
    dtypes.emplace_back(name_of(static_cast<DType>(i)));
  }
  Json patterns = Json::array();
  patterns.push_back(match("comment.line.number-sign", "#.*$"));
  patterns.push_back(match("string.quoted.double", "\"[^\"\\n]*\""));
  patterns.push_back(match("keyword.control", any_of({"def", "import", "input", "return"})));
  patterns.push_back(match("keyword.operator.word", any_of({"and", "not", "or"})));
  patterns.push_back(match("constant.language", any_of({"false", "inf", "nan", "pi", "true"})));
  patterns.push_back(match("storage.type", any_of(dtypes) + "(?=\\s*\\[)"));
  patterns.push_back(match("support.function", any_of(words.names()) + "(?=\\s*\\()"));
  patterns.push_back(match("variable.parameter", "\\b[\\p{L}_][\\p{L}\\d_]*(?=\\s*=[^=])"));
  patterns.push_back(match("constant.numeric", "\\b\\d+(\\.\\d+)?([eE][+-]?\\d+)?\\b"));
  patterns.push_back(match("keyword.operator", "\\*\\*|//|[<>=!]=|[-+*/%<>=]"));
  const Json grammar = {{"name", "einkern program"},
                        {"scopeName", "source.einkern"},
                        {"fileTypes", {"ein"}},
                        {"patterns", patterns}};
  return grammar.dump(2) + "\n";
}

}  // namespace einkern::tools
