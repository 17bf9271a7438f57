// SPDX-License-Identifier: Apache-2.0
#include "model/name.h"

#include "model/json.h"
#include "model/plain_text.h"

#include <algorithm>

namespace berth::model {

namespace {

bool continues(std::string_view text, std::size_t at, unsigned char lowest = 0x80,
               unsigned char highest = 0xBF) {
  if (at >= text.size()) return false;
  const auto byte = static_cast<unsigned char>(text[at]);
  return byte >= lowest && byte <= highest;
}

// Length of the character at `at` in bytes; 0 where a name cannot hold it.
std::size_t name_length(std::string_view text, std::size_t at) {
  const std::size_t length = utf8_length(text, at);
  if (length == 0) return 0;
  const char32_t character = character_of(text.substr(at, length));
  return is_control(character) || is_noncharacter(character) || turns_direction(character) ? 0 : length;
}

}  // namespace

std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  if (lead < 0xE0) return continues(text, at + 1) ? 2 : 0;
  if (lead < 0xF0) {
    const unsigned char lowest = lead == 0xE0 ? 0xA0 : 0x80;
    const unsigned char highest = lead == 0xED ? 0x9F : 0xBF;
    return continues(text, at + 1, lowest, highest) && continues(text, at + 2) ? 3 : 0;
  }
  const unsigned char lowest = lead == 0xF0 ? 0x90 : 0x80;
  const unsigned char highest = lead == 0xF4 ? 0x8F : 0xBF;
  return continues(text, at + 1, lowest, highest) && continues(text, at + 2) && continues(text, at + 3) ? 4
                                                                                                        : 0;
}

bool is_name(std::string_view text) {
  if (text.empty() || text.size() > kMaxNameBytes) return false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = name_length(text, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

std::string to_name(std::string_view text) {
  std::string name;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = name_length(text, at);
    if (name.size() + std::max<std::size_t>(length, 1) > kMaxNameBytes) break;
    length == 0 ? name += '?' : name += text.substr(at, length);
    // A well-formed character that a name cannot hold counts as one.
    at += length == 0 ? std::max<std::size_t>(utf8_length(text, at), 1) : length;
  }
  return name.empty() ? "?" : name;
}

std::string shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  const auto continues_character = [&](std::size_t at) {
    return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
  };
  std::size_t first = most / 2;
  std::size_t last = text.size() - most / 2;
  while (first > 0 && continues_character(first)) --first;
  while (continues_character(last)) ++last;
  return std::string(text.substr(0, first)) + "…" + std::string(text.substr(last));
}

}  // namespace berth::model
