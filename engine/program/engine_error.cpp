// SPDX-License-Identifier: Apache-2.0
// Messages with an equation and carets of their own to messages with a line of the program.
#include "engine_error.h"

#include <optional>
#include <vector>

namespace einkern::program {
namespace {

/// A message of the engine: the fact, and the text with carets that may follow it.
struct Parts {
  std::string fact, text, carets;
};

Parts parts_of(const std::string& message) {
  Parts parts;
  const std::size_t text = message.find("\n    ");
  parts.fact = message.substr(0, text);
  if (text == message.npos) return parts;
  const std::size_t carets = message.find("\n    ", text + 1);
  parts.text = message.substr(text + 5, carets == message.npos ? carets : carets - text - 5);
  if (carets != message.npos) parts.carets = message.substr(carets + 5);
  return parts;
}

/// The text literal below `node` that says exactly this.
const Node* find_text(const Node& node, const std::string& text) {
  if (node.kind == Node::Kind::text || node.kind == Node::Kind::naming) {
    if (node.name == text) return &node;
  }
  for (const Node& child : node.children) {
    if (const Node* found = find_text(child, text)) return found;
  }
  return nullptr;
}

std::vector<Span> moved(const std::string& carets, std::size_t by) {
  std::vector<Span> spans;
  for (std::size_t i = 0; i < carets.size(); ++i) {
    if (carets[i] != '^') continue;
    const std::size_t begin = i;
    while (i + 1 < carets.size() && carets[i + 1] == '^') ++i;
    spans.push_back({by + begin, i + 1 - begin});
  }
  return spans;
}

}  // namespace

std::string place_error(const Source& source, const Node& node, const std::string& message) {
  const Parts parts = parts_of(message);
  if (parts.text.empty()) return source.message(parts.fact, {node.span});
  if (const Node* literal = find_text(node, parts.text)) {
    // `x["bhqd"]` ends with the text, a quote and a bracket.
    const std::size_t inside =
        literal->kind == Node::Kind::text
            ? literal->span.begin + 1
            : literal->span.begin + literal->span.size - 2 - decode_utf8(parts.text).size();
    if (!parts.carets.empty()) return source.message(parts.fact, moved(parts.carets, inside));
  }
  return source.message(parts.fact, {node.span}) + message.substr(parts.fact.size());
}

}  // namespace einkern::program
