// SPDX-License-Identifier: Apache-2.0
// Common parts of all fuzz targets: the input as text, and a report that a property does not hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Stops the run where `holds` is false; libFuzzer then keeps the input.
inline void require(bool holds, const char* property) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", property);
  std::abort();
}

// Messages end in logs and on terminals. They must be one line of limited length, without control characters.
inline void require_line(std::string_view message) {
  for (const char c : message) require(c >= ' ' && c <= '~', "a message is one printable line");
  require(!message.empty() && message.size() < 4096, "a message is neither empty nor endless");
}

}  // namespace fuzz
