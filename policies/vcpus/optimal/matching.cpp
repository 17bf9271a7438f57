// SPDX-License-Identifier: Apache-2.0
// The dual of a fractional matching. Every thing is once on the left and once on the right side, and the left
// things are assigned to the right ones with the least weight. Half of that is at most the weight of any
// pairing. The assignment is a transport problem between kinds, solved by shortest augmenting paths. Its dual
// prices of the two sides, averaged, are the prices wanted.
#include "policies/vcpus/optimal/matching.h"

#include <algorithm>
#include <limits>

namespace berth::policies::optimal {

namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
// Steps along one arc for a unit of work.
constexpr double kArcsPerUnit = 100;

class Transport {
 public:
  Transport(const std::vector<int>& counts, const PairWeights& weights)
      : weights_(weights),
        size_(weights.kinds()),
        supply_(counts),
        demand_(counts),
        flow_(static_cast<std::size_t>(size_) * size_, 0),
        left_(static_cast<std::size_t>(size_), 0.0),
        right_(static_cast<std::size_t>(size_), kInfinite),
        row_distance_(static_cast<std::size_t>(size_)),
        distance_(static_cast<std::size_t>(size_)),
        from_(static_cast<std::size_t>(size_)),
        via_(static_cast<std::size_t>(size_)),
        done_(static_cast<std::size_t>(size_)) {
    // Prices that fit from the start: the right side takes the least weight of each column.
    for (int column = 0; column < size_; ++column) {
      for (int row = 0; row < size_; ++row) {
        right_[column] = std::min(right_[column], weights_.at(row, column));
      }
    }
    for (int row = 0; row < size_; ++row) {
      double least = kInfinite;
      for (int column = 0; column < size_; ++column) least = std::min(least, slack(row, column));
      left_[row] = least;
    }
  }

  void solve(Work& work) {
    for (int row = 0; row < size_; ++row) {
      while (supply_[row] > 0) {
        const int end = nearest(row, work);
        if (end < 0) return;
        raise_prices(distance_[end]);
        push(row, end);
      }
    }
  }

  double price(int kind) const { return (left_[kind] + right_[kind]) / 2; }

 private:
  double slack(int row, int column) const { return weights_.at(row, column) - left_[row] - right_[column]; }
  int& flow(int row, int column) { return flow_[static_cast<std::size_t>(row) * size_ + column]; }

  void reach(int row, double distance, int column_before) {
    row_distance_[row] = distance;
    via_[row] = column_before;
    for (int column = 0; column < size_; ++column) {
      if (done_[column] != 0) continue;
      const double there = distance + std::max(0.0, slack(row, column));
      if (there >= distance_[column]) continue;
      distance_[column] = there;
      from_[column] = row;
    }
  }

  // The nearest column with demand; -1 where work runs out.
  int nearest(int start, Work& work) {
    std::fill(row_distance_.begin(), row_distance_.end(), kInfinite);
    std::fill(distance_.begin(), distance_.end(), kInfinite);
    std::fill(done_.begin(), done_.end(), 0);
    reach(start, 0, -1);
    while (work.spend(2 * size_ / kArcsPerUnit)) {
      int best = -1;
      for (int column = 0; column < size_; ++column) {
        if (done_[column] == 0 && (best < 0 || distance_[column] < distance_[best])) best = column;
      }
      if (best < 0) return -1;
      if (demand_[best] > 0) return best;
      done_[best] = 1;
      for (int row = 0; row < size_; ++row) {
        if (flow(row, best) == 0 || row_distance_[row] < kInfinite) continue;
        if (!work.spend(size_ / kArcsPerUnit)) return -1;
        reach(row, distance_[best], best);
      }
    }
    return -1;
  }

  // Makes the path that was found one without slack, and leaves no slack below 0.
  void raise_prices(double length) {
    for (int i = 0; i < size_; ++i) {
      if (row_distance_[i] < length) left_[i] += length - row_distance_[i];
      if (done_[i] != 0 && distance_[i] < length) right_[i] -= length - distance_[i];
    }
  }

  void push(int start, int end) {
    int amount = std::min(supply_[start], demand_[end]);
    for (int column = end; from_[column] != start;) {
      const int row = from_[column];
      column = via_[row];
      amount = std::min(amount, flow(row, column));
    }
    supply_[start] -= amount;
    demand_[end] -= amount;
    for (int column = end;;) {
      const int row = from_[column];
      flow(row, column) += amount;
      if (row == start) break;
      column = via_[row];
      flow(row, column) -= amount;
    }
  }

  const PairWeights& weights_;
  int size_;
  std::vector<int> supply_;
  std::vector<int> demand_;
  std::vector<int> flow_;
  std::vector<double> left_;
  std::vector<double> right_;
  std::vector<double> row_distance_;
  std::vector<double> distance_;  // of columns
  std::vector<int> from_;         // by column: the row before it
  std::vector<int> via_;          // by row: the column before it
  std::vector<char> done_;        // by column
};

// A bound rests on the prices alone, not on the way to them: rounding must not let them exceed a weight.
void lower_to_valid(const PairWeights& weights, std::vector<double>& prices) {
  double excess = 0;
  for (int a = 0; a < weights.kinds(); ++a) {
    for (int b = a; b < weights.kinds(); ++b) {
      excess = std::max(excess, prices[a] + prices[b] - weights.at(a, b));
    }
  }
  for (double& price : prices) price -= excess / 2;
}

// The most that the price of a kind can be beside the prices of the others, and its own unless `others_only`.
double left_for(int kind, const PairWeights& weights, const std::vector<double>& prices,
                bool others_only = false) {
  double least = kInfinite;
  for (int other = 0; other < weights.kinds(); ++other) {
    if (others_only && other == kind) continue;
    least = std::min(least, weights.at(kind, other) - prices[other]);
  }
  return least;
}

}  // namespace

std::vector<double> pair_prices(const std::vector<int>& counts, const PairWeights& weights, Work& work) {
  Transport transport(counts, weights);
  transport.solve(work);
  std::vector<double> prices;
  prices.reserve(static_cast<std::size_t>(weights.kinds()));
  for (int kind = 0; kind < weights.kinds(); ++kind) prices.push_back(transport.price(kind));
  lower_to_valid(weights, prices);
  return prices;
}

// Half-way between a price and the most that the others leave for it is valid, whatever the prices were: for
// two kinds, the sum of the four halves is at most the weight of their pair. The next steps raise valid
// prices.
void make_valid(const PairWeights& weights, std::vector<double>& prices) {
  constexpr int kSteps = 3;
  std::vector<double> most(prices.size());
  for (int step = 0; step < kSteps; ++step) {
    for (int kind = 0; kind < weights.kinds(); ++kind) most[kind] = left_for(kind, weights, prices);
    for (std::size_t kind = 0; kind < most.size(); ++kind) prices[kind] = (prices[kind] + most[kind]) / 2;
  }
  for (int kind = 0; kind < weights.kinds(); ++kind) {
    const double alone = weights.at(kind, kind) / 2;
    prices[kind] = std::min(alone, left_for(kind, weights, prices, true));
  }
  lower_to_valid(weights, prices);
}

}  // namespace berth::policies::optimal
