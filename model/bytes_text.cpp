// SPDX-License-Identifier: Apache-2.0
#include "model/bytes_text.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/core.h>

namespace berth::model {

namespace {

struct Scaled {
  double amount = 0;
  const char* unit = nullptr;  // null for bytes
};

// `rounds_up`: the least amount of a unit that is written as 1024.
Scaled scaled(double bytes, double rounds_up) {
  constexpr double kWholeRoundsUp = 1023.5;  // bytes have no decimals
  constexpr std::array<const char*, 6> kUnits{nullptr, "KiB", "MiB", "GiB", "TiB", "PiB"};
  double amount = std::abs(bytes);
  std::size_t unit = 0;
  for (; amount >= (unit == 0 ? kWholeRoundsUp : rounds_up) && unit + 1 < kUnits.size(); ++unit)
    amount = std::max(amount / 1024, 1.0);
  return {std::copysign(amount, bytes), kUnits[unit]};
}

}  // namespace

std::string bytes_with_one_decimal(double bytes) {
  const Scaled it = scaled(bytes, 1023.95);
  return it.unit == nullptr ? fmt::format("{:.0f} B", it.amount)
                            : fmt::format("{:.1f} {}", it.amount, it.unit);
}

std::string bytes_in_four_digits(double bytes) {
  const Scaled it = scaled(bytes, 1023.5);
  return fmt::format("{:.4g} {}", it.amount, it.unit == nullptr ? "bytes" : it.unit);
}

}  // namespace berth::model
