// SPDX-License-Identifier: Apache-2.0
// Comments to the statements they stand at.
#include "comments.h"

#include <algorithm>

namespace einkern::program {
namespace {

/// A comment, or a blank line (then `text` is empty).
struct Remark {
  std::size_t line = 0;
  std::size_t at = 0;  // place of the `#`, or of the line's end
  bool alone = true;   // nothing stands before it on its line
  std::string text;
};

std::vector<Remark> remarks_of(const Source& source) {
  std::vector<Remark> remarks;
  for (std::size_t line = 0; line < source.line_count(); ++line) {
    const std::u32string_view text = source.line(line);
    const std::size_t first = std::min(text.find_first_not_of(U" \t"), text.size());
    if (first == text.size()) {
      remarks.push_back({line, source.line_begin(line) + text.size(), true, ""});
      continue;
    }
    bool quoted = false;
    for (std::size_t i = first; i < text.size(); ++i) {
      if (text[i] == U'"') quoted = !quoted;
      if (text[i] != U'#' || quoted) continue;
      // A carriage return at the end would be part of the line's end when it is read again.
      const std::size_t end = text.find_last_not_of(U" \t\r");
      remarks.push_back({line, source.line_begin(line) + i, i == first,
                         encode_utf8(text.substr(i, end + 1 - i))});
      break;
    }
  }
  return remarks;
}

/// Statements in the order of the text, functions before their bodies.
void flatten(std::vector<Statement>& statements, std::vector<Statement*>& all) {
  for (Statement& statement : statements) {
    all.push_back(&statement);
    flatten(statement.body, all);
  }
}

void add_line(std::vector<std::string>& lines, const std::string& text) {
  if (text.empty() && !lines.empty() && lines.back().empty()) return;
  lines.push_back(text);
}

}  // namespace

void attach_comments(const Source& source, Tree& tree) {
  std::vector<Statement*> all;
  flatten(tree.statements, all);
  std::size_t next = 0;  // the first statement that does not end before the remark
  for (const Remark& remark : remarks_of(source)) {
    while (next < all.size() && all[next]->span.begin + all[next]->span.size <= remark.at) ++next;
    const bool blank = remark.text.empty();
    const bool at_top = next == 0 && (all.empty() ? tree.below : all.front()->above).empty();
    if (blank && at_top) continue;
    if (!remark.alone && next > 0) {
      const Span& last = all[next - 1]->span;
      if (source.line_of(last.begin + last.size) == remark.line) {
        all[next - 1]->beside = remark.text;
        continue;
      }
    }
    if (next == all.size()) {
      add_line(tree.below, remark.text);
    } else if (!blank || all[next]->span.begin > remark.at) {
      add_line(all[next]->above, remark.text);
    }
  }
  while (!tree.below.empty() && tree.below.back().empty()) tree.below.pop_back();
}

}  // namespace einkern::program
