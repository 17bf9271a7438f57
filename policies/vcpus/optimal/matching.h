// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policies/vcpus/optimal/work.h"

#include <cstddef>
#include <vector>

namespace berth::policies::optimal {

// The weights of pairs of kinds, symmetric.
class PairWeights {
 public:
  explicit PairWeights(int kinds) : kinds_(kinds), weights_(static_cast<std::size_t>(kinds) * kinds, 0.0) {}
  int kinds() const { return kinds_; }
  double at(int a, int b) const { return weights_[static_cast<std::size_t>(a) * kinds_ + b]; }
  void set(int a, int b, double weight) {
    weights_[static_cast<std::size_t>(a) * kinds_ + b] = weight;
    weights_[static_cast<std::size_t>(b) * kinds_ + a] = weight;
  }

 private:
  int kinds_;
  std::vector<double> weights_;
};

// Prices of the kinds are valid if those of two kinds never exceed the weight of their pair. Then the sum of
// the prices of all things is at most the weight of any way to pair these.
//
// The valid prices with the largest sum. `counts`: things of each kind. Where work runs out, the sum is
// smaller.
std::vector<double> pair_prices(const std::vector<int>& counts, const PairWeights& weights, Work& work);

// Makes any prices valid, and larger where they can be. The nearer they were to the best ones, the nearer
// they are afterwards.
void make_valid(const PairWeights& weights, std::vector<double>& prices);

}  // namespace berth::policies::optimal
