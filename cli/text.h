// SPDX-License-Identifier: Apache-2.0
// Formats words and numbers for users.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::cli {

enum class Colour { none, bold, dim, red, green, yellow };

// How to write: with colours or not, and into how many columns.
struct Style {
  bool colour = false;
  std::size_t width = 0;  // 0: as wide as needed
};

// The style of standard output: colours on a terminal only and never with NO_COLOR; the terminal's width.
Style terminal_style();

// `text` in `colour`; unchanged where the style has no colours.
std::string paint(const Style& style, Colour colour, std::string_view text);

// Writes `text`, which must be printable, as the heading of a part: below a blank line.
void heading(std::ostream& out, const Style& style, std::string_view text);

// `text` on one line and safe on a terminal. It replaces control characters, invisible characters, those that
// turn the direction of writing, and malformed UTF-8. Names of cgroups may hold any of them.
std::string printable(std::string_view text);
// Writes each warning of the command as a line of its own; `about`, if given, is the input that it is about.
void warn(std::ostream& err, const std::vector<std::string>& warnings, std::string_view about = {});
// Columns that `text`, which must be printable, takes on a terminal.
std::size_t display_width(std::string_view text);
// The end of `text` in at most `width` columns, after "…" where a part was cut.
std::string keep_end(std::string_view text, std::size_t width);
// The beginning, before "…".
std::string keep_begin(std::string_view text, std::size_t width);

// The text, or "-" where it is empty.
std::string or_dash(std::string text);
// "1.5 GiB".
std::string format_bytes(std::uint64_t bytes);
// Fixed point, "-" for an unknown number.
std::string format_number(const std::optional<double>& number, int decimals);
// "43 %" of a share 0..1, "-" for an unknown one.
std::string format_share(const std::optional<double>& share);
// "3 d 4 h", "2 h 10 min", "45 s".
std::string format_duration(double seconds);
// "2026-11-21 10:11:10", local time.
std::string format_time(double epoch_s);

}  // namespace berth::cli
