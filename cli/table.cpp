// SPDX-License-Identifier: Apache-2.0
#include "cli/table.h"

#include <algorithm>
#include <ostream>
#include <utility>

namespace berth::cli {

namespace {

constexpr std::size_t kGap = 2;
// A shrinking column keeps this much, however narrow the terminal is.
constexpr std::size_t kLeast = 12;
// Before it shrinks below this, columns that may leave do so.
constexpr std::size_t kLegible = 20;

}  // namespace

Table::Table(std::vector<Column> columns, std::string indent)
    : columns_(std::move(columns)), indent_(std::move(indent)) {}

void Table::add(std::vector<Cell> row) {
  for (Cell& cell : row) cell.text = printable(cell.text);
  rows_.push_back(std::move(row));
}

std::vector<std::size_t> Table::widths(const Style& style) const {
  std::vector<std::size_t> widths;
  std::size_t total = indent_.size();
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = display_width(columns_[i].title);
    for (const auto& row : rows_) width = std::max(width, display_width(row[i].text));
    widths.push_back(width);
    total += width + (i > 0 ? kGap : 0);
  }
  if (style.width == 0) return widths;
  for (std::size_t i = columns_.size(); i-- > 0 && total > style.width;) {
    const auto unknown = [i](const std::vector<Cell>& row) { return row[i].text == "-"; };
    if (!columns_[i].spare || !std::all_of(rows_.begin(), rows_.end(), unknown)) continue;
    total -= widths[i] + kGap;
    widths[i] = 0;
  }
  const auto may_shrink_by = [&] {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].shrinks && widths[i] > kLegible) sum += widths[i] - kLegible;
    }
    return sum;
  };
  while (total > style.width + may_shrink_by()) {
    std::size_t next = columns_.size();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].leaves == 0 || widths[i] == 0) continue;
      if (next == columns_.size() || columns_[i].leaves > columns_[next].leaves) next = i;
    }
    if (next == columns_.size()) break;
    total -= widths[next] + kGap;
    widths[next] = 0;
  }
  // The widest of the others shrinks before the first column, which tells rows apart.
  std::vector<std::size_t> shrinking;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].shrinks && widths[i] > kLeast) shrinking.push_back(i);
  }
  const bool first = !shrinking.empty() && shrinking.front() == 0;
  if (first) shrinking.erase(shrinking.begin());
  while (total > style.width && !shrinking.empty()) {
    const auto widest = *std::max_element(shrinking.begin(), shrinking.end(),
                                          [&](auto a, auto b) { return widths[a] < widths[b]; });
    if (widths[widest] <= kLeast) break;
    --widths[widest];
    --total;
  }
  if (first && total > style.width) widths[0] -= std::min(total - style.width, widths[0] - kLeast);
  return widths;
}

void Table::print(std::ostream& out, const Style& style) const {
  const std::vector<std::size_t> wide = widths(style);
  const auto line = [&](const auto& cell_at) {
    std::string text = indent_;
    std::size_t pending = 0;  // blanks are written only before more text
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (wide[i] == 0) continue;
      const Cell cell = cell_at(i);
      const std::string shown = keep_end(cell.text, wide[i]);
      const std::size_t room = wide[i] - std::min(wide[i], display_width(shown));
      if (columns_[i].align == Align::right) pending += room;
      if (!shown.empty()) {
        text.append(pending, ' ');
        text += paint(style, cell.colour, shown);
        pending = 0;
      }
      if (columns_[i].align == Align::left) pending += room;
      pending += kGap;
    }
    out << text << "\n";
  };
  line([&](std::size_t i) { return Cell(columns_[i].title, Colour::bold); });
  for (const auto& row : rows_) line([&](std::size_t i) { return row[i]; });
}

}  // namespace berth::cli
