// SPDX-License-Identifier: Apache-2.0
#include "replay/chart.h"

#include "model/hash.h"
#include "model/plain_text.h"
#include "model/utc_text.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <fmt/core.h>

namespace berth::replay {

namespace {

constexpr double kLeft = 150;
constexpr double kWidth = 760;
constexpr double kRight = 10;
constexpr double kTop = 6;
constexpr double kBottom = 18;
constexpr int kTimeLabels = 6;
constexpr double kDay_s = 86400;

}  // namespace

std::string html_text(std::string_view text) {
  std::string safe;
  for (const char c : model::plain_text(text, model::kMostFieldBytes)) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string clock_text(double epoch_s, bool with_date) {
  return model::utc_text(epoch_s, with_date ? "%Y-%m-%d %H:%M:%S" : "%H:%M:%S");
}

std::string colour_of(std::string_view name) {
  const std::uint64_t hash = model::fnv1a(name);
  return fmt::format("hsl({} {}% {}%)", hash % 360, 45 + (hash >> 16) % 30, 42 + (hash >> 32) % 18);
}

Chart::Chart(double from, double to, double low, double high, double height)
    : from_(from),
      to_(std::max(to, from + 1e-3)),
      low_(low),
      high_(std::max(high, low + 1e-9)),
      height_(height) {}

double Chart::x(double time) const {
  return kLeft + kWidth * std::clamp((time - from_) / (to_ - from_), 0.0, 1.0);
}

double Chart::y(double value) const {
  return kTop + height_ * (1 - std::clamp((value - low_) / (high_ - low_), 0.0, 1.0));
}

void Chart::axes(const std::vector<std::pair<double, std::string>>& ticks) {
  for (const auto& [value, text] : ticks) {
    rule(value);
    label(value, text);
  }
  const bool days = to_ - from_ > kDay_s;
  for (int i = 0; i <= kTimeLabels; ++i) {
    const double time = from_ + (to_ - from_) * i / kTimeLabels;
    const std::string text = days ? clock_text(time, true).substr(5, 11) : clock_text(time, false);
    const char* anchor = i == 0 ? "start" : i == kTimeLabels ? "end" : "middle";
    body_ += fmt::format(R"(<line class="g" x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2:.1f}"/>)", x(time),
                         kTop, kTop + height_);
    body_ += fmt::format(R"(<text class="t" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>)", x(time),
                         kTop + height_ + 13, anchor, text);
  }
}

void Chart::line(const Points& points, std::string_view css) {
  if (points.empty()) return;
  body_ += fmt::format(R"(<polyline class="{}" points=")", css);
  for (const auto& [time, value] : points) body_ += fmt::format("{:.1f},{:.1f} ", x(time), y(value));
  body_ += R"("/>)";
}

void Chart::steps(const Points& points, std::string_view css) {
  Points corners;
  for (const auto& [time, value] : points) {
    if (!corners.empty()) corners.emplace_back(time, corners.back().second);
    corners.emplace_back(time, value);
  }
  line(corners, css);
}

void Chart::box(double from, double to, double low, double high, std::string_view colour,
                std::string_view title) {
  const double left = x(from);
  const double top = y(high);
  body_ += fmt::format(
      R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" style="fill:{}"><title>{}</title></rect>)",
      left, top, std::max(x(to) - left, 0.6), std::max(y(low) - top, 0.5), colour, html_text(title));
}

void Chart::mark(double time, std::string_view css, std::string_view title) {
  const double at = x(time);
  body_ += fmt::format(R"(<path class="{}" d="M{:.1f} {:.1f}l-4 -6h8z"><title>{}</title></path>)", css, at,
                       kTop + height_ / 2 + 3, html_text(title));
}

void Chart::label(double value, std::string_view text) {
  body_ += fmt::format(R"(<text class="t" x="{}" y="{:.1f}" text-anchor="end">{}</text>)", kLeft - 5,
                       y(value) + 3, html_text(text));
}

void Chart::rule(double value) {
  body_ += fmt::format(R"(<line class="g" x1="{0}" x2="{1}" y1="{2:.1f}" y2="{2:.1f}"/>)", kLeft,
                       kLeft + kWidth, y(value));
}

std::string Chart::svg(std::string_view name) const {
  return fmt::format(R"(<svg viewBox="0 0 {} {:.0f}" role="img" aria-label="{}">{}</svg>)",
                     kLeft + kWidth + kRight, kTop + height_ + kBottom, html_text(name), body_);
}

}  // namespace berth::replay
