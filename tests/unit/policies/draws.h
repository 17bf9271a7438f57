// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>

namespace berth::policies::testing {

// Draws random cases: the same for the same seed, with any standard library.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : random_(seed) {}

  // std::uniform_int_distribution does not fit: its results differ between libraries, and a seed must give
  // one case.
  int number(int first, int last) {
    return first + static_cast<int>(random_() % static_cast<std::uint64_t>(last - first + 1));
  }
  double fraction() { return static_cast<double>(random_() % 1000001) / 1e6; }
  bool chance(double p) { return fraction() < p; }

 private:
  std::mt19937_64 random_;
};

}  // namespace berth::policies::testing
