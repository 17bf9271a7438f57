// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/text.h"

#include <cstddef>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

namespace berth::cli {

enum class Align { left, right };

struct Column {
  std::string title;
  Align align = Align::left;
  // Shrinks on a narrow terminal and loses the beginning of its texts; the table's first column does so last.
  bool shrinks = false;
  bool spare = false;  // left out on a narrow terminal where every cell is "-"
  // Above 0: left out on a narrow terminal, figures or not, the column with the highest number first.
  int leaves = 0;

  static Column text(std::string title) { return {std::move(title)}; }
  // Names and other texts that shrink.
  static Column name(std::string title) { return {std::move(title), Align::left, true}; }
  static Column figure(std::string title) { return {std::move(title), Align::right}; }
  Column spared() const { return {title, align, shrinks, true, leaves}; }
};

struct Cell {
  Cell(std::string content, Colour ink = Colour::none) : text(std::move(content)), colour(ink) {}  // NOLINT
  Cell(const char* content) : text(content) {}                                                     // NOLINT
  std::string text;
  Colour colour = Colour::none;
};

// Aligned columns, two blanks apart, measured by the width of texts on a terminal, not by their bytes.
class Table {
 public:
  explicit Table(std::vector<Column> columns, std::string indent = "");
  // One cell a column.
  void add(std::vector<Cell> row);
  bool empty() const { return rows_.empty(); }
  void print(std::ostream& out, const Style& style) const;

 private:
  // Width of each column, 0 for those left out.
  std::vector<std::size_t> widths(const Style& style) const;

  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
  std::string indent_;
};

}  // namespace berth::cli
