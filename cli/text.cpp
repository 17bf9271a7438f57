// SPDX-License-Identifier: Apache-2.0
#include "cli/text.h"

#include "model/bytes_text.h"
#include "model/plain_text.h"

#include <algorithm>
#include <array>
#include <clocale>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <ostream>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

namespace berth::cli {

namespace {

constexpr char32_t kReplacement = 0xFFFD;

// Returns the next character of `text`, and moves `at` behind it; kReplacement for a malformed byte.
char32_t next_character(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at++);
  if (lead < 0x80) return lead;
  const int more = lead >= 0xF0 && lead < 0xF5   ? 3
                   : lead >= 0xE0 && lead < 0xF0 ? 2
                   : lead >= 0xC2 && lead < 0xE0 ? 1
                                                 : 0;
  if (more == 0) return kReplacement;
  char32_t character = lead & (0x3FU >> more);
  for (int i = 0; i < more; ++i) {
    if (at + static_cast<std::size_t>(i) >= text.size()) return kReplacement;
    const unsigned char next = byte(at + static_cast<std::size_t>(i));
    if ((next & 0xC0) != 0x80) return kReplacement;
    character = (character << 6) | (next & 0x3FU);
  }
  constexpr std::array<char32_t, 4> kSmallest{0, 0x80, 0x800, 0x10000};
  const bool surrogate = character >= 0xD800 && character < 0xE000;
  if (character < kSmallest[static_cast<std::size_t>(more)] || surrogate || character > 0x10FFFF)
    return kReplacement;
  at += static_cast<std::size_t>(more);
  return character;
}

// wcwidth(3) follows the thread's locale; this one is in the C library itself.
class Utf8Locale {
 public:
  Utf8Locale() : own_(newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)) {
    if (own_ != nullptr) before_ = uselocale(own_);
  }
  ~Utf8Locale() {
    if (own_ == nullptr) return;
    uselocale(before_);
    freelocale(own_);
  }
  Utf8Locale(const Utf8Locale&) = delete;
  Utf8Locale& operator=(const Utf8Locale&) = delete;

 private:
  locale_t own_;
  locale_t before_ = nullptr;
};

bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

std::size_t columns_of(char32_t character) {
  const int columns = wcwidth(static_cast<wchar_t>(character));
  return columns < 0 ? 1 : static_cast<std::size_t>(columns);
}

}  // namespace

Style terminal_style() {
  Style style;
  if (isatty(STDOUT_FILENO) == 0) return style;
  const char* no_colour = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  style.colour = (no_colour == nullptr || *no_colour == '\0') && !dumb;
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) style.width = size.ws_col;
  return style;
}

std::string paint(const Style& style, Colour colour, std::string_view text) {
  if (!style.colour || colour == Colour::none || text.empty()) return std::string(text);
  constexpr std::array<std::string_view, 6> kCodes{"0", "1", "2", "31", "32", "33"};
  return fmt::format("\x1b[{}m{}\x1b[0m", kCodes[static_cast<std::size_t>(colour)], text);
}

void heading(std::ostream& out, const Style& style, std::string_view text) {
  out << "\n" << paint(style, Colour::bold, text) << "\n";
}

std::string printable(std::string_view text) {
  if (is_plain(text)) return std::string(text);
  std::string safe;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const char32_t character = next_character(text, at);
    if (character == U'\n' || character == U'\t') {
      safe += ' ';
    } else if (model::is_control(character) || model::is_unseen(character)) {
      safe += '?';
    } else if (character == kReplacement) {
      safe += "\xEF\xBF\xBD";
    } else {
      safe.append(text.substr(begin, at - begin));
    }
  }
  return safe;
}

std::size_t display_width(std::string_view text) {
  if (is_plain(text)) return text.size();
  const Utf8Locale locale;
  std::size_t width = 0;
  for (std::size_t at = 0; at < text.size();) width += columns_of(next_character(text, at));
  return width;
}

std::string keep_end(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  if (width == 0) return "";
  const Utf8Locale locale;
  std::vector<std::pair<std::size_t, std::size_t>> characters;  // where each begins, its columns
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const std::size_t columns = columns_of(next_character(text, at));
    characters.emplace_back(begin, columns);
  }
  std::size_t begin = text.size();
  std::size_t used = 1;  // the ellipsis
  for (auto it = characters.rbegin(); it != characters.rend() && used + it->second <= width; ++it) {
    used += it->second;
    begin = it->first;
  }
  return "…" + std::string(text.substr(begin));
}

std::string keep_begin(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  if (width == 0) return "";
  const Utf8Locale locale;
  std::size_t end = 0;
  std::size_t used = 1;  // the ellipsis
  for (std::size_t at = 0; at < text.size(); end = at) {
    used += columns_of(next_character(text, at));
    if (used > width) break;
  }
  return std::string(text.substr(0, end)) + "…";
}

std::string format_bytes(std::uint64_t bytes) {
  return model::bytes_with_one_decimal(static_cast<double>(bytes));
}

std::string or_dash(std::string text) { return text.empty() ? "-" : std::move(text); }

std::string format_number(const std::optional<double>& number, int decimals) {
  if (!number || !std::isfinite(*number)) return "-";
  return fmt::format("{:.{}f}", *number, decimals);
}

std::string format_share(const std::optional<double>& share) {
  if (!share || !std::isfinite(*share)) return "-";
  return fmt::format("{:.0f} %", *share * 100);
}

void warn(std::ostream& err, const std::vector<std::string>& warnings, std::string_view about) {
  const std::string subject = about.empty() ? "" : printable(about) + ": ";
  for (const std::string& warning : warnings)
    err << "berthctl: warning: " << subject << printable(warning) << "\n" << std::flush;
}

std::string format_duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "-";
  const auto whole = static_cast<std::int64_t>(std::min(seconds, 1e15));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  if (whole < 86400) return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
  return fmt::format("{} d {} h", whole / 86400, whole % 86400 / 3600);
}

std::string format_time(double epoch_s) {
  if (!std::isfinite(epoch_s) || std::abs(epoch_s) > 1e15) return "-";
  const auto seconds = static_cast<std::time_t>(epoch_s);
  std::tm local{};
  if (localtime_r(&seconds, &local) == nullptr) return "-";
  std::array<char, 64> buffer{};
  const std::size_t length = std::strftime(buffer.data(), buffer.size(), "%Y-%m-%d %H:%M:%S", &local);
  return {buffer.data(), length};
}

}  // namespace berth::cli
