// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace berth::model {

// Bytes of the well-formed UTF-8 sequence at `at` (Unicode, table 3-7), 0 where there is none.
std::size_t utf8_length(std::string_view text, std::size_t at);

// Whether `text` can be an id or a service in every place without a change. It must be 1 to kMaxNameBytes of
// UTF-8. Control characters are excluded, as a snapshot does not take them. Noncharacters (U+FFFE) are
// excluded, as the bus does not (utf8_is_valid of systemd). The kernel allows any bytes but '/' and a line
// break in a cgroup's name.
bool is_name(std::string_view text);

// Returns `text` with "?" for each character that a name cannot hold, cut to the longest name. Empty text
// becomes "?".
std::string to_name(std::string_view text);

// Returns `text` where it has at most `most` bytes. Else returns its beginning and end with "…" between. For
// quotes in messages.
std::string shortened(std::string_view text, std::size_t most);

// The words with the separator between them. fmt::join does the same, but costs 1 s of compiling in each
// file.
template <typename Words>
std::string joined(const Words& words, std::string_view separator) {
  std::string text;
  bool first = true;
  for (const auto& word : words) {
    if (!first) text += separator;
    first = false;
    text += word;
  }
  return text;
}

}  // namespace berth::model
