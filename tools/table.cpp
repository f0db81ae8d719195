// SPDX-License-Identifier: Apache-2.0
// Cells to an aligned table for a terminal or to Markdown.
#include "table.h"

#include <fmt/format.h>

#include <algorithm>

#include "../engine/base/error.h"

namespace einkern::tools {

void Table::add(std::vector<std::string> cells) {
  EINKERN_CHECK(cells.size() == columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::str(TableStyle style) const {
  std::string text;
  if (style == TableStyle::markdown) {
    std::string rule = "|";
    text = "|";
    for (const Column& column : columns_) {
      text += fmt::format(" {} |", column.heading);
      rule += column.align == Align::right ? "---:|" : "---|";
    }
    text += "\n" + rule + "\n";
    for (const auto& row : rows_) text += fmt::format("| {} |\n", fmt::join(row, " | "));
    return text;
  }
  std::vector<std::size_t> widths;
  std::vector<std::string> headings;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    headings.push_back(columns_[c].heading);
    widths.push_back(columns_[c].heading.size());
    for (const auto& row : rows_) widths[c] = std::max(widths[c], row[c].size());
  }
  const auto add_line = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const bool left = columns_[c].align == Align::left;
      if (c > 0) line += "  ";
      line += left ? fmt::format("{:<{}}", cells[c], widths[c])
                   : fmt::format("{:>{}}", cells[c], widths[c]);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  };
  add_line(headings);
  for (const auto& row : rows_) add_line(row);
  return text;
}

}  // namespace einkern::tools
