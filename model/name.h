// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace berth::model {

// Bytes of the well-formed UTF-8 sequence at `at` (Unicode, table 3-7), 0 where there is none.
std::size_t utf8_length(std::string_view text, std::size_t at);

// Whether `text` goes unchanged wherever an id or a service has to: 1 to kMaxNameBytes of UTF-8 without
// control characters, which a snapshot does not take, and without noncharacters (U+FFFE), which the bus does
// not (utf8_is_valid of systemd). The kernel allows any bytes but '/' and a line break in a cgroup's name.
bool is_name(std::string_view text);

// `text` with "?" for each character that a name cannot hold, cut where it would be too long; "?" for
// nothing.
std::string to_name(std::string_view text);

// `text`, or its beginning and end with "…" between where it has more than `most` bytes: for what is quoted
// in a message.
std::string shortened(std::string_view text, std::size_t most);

// The words with the separator between them. fmt::join does the same, for 1 s of compiling in each file.
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
