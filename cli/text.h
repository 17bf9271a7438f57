// SPDX-License-Identifier: Apache-2.0
// Words and numbers for people.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace berth::cli {

enum class Colour { none, bold, dim, red, green, yellow };

// How to write: with colours or not, and into how many columns.
struct Style {
  bool colour = false;
  std::size_t width = 0;  // 0: as wide as it takes
};

// Standard output's: colours on a terminal only and never with NO_COLOR; the terminal's width.
Style terminal_style();

// `text` in `colour`, or as it is where the style has none.
std::string paint(const Style& style, Colour colour, std::string_view text);

// `text` on one line and safe on a terminal: control characters, those that are not seen or turn the
// direction of writing, and malformed UTF-8 replaced. Names of
// cgroups may hold anything.
std::string printable(std::string_view text);
// Columns that `text`, printable, takes on a terminal.
std::size_t display_width(std::string_view text);
// The end of `text` in at most `width` columns, led by "…" where something was cut.
std::string keep_end(std::string_view text, std::size_t width);

// "1.5 GiB".
std::string format_bytes(std::uint64_t bytes);
// Fixed point, "-" for nothing.
std::string format_number(const std::optional<double>& number, int decimals);
// "43 %" of a share 0..1, "-" for nothing.
std::string format_share(const std::optional<double>& share);
// "3 d 4 h", "2 h 10 min", "45 s".
std::string format_duration(double seconds);
// "2026-11-21 10:11:10", local time.
std::string format_time(double epoch_s);

}  // namespace berth::cli
