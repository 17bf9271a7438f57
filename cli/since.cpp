// SPDX-License-Identifier: Apache-2.0
#include "cli/since.h"

#include "config/units.h"
#include "model/number.h"

#include <array>
#include <cmath>
#include <ctime>
#include <optional>
#include <string_view>

#include <fmt/core.h>

namespace berth::cli {

namespace {

std::tm local(double epoch_s) {
  const auto seconds = static_cast<std::time_t>(epoch_s);
  std::tm parts{};
  localtime_r(&seconds, &parts);
  return parts;
}

// The begin of the day that is so many days after that of `now`.
double midnight(double now, int days) {
  std::tm day = local(now);
  day.tm_hour = day.tm_min = day.tm_sec = 0;
  day.tm_mday += days;
  day.tm_isdst = -1;
  return static_cast<double>(std::mktime(&day));
}

// A time of the day, or a date with or without one; nullopt for other text.
std::optional<double> calendar(const std::string& text, double now) {
  for (const char* format : {"%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d", "%H:%M:%S", "%H:%M"}) {
    std::tm parts = local(now);
    parts.tm_hour = parts.tm_min = parts.tm_sec = 0;
    parts.tm_isdst = -1;
    const char* end = strptime(text.c_str(), format, &parts);
    if (end == nullptr || *end != '\0') continue;
    const std::tm asked = parts;
    const std::time_t time = std::mktime(&parts);
    // mktime(3) would make March of the 31st of February.
    if (parts.tm_mday != asked.tm_mday || parts.tm_mon != asked.tm_mon) return std::nullopt;
    return static_cast<double>(time);
  }
  return std::nullopt;
}

std::optional<double> number(std::string_view text) {
  const auto value = model::to_number<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

}  // namespace

Outcome<double> parse_since(const std::string& text, double now) {
  if (text == "today") return midnight(now, 0);
  if (text == "yesterday") return midnight(now, -1);
  if (text.starts_with("@")) {
    if (const auto time = number(std::string_view(text).substr(1))) return *time;
  }
  if (const auto time = calendar(text, now)) return *time;
  std::string_view age = text;
  if (age.starts_with("-")) age.remove_prefix(1);
  if (age.ends_with(" ago")) age.remove_suffix(4);
  if (const auto seconds = config::parse_duration_s(age)) return now - *seconds;
  return problem(Exit::wrong_use,
                 fmt::format("--since: \"{}\" is no time, such as 2h, yesterday, 10:30 or 2026-11-21", text));
}

}  // namespace berth::cli
