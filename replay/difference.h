// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "replay/side.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace berth::replay {

// A decision that only one side took at that tick. Changes of an advertised factor alone do not count: the
// factor creeps, tick by tick.
struct Difference {
  bool first = false;  // of the first side
  Decision decision;
};

class Differences {
 public:
  explicit Differences(std::size_t most) : most_(most) {}

  // Compares the decisions of both sides for one tick.
  void add(const std::vector<Decision>& first, const std::vector<Decision>& second);

  // The first ones, by time.
  const std::vector<Difference>& list() const { return list_; }
  std::uint64_t all() const { return all_; }
  std::uint64_t ticks() const { return ticks_; }  // that had any

 private:
  std::size_t most_;
  std::vector<Difference> list_;
  std::uint64_t all_ = 0;
  std::uint64_t ticks_ = 0;
};

}  // namespace berth::replay
