// SPDX-License-Identifier: Apache-2.0
// Bytes for people, in the largest unit that makes them at least 1. An amount that rounds to 1024 of a unit
// is 1 of the next one.
#pragma once

#include <cstdint>
#include <string>

namespace berth::model {

// "1.5 GiB", "3.0 MiB", "512 B".
std::string bytes_with_one_decimal(double bytes);

// "1.465 GiB", "3 MiB", "512 bytes".
std::string bytes_in_four_digits(double bytes);
inline std::string bytes_in_four_digits(std::uint64_t bytes) {
  return bytes_in_four_digits(static_cast<double>(bytes));
}

}  // namespace berth::model
