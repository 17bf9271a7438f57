// SPDX-License-Identifier: Apache-2.0
#include "spark/json_reader.h"

#include <cstddef>

namespace berth::spark {

bool too_deep_or_many(std::string_view text) {
  constexpr int kMostLevels = 32;
  constexpr std::size_t kMostValues = 500'000;  // some 90 MB once parsed
  std::size_t values = 0;
  int level = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      if (++values > kMostValues) return true;
    } else if (c == '[' || c == '{') {
      if (++values > kMostValues) return true;
      if (++level > kMostLevels) return true;
    } else if (c == ']' || c == '}') {
      --level;
    }
  }
  return false;
}

}  // namespace berth::spark
