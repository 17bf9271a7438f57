// SPDX-License-Identifier: Apache-2.0
// Plots over time as SVG. All have one width and one time axis, so that they stand below each other.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth::replay {

// `text` for a place between tags or within quotes of an attribute: plain, and with &, <, >, " and '
// replaced.
std::string html_text(std::string_view text);
// "12:34:56", or with the date where `with_date` is true; UTC.
std::string clock_text(double epoch_s, bool with_date);
// A colour that a name always gets, as CSS.
std::string colour_of(std::string_view name);

class Chart {
 public:
  using Points = std::vector<std::pair<double, double>>;  // time and value

  // `from` and `to` in epoch seconds; values from `low` to `high`, and outside they are cut.
  Chart(double from, double to, double low, double high, double height);

  // Lines of the frame: the time axis, and `ticks` values with their labels.
  void axes(const std::vector<std::pair<double, std::string>>& ticks);
  // `css`: the class of the line.
  void line(const Points& points, std::string_view css);
  // Each value holds until the next point.
  void steps(const Points& points, std::string_view css);
  // A filled box over two times and two values; `title` is shown at the pointer.
  void box(double from, double to, double low, double high, std::string_view colour, std::string_view title);
  // A mark at a time, at the upper edge.
  void mark(double time, std::string_view css, std::string_view title);
  // Text at the left edge, beside a value.
  void label(double value, std::string_view text);
  // A thin line across.
  void rule(double value);

  // The whole element; `name` is read by programs that read pages aloud.
  std::string svg(std::string_view name) const;

 private:
  double x(double time) const;
  double y(double value) const;

  double from_;
  double to_;
  double low_;
  double high_;
  double height_;
  std::string body_;
};

}  // namespace berth::replay
