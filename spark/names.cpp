// SPDX-License-Identifier: Apache-2.0
#include "spark/names.h"

#include "model/name.h"

#include <algorithm>

namespace berth::spark {

namespace {

// A std::string of libstdc++ holds this many bytes itself.
constexpr std::size_t kInside = 15;
// A string, a node of the map with its place in the table, and what malloc adds.
constexpr std::size_t kEach = 32 + 48 + 32;

}  // namespace

bool is_name(std::string_view text) { return text.size() <= kMostNameBytes && model::is_name(text); }

std::uint32_t Names::number(std::string_view name) {
  if (const auto known = numbers_.find(name); known != numbers_.end()) return known->second;
  const auto number = static_cast<std::uint32_t>(names_.size());
  const std::string& kept = names_.emplace_back(name);
  numbers_.emplace(kept, number);
  const std::size_t outside = name.size() > kInside ? name.size() + 32 : 0;
  bytes_ += kEach + outside;
  longest_bytes_ = std::max(longest_bytes_, outside);
  return number;
}

}  // namespace berth::spark
