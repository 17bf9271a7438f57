// SPDX-License-Identifier: Apache-2.0
// Takes text apart. The results are parts of the given text, and live as long as it does.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace berth::model {

// Sets of characters to cut off. Formats differ in what they call blank, so each caller names its set.
inline constexpr std::string_view kBlanks = " \t";               // within a line
inline constexpr std::string_view kBlanksAndBreaks = " \t\r\n";  // JSON, XML
inline constexpr std::string_view kWhiteSpace = " \t\r\n\v\f";   // isspace(3) in the C locale
inline constexpr std::string_view kEndOfControlFile = " \n";     // what the kernel writes behind a value

// `text` without the characters of `set` at its beginning.
constexpr std::string_view trimmed_start(std::string_view text, std::string_view set) {
  return text.substr(std::min(text.find_first_not_of(set), text.size()));
}

// `text` without the characters of `set` at its end.
constexpr std::string_view trimmed_end(std::string_view text, std::string_view set) {
  return text.substr(0, text.find_last_not_of(set) + 1);
}

// `text` without the characters of `set` at its beginning and its end.
constexpr std::string_view trimmed(std::string_view text, std::string_view set) {
  return trimmed_end(trimmed_start(text, set), set);
}

// Takes the part before the first `separator` off the front of `text`, and the separator with it. Without a
// separator it takes all.
constexpr std::string_view take_part(std::string_view& text, std::string_view separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + separator.size(), text.size()));
  return part;
}

constexpr std::string_view take_line(std::string_view& text) { return take_part(text, "\n"); }

// ASCII alone, whatever the locale.
constexpr bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// ASCII that has ink: neither blank nor control character.
constexpr bool is_visible(char c) { return c > ' ' && c < '\x7F'; }

// A capital letter of ASCII as the small one, any other character as it is.
constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Whether `text` is one decimal digit or more, and nothing else.
constexpr bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Whether the texts are equal if the case of ASCII letters does not count.
constexpr bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace berth::model
