// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <ctime>
#include <string>

namespace berth::model {

// The time in UTC, in whole seconds, as strftime(3) writes it by the format; at most 31 bytes.
inline std::string utc_text(double epoch_s, const char* format) {
  const auto seconds = static_cast<std::time_t>(epoch_s);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), format, &parts)};
}

}  // namespace berth::model
