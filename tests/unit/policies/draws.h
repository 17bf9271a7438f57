// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>

namespace berth::policies::testing {

// What random cases are drawn with: the same for the same seed, with whatever standard library.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : random_(seed) {}

  // Not std::uniform_int_distribution: its results differ between libraries, and a seed should not.
  int number(int first, int last) {
    return first + static_cast<int>(random_() % static_cast<std::uint64_t>(last - first + 1));
  }
  double fraction() { return static_cast<double>(random_() % 1000001) / 1e6; }
  bool chance(double p) { return fraction() < p; }

 private:
  std::mt19937_64 random_;
};

}  // namespace berth::policies::testing
