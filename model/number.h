// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace berth::model {

// The whole of `text` as a decimal number, as std::from_chars reads one: no blanks around it and no plus
// sign; a fraction, an exponent, "inf" and "nan" for floating point only. nullopt for anything else, and for
// what the type does not hold.
template <typename Number>
std::optional<Number> to_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace berth::model
