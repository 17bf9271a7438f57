// SPDX-License-Identifier: Apache-2.0
// Branch and bound. It places one tenant after the other, the largest first, on every set of vCPUs that it
// may have. It turns back where the tenants placed so far already pay as much as the best placement known.
//
// Placements that differ by a symmetry have the same score, and only the first of them is looked at:
//
// - threads of one core that every open tenant may have or not have alike;
// - cores of one domain with the same contents;
// - domains without any owner and with the same cores, if no tenant spans domains;
// - tenants of one kind: these take their places in ascending order.
//
// All placements that symmetries make of each other have one that comes first in the order of the search.
// None of the rules cuts that one off: a placement that breaks a rule can be turned into an earlier one.
#include "policies/vcpus/optimal/exact.h"

#include "policies/vcpus/optimal/improve.h"
#include "policies/vcpus/optimal/partial_total.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

namespace berth::policies::optimal {

namespace {

constexpr int kMostThreads = 8;  // of a core

// The contents of a core: for each thread its owner, or the class of tenants that may have it. Sorted, and
// filled up. Cores with equal contents are symmetric.
using Contents = std::array<int, kMostThreads>;
constexpr int kFirstOwner = 1'000'000;  // numbers from here on are owners
constexpr int kIdle = -2;               // of a thread that is not usable
constexpr int kFill = -3;

// A core as a tenant finds it.
struct CoreView {
  std::array<int, kMostThreads> free{};  // threads that it may have, ascending by class
  int count = 0;                         // of these
  int twin = -1;                         // an earlier core of the list with the same contents
  unsigned taken = 0;                    // the chosen ones; the first thread is the highest of `count` bits
};

// What one level of the search needs while deeper ones run.
struct Level {
  std::vector<CoreView> cores;
  std::vector<Contents> contents;
  std::vector<int> taken;
};

class BranchAndBound {
 public:
  BranchAndBound(const Ground& ground, const std::vector<int>& open, Placed& best, Work& work)
      : ground_(ground),
        node_(ground.node()),
        best_(best),
        work_(work),
        partial_(ground),
        order_(open),
        places_(best.places),
        owner_(static_cast<std::size_t>(node_.size()), -1),
        node_cost_(0.5 + node_.size() / 32.0) {
    for (const int tenant : open) places_[tenant] = {};
    for (int tenant = 0; tenant < static_cast<int>(places_.size()); ++tenant) {
      for (const int position : places_[tenant].cpus) owner_[position] = tenant;
      vcpus_ += static_cast<int>(places_[tenant].cpus.size());
    }
    std::sort(order_.begin(), order_.end(), [&](int a, int b) {
      const auto key = [&](int it) { return std::tuple(-ground.tenant(it).vcpus, ground.kind(it), it); };
      return key(a) < key(b);
    });
    least_pressure_.assign(order_.size() + 1, 1.0);
    for (std::size_t i = order_.size(); i-- > 0;) {
      vcpus_ += ground.tenant(order_[i]).vcpus;
      least_pressure_[i] = std::min(least_pressure_[i + 1], ground.tenant(order_[i]).pressure);
    }
    levels_.resize(order_.size());
    for (const Region& region : node_.regions()) {
      std::vector<int>& cores = region_cores_.emplace_back();
      for (const int position : region.cpus) {
        const int core = node_.core(position);
        if (node_.core_threads(core).front() == position) cores.push_back(core);
      }
    }
    classify();
  }

  bool run() {
    place(0);
    return !stopped_;
  }

 private:
  // Positions of one class may be had by the same open tenants. -1 where none may have it.
  void classify() {
    std::map<std::vector<bool>, int> classes;
    for (int position = 0; position < node_.size(); ++position) {
      std::vector<bool> may;
      may.reserve(order_.size());
      for (const int tenant : order_) may.push_back(ground_.may_have(tenant, position));
      const bool none = std::none_of(may.begin(), may.end(), [](bool it) { return it; });
      class_.push_back(none ? -1 : classes.emplace(may, static_cast<int>(classes.size())).first->second);
    }
  }

  void place(std::size_t depth) {
    if (stopped_ || !work_.spend(node_cost_)) {
      stopped_ = true;
      return;
    }
    const bool complete = depth == order_.size();
    const double bound = partial_.at_least(places_, owner_, vcpus_, least_pressure_[depth], complete);
    if (bound > best_.total - kTieTotal) return;
    if (complete) {
      best_ = {.places = places_, .total = bound};
      return;
    }
    const int tenant = order_[depth];
    Level& level = levels_[depth];
    std::vector<std::vector<Contents>> seen;
    for (const int region : ground_.regions(tenant)) {
      view(tenant, region, level);
      if (!ground_.spanning() && without_owner(level.contents)) {
        std::vector<Contents> sorted = level.contents;
        std::sort(sorted.begin(), sorted.end());
        if (std::find(seen.begin(), seen.end(), sorted) != seen.end()) continue;
        seen.push_back(std::move(sorted));
      }
      places_[tenant].region = region;
      level.taken.clear();
      choose(depth, 0);
      places_[tenant] = {};
      if (stopped_) return;
    }
  }

  Contents contents_of(int core) const {
    Contents contents;
    contents.fill(kFill);
    std::size_t at = 0;
    for (const int thread : node_.core_threads(core)) {
      contents[at++] = owner_[thread] >= 0    ? kFirstOwner + owner_[thread]
                       : node_.usable(thread) ? class_[thread]
                                              : kIdle;
    }
    std::sort(contents.begin(), contents.end());
    return contents;
  }

  static bool without_owner(const std::vector<Contents>& cores) {
    return std::all_of(cores.begin(), cores.end(),
                       [](const Contents& it) { return it.back() < kFirstOwner; });
  }

  int domain_of(int core) const { return node_.domain(node_.core_threads(core).front()); }

  // The cores of a region as the tenant finds them.
  void view(int tenant, int region, Level& level) const {
    level.cores.clear();
    level.contents.clear();
    const std::vector<int>& numbers = region_cores_[region];
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      CoreView& core = level.cores.emplace_back();
      for (const int thread : node_.core_threads(numbers[i])) {
        if (owner_[thread] < 0 && ground_.may_have(tenant, thread)) core.free[core.count++] = thread;
      }
      std::sort(core.free.begin(), core.free.begin() + core.count,
                [&](int a, int b) { return std::pair(class_[a], a) < std::pair(class_[b], b); });
      level.contents.push_back(contents_of(numbers[i]));
      for (std::size_t j = i; j-- > 0;) {
        if (level.contents[j] != level.contents[i] || domain_of(numbers[j]) != domain_of(numbers[i]))
          continue;
        core.twin = static_cast<int>(j);
        break;
      }
    }
  }

  bool takes(const CoreView& core, unsigned mask, int i) const {
    return (mask >> (core.count - 1 - i) & 1U) != 0;
  }

  // Whether the threads of a mask skip none of their class.
  bool is_first(const CoreView& core, unsigned mask) const {
    for (int i = 1; i < core.count; ++i) {
      if (!takes(core, mask, i) || takes(core, mask, i - 1)) continue;
      if (class_[core.free[i]] == class_[core.free[i - 1]]) return false;
    }
    return true;
  }

  // Completes the tenant's place from core `at` of the list on, and goes on to the next tenant.
  void choose(std::size_t depth, std::size_t at) {
    Level& level = levels_[depth];
    const auto wanted = static_cast<std::size_t>(ground_.tenant(order_[depth]).vcpus);
    if (level.taken.size() == wanted) {
      settle(depth, level.taken);
      return;
    }
    std::size_t left = 0;
    for (std::size_t i = at; i < level.cores.size(); ++i)
      left += static_cast<std::size_t>(level.cores[i].count);
    if (level.taken.size() + left < wanted) return;
    CoreView& core = level.cores[at];
    // Larger masks take earlier threads. Of two symmetric cores the earlier one takes the larger mask.
    const unsigned all = (1U << core.count) - 1;
    const unsigned first = core.twin < 0 ? all : level.cores[static_cast<std::size_t>(core.twin)].taken;
    for (unsigned mask = first; !stopped_; --mask) {
      if (level.taken.size() + static_cast<std::size_t>(std::popcount(mask)) <= wanted &&
          is_first(core, mask)) {
        const std::size_t before = level.taken.size();
        for (int i = 0; i < core.count; ++i) {
          if (takes(core, mask, i)) level.taken.push_back(core.free[i]);
        }
        core.taken = mask;
        choose(depth, at + 1);
        level.taken.resize(before);
      }
      if (mask == 0) return;
    }
  }

  void settle(std::size_t depth, const std::vector<int>& taken) {
    const int tenant = order_[depth];
    if (depth > 0 && ground_.kind(order_[depth - 1]) == ground_.kind(tenant)) {
      if (comes_before(places_[tenant].region, taken.front(), places_[order_[depth - 1]])) return;
    }
    places_[tenant].cpus = taken;
    for (const int position : taken) owner_[position] = tenant;
    place(depth + 1);
    for (const int position : taken) owner_[position] = -1;
    places_[tenant].cpus.clear();
  }

  // Whether a place that begins with `position` comes before the other in the order of the search.
  bool comes_before(int region, int position, const Place& other) const {
    const auto key = [&](int of, int at) {
      const auto core = node_.core_threads(node_.core(at)).front();
      return std::tuple(of, core, class_[at], at);
    };
    return key(region, position) < key(other.region, other.cpus.front());
  }

  const Ground& ground_;
  const Node& node_;
  Placed& best_;
  Work& work_;
  PartialTotal partial_;
  std::vector<int> order_;
  Places places_;
  std::vector<int> owner_;
  std::vector<int> class_;              // by position
  std::vector<double> least_pressure_;  // of the tenants from an index of order_ on
  int vcpus_ = 0;
  double node_cost_;
  std::vector<Level> levels_;                   // by number of tenants placed before
  std::vector<std::vector<int>> region_cores_;  // by region
  bool stopped_ = false;
};

}  // namespace

bool is_small(const Ground& ground, const Places& places, const std::vector<int>& open) {
  constexpr int kMostVcpus = 64;
  constexpr double kMostPlacements = 1e9;
  if (ground.node().size() > kMostVcpus) return false;
  for (int core = 0; core < ground.node().core_count(); ++core) {
    if (ground.node().core_threads(core).size() > kMostThreads) return false;
  }
  int free = ground.node().usable_count();
  for (const Place& place : places) free -= static_cast<int>(place.cpus.size());
  for (const int tenant : open) free += static_cast<int>(places[tenant].cpus.size());
  double logarithm = 0;
  for (const int tenant : open) {
    const int vcpus = ground.tenant(tenant).vcpus;
    logarithm += std::lgamma(free + 1) - std::lgamma(vcpus + 1) - std::lgamma(std::max(0, free - vcpus) + 1);
    free -= vcpus;
  }
  return logarithm <= std::log(kMostPlacements);
}

bool solve_exactly(const Ground& ground, const std::vector<int>& open, Placed& best, Work& work) {
  return BranchAndBound(ground, open, best, work).run();
}

}  // namespace berth::policies::optimal
