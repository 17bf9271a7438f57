// SPDX-License-Identifier: Apache-2.0
#include "policies/placement/nearest.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace berth::policies {

namespace {

using Set = std::vector<std::size_t>;

constexpr int kNever = std::numeric_limits<int>::max();

// The distances of things from each other, and from those that are taken.
class Distances {
 public:
  Distances(std::size_t things, const DistanceOf& distance, const std::vector<int>& to_taken)
      : things_(things), between_(things * things), to_taken_(to_taken) {
    for (std::size_t b = 0; b < things; ++b) {
      for (std::size_t a = 0; a < b; ++a)
        between_[a * things + b] = between_[b * things + a] = distance(a, b);
    }
  }

  std::size_t things() const { return things_; }
  int between(std::size_t a, std::size_t b) const { return between_[a * things_ + b]; }
  int to_taken(std::size_t thing) const { return to_taken_[thing]; }

 private:
  std::size_t things_;
  std::vector<int> between_;
  const std::vector<int>& to_taken_;
};

// All sets in order, as far as they can still be better than the best one so far.
class OneByOne {
 public:
  OneByOne(const Distances& distances, std::size_t count) : distances_(distances), count_(count) {
    extend(0, 0);
  }
  Set take() { return std::move(best_); }

 private:
  void extend(std::size_t first, int sum) {
    if (sum >= least_) return;
    if (set_.size() == count_) {
      least_ = sum;
      best_ = set_;
      return;
    }
    const std::size_t missing = count_ - set_.size();
    for (std::size_t thing = first; thing + missing <= distances_.things(); ++thing) {
      int farther = sum + distances_.to_taken(thing);
      for (const std::size_t other : set_) farther += distances_.between(thing, other);
      set_.push_back(thing);
      extend(thing + 1, farther);
      set_.pop_back();
    }
  }

  const Distances& distances_;
  std::size_t count_;
  Set set_;
  int least_ = kNever;
  Set best_;
};

// A set that begins with one thing. It grows by the thing nearest to all in the set and to those taken.
std::pair<int, Set> grown_from(const Distances& distances, std::size_t count, std::size_t start) {
  std::vector<int> farther(distances.things());
  for (std::size_t thing = 0; thing < farther.size(); ++thing) farther[thing] = distances.to_taken(thing);
  std::pair<int, Set> grown;
  for (std::size_t next = start;;) {
    grown.first += farther[next];
    grown.second.push_back(next);
    if (grown.second.size() == count) break;
    farther[next] = kNever;  // it is in the set
    for (std::size_t thing = 0; thing < farther.size(); ++thing) {
      if (farther[thing] != kNever) farther[thing] += distances.between(next, thing);
    }
    next = static_cast<std::size_t>(std::min_element(farther.begin(), farther.end()) - farther.begin());
  }
  std::sort(grown.second.begin(), grown.second.end());
  return grown;
}

Set grown(const Distances& distances, std::size_t count) {
  std::pair<int, Set> best{kNever, {}};
  for (std::size_t start = 0; start < distances.things(); ++start)
    best = std::min(best, grown_from(distances, count, start));
  return best.second;
}

}  // namespace

std::uint64_t sets_of(std::size_t things, std::size_t size, std::uint64_t most) {
  std::uint64_t count = 1;
  size = std::min(size, things - size);
  for (std::size_t i = 0; i < size; ++i) {
    count = count * (things - i) / (i + 1);
    if (count > most) return most + 1;
  }
  return count;
}

std::vector<std::size_t> nearest(std::size_t things, std::size_t count, const DistanceOf& distance,
                                 const std::vector<int>& to_taken) {
  things = std::min(things, std::max(count, kMostNearest));
  if (count == 0 || count >= things) {
    Set all(std::min(count, things));
    std::iota(all.begin(), all.end(), std::size_t{0});
    return all;
  }
  const Distances distances(things, distance, to_taken);
  return sets_of(things, count, kMostNearestSets) <= kMostNearestSets ? OneByOne(distances, count).take()
                                                                      : grown(distances, count);
}

}  // namespace berth::policies
