// SPDX-License-Identifier: Apache-2.0
#include "config/units.h"

#include "model/number.h"
#include "model/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/core.h>

namespace berth::config {
namespace {

using model::ErrorKind;
using model::fail;

struct TimeUnit {
  std::string_view name;
  double seconds;
};

// The first name of each unit is the one that is written.
constexpr std::array<TimeUnit, 22> kTimeUnits{
    {{"us", 1e-6},    {"usec", 1e-6}, {"ms", 1e-3},     {"msec", 1e-3},   {"s", 1},       {"sec", 1},
     {"second", 1},   {"seconds", 1}, {"min", 60},      {"m", 60},        {"minute", 60}, {"minutes", 60},
     {"h", 3600},     {"hr", 3600},   {"hour", 3600},   {"hours", 3600},  {"d", 86400},   {"day", 86400},
     {"days", 86400}, {"w", 604800},  {"week", 604800}, {"weeks", 604800}}};

std::optional<double> seconds_of(std::string_view unit) {
  if (unit.empty()) return 1.0;
  for (const auto& known : kTimeUnits) {
    if (known.name == unit) return known.seconds;
  }
  return std::nullopt;
}

void skip_blanks(std::string_view& text) { text = model::trimmed_start(text, model::kBlanks); }

// Takes a plain decimal ("12", "1.5") off the front; from_chars alone would also take "inf", "-1" and "1e9".
std::optional<double> take_number(std::string_view& text) {
  const auto length = std::min(text.find_first_not_of("0123456789."), text.size());
  double number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + length, number, std::chars_format::fixed);
  if (error != std::errc() || end != text.data() + length) return std::nullopt;
  text.remove_prefix(length);
  return number;
}

std::string_view take_word(std::string_view& text) {
  std::size_t length = 0;
  while (length < text.size() &&
         ((text[length] >= 'a' && text[length] <= 'z') || (text[length] >= 'A' && text[length] <= 'Z'))) {
    ++length;
  }
  const auto word = text.substr(0, length);
  text.remove_prefix(length);
  return word;
}

}  // namespace

model::Result<double> parse_duration_s(std::string_view text) {
  const auto bad = [] {
    return fail(ErrorKind::invalid_input, "not a duration such as 10, 500ms or 1h 30min");
  };
  double total = 0;
  bool bare = false;
  skip_blanks(text);
  if (text.empty()) return bad();
  for (int parts = 0; !text.empty(); ++parts) {
    const auto number = take_number(text);
    if (!number) return bad();
    skip_blanks(text);
    const auto unit = take_word(text);
    const auto seconds = seconds_of(unit);
    if (!seconds)
      return fail(ErrorKind::invalid_input,
                  fmt::format("no unit of time is called {}; write us, ms, s, min, h, d or w", unit));
    bare = bare || unit.empty();
    if (bare && parts > 0) return bad();
    total += *number * *seconds;
    skip_blanks(text);
  }
  if (!std::isfinite(total)) return bad();
  return total;
}

model::Result<std::uint64_t> parse_size_bytes(std::string_view text) {
  const auto bad = [] { return fail(ErrorKind::invalid_input, "not a size such as 4096, 512M or 2G"); };
  constexpr std::string_view kSuffixes = "BKMGTPE";
  skip_blanks(text);
  const auto number_text = text;
  const auto number = take_number(text);
  if (!number) return bad();
  const auto digits = number_text.substr(0, number_text.size() - text.size());
  skip_blanks(text);
  std::size_t power = 0;
  if (!text.empty()) {
    power = kSuffixes.find(text.front());
    if (power == std::string_view::npos) return bad();
    text.remove_prefix(1);
    skip_blanks(text);
    if (!text.empty()) return bad();
  }
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const auto too_large = [] { return fail(ErrorKind::invalid_input, "larger than 8E (2^63) bytes"); };
  const unsigned shift = 10U * static_cast<unsigned>(power);
  // Whole numbers stay integers: a double would round sizes above 2^53.
  if (digits.find('.') == std::string_view::npos) {
    const auto whole = model::to_number<std::uint64_t>(digits);
    if (!whole || *whole > kMost >> shift) return too_large();
    return *whole << shift;
  }
  const double bytes = std::ldexp(*number, static_cast<int>(shift));
  if (bytes >= static_cast<double>(kMost)) return too_large();
  if (bytes != std::floor(bytes)) return fail(ErrorKind::invalid_input, "not a whole number of bytes");
  return static_cast<std::uint64_t>(bytes);
}

std::string duration_text(double seconds) {
  if (seconds == 0) return "0s";
  for (auto unit = kTimeUnits.rbegin(); unit != kTimeUnits.rend(); ++unit) {
    // Takes the first name of the unit, so that 1 is "1s" and not "1seconds".
    const auto next = std::next(unit);
    if (next != kTimeUnits.rend() && next->seconds == unit->seconds) continue;
    const double count =
        unit->seconds < 1 ? seconds * std::round(1 / unit->seconds) : seconds / unit->seconds;
    if (count >= 1 && count == std::floor(count)) return fmt::format("{:.0f}{}", count, unit->name);
  }
  return fmt::format("{}s", seconds);
}

}  // namespace berth::config
