// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace berth::model {

// Parses the whole of `text` as a number, decimal or of an integer `base`, as std::from_chars does: no blanks
// around it, no plus sign and no "0x". Floating point also takes a fraction, an exponent, "inf" and "nan".
// nullopt for anything else, and for a number that the type does not hold.
template <typename Number, typename... Base>
std::optional<Number> to_number(std::string_view text, Base... base) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base...);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace berth::model
