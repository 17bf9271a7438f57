// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

namespace berth::spark {

// Longer names of applications, executors and states are an error. Real ones have some 40 bytes.
inline constexpr std::size_t kMostNameBytes = 256;

// Whether `text` is a name that fits into a snapshot, and is not longer than kMostNameBytes.
bool is_name(std::string_view text);

// Each name once, by number: an application has many tasks, and few executors.
class Names {
 public:
  // The number of a name; the same for the same name.
  std::uint32_t number(std::string_view name);
  const std::string& of(std::uint32_t number) const { return names_[number]; }
  // Whether there are more names than any real application has. Readers take no further one.
  bool full() const { return bytes_ > kMostBytes; }
  // Memory, about.
  std::size_t bytes() const { return bytes_; }
  // The longest memory that a copy of a name takes besides its std::string.
  std::size_t longest_bytes() const { return longest_bytes_; }

 private:
  static constexpr std::size_t kMostBytes = std::size_t{4} << 20;  // some 35,000 executors

  std::deque<std::string> names_;  // their addresses stay
  std::unordered_map<std::string_view, std::uint32_t> numbers_;
  std::size_t bytes_ = 0;
  std::size_t longest_bytes_ = 0;
};

}  // namespace berth::spark
