// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace berth::policies::optimal {

// Policies have no clock, so that a plan never depends on how fast the host is. A budget of time becomes an
// amount of work by this constant. One unit is the scoring of one exchange of two vCPUs on a node of 256.
// tests/bench/policies/optimal_bench.cpp measures how many units a second a processor does.
inline constexpr double kUnitsPerSecond = 4e6;

// The work that is left.
class Work {
 public:
  explicit Work(double units) : left_(units) {}
  // False once nothing is left.
  bool spend(double units = 1) {
    left_ -= units;
    return left_ >= 0;
  }
  double left() const { return left_ > 0 ? left_ : 0; }

 private:
  double left_;
};

}  // namespace berth::policies::optimal
