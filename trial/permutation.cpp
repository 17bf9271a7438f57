// SPDX-License-Identifier: Apache-2.0
#include "trial/permutation.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace berth::trial {

namespace {

constexpr std::size_t kMostEnumerated = 12;
constexpr std::size_t kDraws = 4999;
constexpr double kTail = 0.025;  // of a 95 % interval
// Sums of the same numbers in another order differ by less than this share.
constexpr double kSame = 1e-9;

// Ways to exchange the sides of blocks.
class Exchanges {
 public:
  Exchanges(std::size_t blocks, std::uint64_t seed) : words_((blocks + 63) / 64) {
    // The first way exchanges nothing.
    if (blocks <= kMostEnumerated) {
      for (std::uint64_t way = 0; way < std::uint64_t{1} << blocks; ++way) bits_.push_back(way);
      words_ = 1;
      return;
    }
    std::mt19937_64 random(seed);
    bits_.assign(words_, 0);
    for (std::size_t i = 0; i < kDraws * words_; ++i) bits_.push_back(random());
  }

  std::size_t size() const { return bits_.size() / words_; }
  bool exchanges(std::size_t way, std::size_t block) const {
    return (bits_[way * words_ + block / 64] >> (block % 64) & 1) != 0;
  }

 private:
  std::size_t words_;  // of 64 blocks each
  std::vector<std::uint64_t> bits_;
};

// The differences of a figure, and where they are.
struct Differences {
  std::vector<double> values;
  std::vector<std::size_t> blocks;
};

Differences differences_of(const Series& series, bool relative) {
  Differences differences;
  for (std::size_t block = 0; block < series.size(); ++block) {
    if (!series[block]) continue;
    const auto& [a, b] = *series[block];
    differences.values.push_back(relative ? std::log(b / a) : b - a);
    differences.blocks.push_back(block);
  }
  return differences;
}

Change begin_change(const Series& series) {
  Change change;
  change.relative = true;
  for (const auto& pair : series) {
    if (!pair) continue;
    ++change.blocks;
    change.a += (*pair)[0];
    change.b += (*pair)[1];
    if (!((*pair)[0] > 0 && (*pair)[1] > 0)) change.relative = false;
  }
  change.relative = change.relative && change.blocks > 0;
  if (change.blocks == 0) return change;
  change.a /= static_cast<double>(change.blocks);
  change.b /= static_cast<double>(change.blocks);
  return change;
}

// Bounds by the sorted means of subsets. Without enough of them there is none.
void set_interval(Change& change, std::vector<double>& means) {
  const auto k = static_cast<std::size_t>(kTail * static_cast<double>(means.size() + 1));
  if (k == 0) return;
  std::sort(means.begin(), means.end());
  change.low = means[k - 1];
  change.high = means[means.size() - k];
}

}  // namespace

std::vector<Change> compare(const std::vector<Series>& figures, std::uint64_t seed) {
  std::vector<Change> changes;
  const Exchanges exchanges(figures.empty() ? 0 : figures.front().size(), seed);
  std::vector<double> largest(exchanges.size(), 0);  // of all figures, by way
  std::vector<double> measured;                      // of each figure, as it is; below 0: takes no part
  for (const Series& series : figures) {
    Change& change = changes.emplace_back(begin_change(series));
    measured.push_back(-1);
    const Differences differences = differences_of(series, change.relative);
    double sum = 0;
    double squares = 0;
    for (const double value : differences.values) {
      sum += value;
      squares += value * value;
    }
    if (change.blocks == 0) continue;
    const double spread = std::sqrt(squares);
    const bool tested = change.blocks >= kFewestBlocks && spread > 0;
    if (tested) measured.back() = std::abs(sum) / spread;
    std::vector<double> means;
    for (std::size_t way = 0; way < exchanges.size(); ++way) {
      double part = 0;
      std::size_t count = 0;
      for (std::size_t i = 0; i < differences.values.size(); ++i) {
        if (!exchanges.exchanges(way, differences.blocks[i])) continue;
        part += differences.values[i];
        ++count;
      }
      if (tested) largest[way] = std::max(largest[way], std::abs(sum - 2 * part) / spread);
      if (count > 0) means.push_back(part / static_cast<double>(count));
    }
    change.change = sum / static_cast<double>(change.blocks);
    if (change.blocks >= kFewestBlocks - 1) set_interval(change, means);
    if (!change.relative) continue;
    change.change = std::expm1(change.change);
    if (change.low) change.low = std::expm1(*change.low);
    if (change.high) change.high = std::expm1(*change.high);
  }
  for (std::size_t i = 0; i < changes.size(); ++i) {
    if (measured[i] < 0) continue;
    const auto as_large =
        std::count_if(largest.begin(), largest.end(),
                      [least = measured[i] * (1 - kSame)](double it) { return it >= least; });
    changes[i].p = static_cast<double>(as_large) / static_cast<double>(exchanges.size());
    changes[i].shown = changes[i].p <= kLevel;
  }
  return changes;
}

}  // namespace berth::trial
