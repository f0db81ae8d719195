// SPDX-License-Identifier: Apache-2.0
// Cells to an aligned table for a terminal or to Markdown.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace einkern::tools {

enum class TableStyle : std::uint8_t { aligned, markdown };

/// Rows of text under headings.
class Table {
 public:
  enum class Align : std::uint8_t { left, right };
  struct Column {
    std::string heading;
    Align align = Align::right;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  /// One cell per column.
  void add(std::vector<std::string> cells);
  std::string str(TableStyle style) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace einkern::tools
