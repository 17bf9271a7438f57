// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/topology.h"
#include "replay/difference.h"
#include "replay/figures.h"
#include "replay/history.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace berth::replay {

// One side as the page shows it.
struct PageSide {
  std::string name;  // of its settings
  const Figures* figures = nullptr;
  const History* history = nullptr;
};

// Measurements on the host itself, as text.
struct PageTable {
  struct Column {
    std::string name;
    bool figure = false;
  };
  std::string title;
  std::vector<std::string> notes;
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
  std::vector<double> bars;  // one for each row, 0 to 1; or none
};

struct Page {
  std::string host;
  double begun = 0;  // of the first tick, epoch seconds
  double ended = 0;  // of the last one
  std::uint64_t ticks = 0;
  std::optional<std::string> cut;  // why the trace ends early
  const model::Topology* topology = nullptr;
  std::vector<PageSide> sides;               // one or two
  const Differences* differences = nullptr;  // with two sides
  std::vector<PageTable> measured;
};

// The page as one HTML document. It loads nothing and runs no script. Names in it come from workloads, and
// are shown as text.
std::string page_html(const Page& page);

// "1.50", "3.2 GiB", "2 h 10 min"; "-" for an unknown figure.
std::string figure_text(const Figure& figure);
// The second minus the first, with its sign; "" where they are equal or one is not known.
std::string difference_text(const Figure& first, const Figure& second);

}  // namespace berth::replay
