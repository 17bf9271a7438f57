// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
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

inline double log_uniform(Draws& draws, double low, double high) {
  return low * std::pow(high / low, draws.fraction());
}
inline double exponential(Draws& draws, double mean) {
  return -mean * std::log(1 - 0.999999 * draws.fraction());
}
// Standard normal, from two figures that are uniform over 0..1 (Box and Muller).
inline double normal_of(double one, double other) {
  return std::sqrt(-2 * std::log(1 - 0.999999 * one)) * std::cos(2 * std::numbers::pi * other);
}
inline double normal(Draws& draws) {
  const double one = draws.fraction();
  return normal_of(one, draws.fraction());
}

}  // namespace berth::policies::testing
