// SPDX-License-Identifier: Apache-2.0
// A plot of groups of points, as an SVG picture that needs nothing else.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace berth::bench {

struct Series {
  double mean = 0;
  std::vector<double> points;  // one of each seed
};

struct Group {
  std::string name;
  std::vector<Series> series;  // as many as Plot::series
};

struct Plot {
  std::string title;
  std::vector<std::string> series;  // names; at most three
  std::vector<Group> groups;        // from left to right
  double line = 1;                  // a value that is marked by a line
};

// Replaces the file. Returns whether all of it was written. The same plot gives the same bytes.
bool draw(const Plot& plot, const std::filesystem::path& file);

}  // namespace berth::bench
