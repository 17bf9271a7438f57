// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>

namespace berth::model {

// A figure that may be unknown. It takes the space of the figure alone, where std::optional takes twice that:
// a daemon keeps tens of thousands of samples. Not-a-number stands for unknown, and 2^64 - 1 in whole
// numbers; neither is a figure. Otherwise it behaves as std::optional, and converts both ways. A Maybe<float>
// is for figures measured to a few digits; it converts to and from std::optional<double>.
template <typename T>
class Maybe {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, std::uint64_t>);
  using Whole = std::conditional_t<std::is_same_v<T, float>, double, T>;

 public:
  constexpr Maybe() = default;
  constexpr Maybe(std::nullopt_t) {}
  constexpr Maybe(Whole value) : value_(static_cast<T>(value)) {}
  constexpr Maybe(const std::optional<Whole>& value) : value_(value ? static_cast<T>(*value) : kUnknown) {}

  constexpr bool has_value() const {
    if constexpr (std::is_floating_point_v<T>) {
      return value_ == value_;
    } else {
      return value_ != kUnknown;
    }
  }
  constexpr explicit operator bool() const { return has_value(); }
  constexpr operator std::optional<Whole>() const {
    return has_value() ? std::optional<Whole>(value_) : std::nullopt;
  }
  constexpr const T& operator*() const { return value_; }
  constexpr Whole value_or(Whole other) const { return has_value() ? Whole{value_} : other; }
  // Throws std::bad_optional_access where it is unknown.
  constexpr Whole value() const { return std::optional<Whole>(*this).value(); }

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
