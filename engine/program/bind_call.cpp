// SPDX-License-Identifier: Apache-2.0
// Arguments of a call to the parameters of what is called.
#include <fmt/format.h>

#include <algorithm>

#include "resolve.h"
#include "suggest.h"

namespace einkern::program {
namespace {

/// Where the name of a call stands.
Span head_of(const Node& call) { return {call.span.begin, decode_utf8(call.name).size()}; }

/// The word with its parameters; of a long list those that must be given.
std::string head_text(const Word& word) {
  constexpr std::size_t kLongest = 100;
  std::string text = word.signature();
  if (text.size() <= kLongest) return text;
  text = word.name + "(";
  for (const Parameter& parameter : word.parameters) {
    if (!parameter.may_miss && !parameter.otherwise) text += parameter.name + ", ";
  }
  return text + "...)";
}

}  // namespace

std::vector<std::vector<std::size_t>> bind_call(const Source& source, const Node& call,
                                                const Word& word) {
  const std::vector<Parameter>& parameters = word.parameters;
  std::vector<std::vector<std::size_t>> bound(parameters.size());
  const auto refuse = [&](const Span& span, const std::string& fact) {
    fail_in<SyntaxError>(source, span, fmt::format("{}: {}", head_text(word), fact));
  };
  std::vector<std::size_t> places;  // of parameters that are given by position
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    if (!parameters[p].keyword) places.push_back(p);
  }
  std::size_t place = 0;
  bool named = false;
  for (std::size_t i = 0; i < call.children.size(); ++i) {
    const std::string& keyword = call.keywords[i];
    if (keyword.empty()) {
      if (named) refuse(call.children[i].span, "an argument without a name behind one with a name");
      if (place == places.size()) {
        refuse(call.children[i].span, fmt::format("takes {} argument{} without a name, not more",
                                                  places.size(), places.size() == 1 ? "" : "s"));
      }
      bound[places[place]].push_back(i);
      if (!parameters[places[place]].rest) ++place;
      continue;
    }
    named = true;
    const auto found = std::find_if(parameters.begin(), parameters.end(),
                                    [&](const Parameter& p) { return p.name == keyword; });
    if (found == parameters.end()) {
      std::vector<std::string> names;
      for (const Parameter& parameter : parameters) names.push_back(parameter.name);
      refuse(call.keyword_spans[i],
             fmt::format("no parameter '{}'{}", keyword, suggestion(keyword, names)));
    }
    if (found->rest) {
      refuse(call.keyword_spans[i], fmt::format("'{}' are given without a name", keyword));
    }
    auto& children = bound[static_cast<std::size_t>(found - parameters.begin())];
    if (!children.empty()) {
      refuse(call.keyword_spans[i], fmt::format("'{}' is given twice", keyword));
    }
    children.push_back(i);
  }
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const Parameter& parameter = parameters[p];
    if (bound[p].empty() && !parameter.may_miss && !parameter.otherwise && !parameter.rest) {
      refuse(head_of(call), fmt::format("'{}' is not given", parameter.name));
    }
  }
  return bound;
}

}  // namespace einkern::program
