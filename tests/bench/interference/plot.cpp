// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/interference/plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>

#include <fmt/core.h>

namespace berth::bench {

namespace {

constexpr double kLeft = 50;
constexpr double kTop = 64;
constexpr double kHeight = 260;
constexpr double kGroupWidth = 96;
constexpr std::array kColours{"#7a869a", "#1f6fb4", "#c05a1c"};

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '<') {
      safe += "&lt;";
    } else if (c == '&') {
      safe += "&amp;";
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string text_at(double x, double y, const char* anchor, const std::string& text, double size = 11) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{:.0f}\">{}</text>\n", x,
                     y, anchor, size, escaped(text));
}

std::string line(double x1, double y1, double x2, double y2, const char* style) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1, x2, y2,
                     style);
}

// The name in two lines, broken at a comma.
std::string name_below(double x, double y, const std::string& name) {
  const auto comma = name.find(", ");
  if (comma == std::string::npos) return text_at(x, y, "middle", name);
  return text_at(x, y, "middle", name.substr(0, comma + 1)) +
         text_at(x, y + 14, "middle", name.substr(comma + 2));
}

}  // namespace

bool draw(const Plot& plot, const std::filesystem::path& file) {
  double most = plot.line;
  for (const Group& group : plot.groups) {
    for (const Series& series : group.series) {
      for (const double point : series.points) most = std::max(most, point);
    }
  }
  most = std::ceil(most * 5) / 5;
  const double width = kLeft + kGroupWidth * static_cast<double>(plot.groups.size()) + 20;
  const auto y_of = [most](double value) { return kTop + kHeight * (1 - value / most); };
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
      "{1:.0f}\" font-family=\"sans-serif\" fill=\"#222\">\n<rect width=\"100%\" height=\"100%\" "
      "fill=\"#fff\"/>\n",
      width, kTop + kHeight + 52);
  svg += text_at(kLeft, 22, "start", plot.title, 14);
  double x = kLeft;
  for (std::size_t i = 0; i < plot.series.size(); ++i) {
    svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"42\" r=\"4\" fill=\"{}\"/>\n", x + 4, kColours.at(i));
    svg += text_at(x + 14, 46, "start", plot.series[i] + ": points are seeds, the bar is the mean");
    x += 330;
  }
  for (int i = 0; i <= static_cast<int>(std::lround(most * 5)); ++i) {
    const double value = i / 5.0;
    svg += line(kLeft, y_of(value), width - 20, y_of(value), "stroke=\"#ddd\"");
    svg += text_at(kLeft - 8, y_of(value) + 4, "end", fmt::format("{:.1f}", value));
  }
  svg +=
      line(kLeft, y_of(plot.line), width - 20, y_of(plot.line), "stroke=\"#222\" stroke-dasharray=\"4 3\"");
  for (std::size_t i = 0; i < plot.groups.size(); ++i) {
    const Group& group = plot.groups[i];
    const double middle = kLeft + kGroupWidth * (static_cast<double>(i) + 0.5);
    for (std::size_t j = 0; j < group.series.size(); ++j) {
      const Series& series = group.series[j];
      const double at =
          middle + 36 * (static_cast<double>(j) - (static_cast<double>(group.series.size()) - 1) / 2);
      for (const double point : series.points) {
        svg +=
            fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\" fill-opacity=\"0.45\"/>\n",
                        at, y_of(point), kColours.at(j));
      }
      svg += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"24\" height=\"3\" fill=\"{}\"/>\n", at - 12,
                         y_of(series.mean) - 1.5, kColours.at(j));
    }
    svg += name_below(middle, kTop + kHeight + 18, group.name);
  }
  svg += "</svg>\n";
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << svg;
  out.close();
  return out.good();
}

}  // namespace berth::bench
