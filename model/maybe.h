// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>

namespace berth::model {

// A figure that may be unknown, in the room of the figure alone, where std::optional takes twice that: a
// daemon keeps tens of thousands of samples. Not-a-number stands for unknown, and 2^64 - 1 in whole numbers;
// neither is a figure. Otherwise as std::optional, into and from which it converts.
template <typename T>
class Maybe {
  static_assert(std::is_same_v<T, double> || std::is_same_v<T, std::uint64_t>);

 public:
  constexpr Maybe() = default;
  constexpr Maybe(std::nullopt_t) {}
  constexpr Maybe(T value) : value_(value) {}
  constexpr Maybe(const std::optional<T>& value) : value_(value.value_or(kUnknown)) {}

  constexpr bool has_value() const {
    if constexpr (std::is_same_v<T, double>) {
      return value_ == value_;
    } else {
      return value_ != kUnknown;
    }
  }
  constexpr explicit operator bool() const { return has_value(); }
  constexpr operator std::optional<T>() const {
    return has_value() ? std::optional<T>(value_) : std::nullopt;
  }
  constexpr const T& operator*() const { return value_; }
  constexpr T value_or(T other) const { return has_value() ? value_ : other; }
  // Throws std::bad_optional_access where it is unknown.
  constexpr T value() const { return std::optional<T>(*this).value(); }

  // Unknown is equal to unknown.
  friend constexpr bool operator==(const Maybe& a, const Maybe& b) {
    return a.has_value() == b.has_value() && (!a.has_value() || a.value_ == b.value_);
  }

 private:
  static constexpr T kUnknown = std::numeric_limits<T>::has_quiet_NaN ? std::numeric_limits<T>::quiet_NaN()
                                                                      : std::numeric_limits<T>::max();
  T value_ = kUnknown;
};

}  // namespace berth::model
