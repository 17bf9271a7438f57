// SPDX-License-Identifier: Apache-2.0
#include "model/plain_text.h"

#include "model/name.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

namespace berth::model {

namespace {

using Range = std::pair<char32_t, char32_t>;

template <std::size_t Count>
bool is_in(const std::array<Range, Count>& ranges, char32_t character) {
  return std::any_of(ranges.begin(), ranges.end(), [character](const Range& range) {
    return character >= range.first && character <= range.second;
  });
}

bool is_escaped(char32_t character) {
  return is_control(character) || is_unseen(character) || is_noncharacter(character);
}

std::string escape_of(char32_t character) {
  if (character == U'\n') return "\\n";
  if (character == U'\t') return "\\t";
  if (character == U'\r') return "\\r";
  const auto code = static_cast<unsigned>(character);
  return code < 0x80 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code);
}

// As RFC 8259 has it: a pair of surrogates beyond U+FFFF.
std::string json_escape_of(char32_t character) {
  const auto code = static_cast<unsigned>(character);
  if (code < 0x10000) return fmt::format("\\u{:04x}", code);
  return fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((code - 0x10000) >> 10),
                     0xDC00 + ((code - 0x10000) & 0x3FF));
}

bool is_plain_ascii(char c) { return c >= ' ' && c <= '~'; }

}  // namespace

char32_t character_of(std::string_view sequence) {
  constexpr std::array<unsigned char, 5> kLead{0, 0x7F, 0x1F, 0x0F, 0x07};
  char32_t character = static_cast<unsigned char>(sequence[0]) & kLead.at(sequence.size());
  for (const char c : sequence.substr(1))
    character = character << 6 | (static_cast<unsigned char>(c) & 0x3FU);
  return character;
}

bool is_control(char32_t character) { return character < 0x20 || (character >= 0x7F && character < 0xA0); }

bool is_noncharacter(char32_t character) {
  return (character >= 0xFDD0 && character <= 0xFDEF) || (character & 0xFFFE) == 0xFFFE;
}

bool is_unseen(char32_t character) {
  constexpr std::array<Range, 16> kUnseen{{{0x00AD, 0x00AD},
                                           {0x034F, 0x034F},
                                           {0x061C, 0x061C},
                                           {0x115F, 0x1160},
                                           {0x180B, 0x180F},
                                           {0x200B, 0x200F},
                                           {0x2028, 0x202E},
                                           {0x2060, 0x206F},
                                           {0x2800, 0x2800},
                                           {0x3164, 0x3164},
                                           {0xFE00, 0xFE0F},
                                           {0xFEFF, 0xFEFF},
                                           {0xFFA0, 0xFFA0},
                                           {0xFFF9, 0xFFFB},
                                           {0xE0000, 0xE007F},
                                           {0xE0100, 0xE01EF}}};
  return is_in(kUnseen, character);
}

bool turns_direction(char32_t character) {
  constexpr std::array<Range, 4> kTurning{
      {{0x061C, 0x061C}, {0x200E, 0x200F}, {0x2028, 0x202E}, {0x2066, 0x2069}}};
  return is_in(kTurning, character);
}

std::string plain_text(std::string_view text, std::size_t most) {
  // Before the escapes, so that the work has a limit, and after them, because they are longer.
  if (text.size() <= most && std::all_of(text.begin(), text.end(), is_plain_ascii)) return std::string(text);
  const std::string cut = shortened(text, most);
  std::string plain;
  for (std::size_t at = 0; at < cut.size();) {
    const std::size_t length = utf8_length(cut, at);
    if (length == 0) {
      plain += fmt::format("\\x{:02x}", static_cast<unsigned char>(cut[at++]));
      continue;
    }
    const std::string_view sequence = std::string_view(cut).substr(at, length);
    const char32_t character = character_of(sequence);
    if (is_escaped(character)) {
      plain += escape_of(character);
    } else {
      plain += sequence;
    }
    at += length;
  }
  // `cut` may have the length of the ellipsis more.
  return plain.size() <= cut.size() ? plain : shortened(plain, most);
}

std::string plain_json(std::string document) {
  const auto is_beyond = [](char c) { return static_cast<unsigned char>(c) >= 0x7F; };
  if (std::none_of(document.begin(), document.end(), is_beyond)) return document;
  std::string plain;
  plain.reserve(document.size());
  for (std::size_t at = 0; at < document.size();) {
    const std::size_t length = std::max<std::size_t>(utf8_length(document, at), 1);
    const std::string_view sequence = std::string_view(document).substr(at, length);
    const char32_t character = is_beyond(sequence[0]) ? character_of(sequence) : U' ';
    if (is_escaped(character)) {
      plain += json_escape_of(character);
    } else {
      plain += sequence;
    }
    at += length;
  }
  return plain;
}

}  // namespace berth::model
