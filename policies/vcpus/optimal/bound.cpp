// SPDX-License-Identifier: Apache-2.0
// Why the bound holds.
//
// It takes every online vCPU for one thing: a vCPU of an instance, of the best-effort pool, or an idle one.
// It forgets which things may be where, and that an instance's vCPUs stay together. So it looks at more
// placements than there are, and its least score is at most the least score. That score has two parts.
//
// 1. Domains. Let S be the pressure in a domain, N the number of its vCPUs, and t that on the r-vCPU
// instance's own cores. The instance pays r * k2 * (S - pressure on its cores) / (N - t). If it shares every
// core with others, then t = 2r. So each of its vCPUs pays a * (S - r * u), with a = k2 / (N - 2r), and gets
// r * a * u back for each sibling thread of pressure u. A core that it has alone makes N - t larger, which is
// paid back once more (own_core_rebate). Larger N only makes the payment smaller, so the largest domain
// stands for all. The sum over the domains d is then the sum of A_d * S_d, where A_d sums `a` and S_d the
// pressure. For any factor f > 0
//
//     A * S = ((f*A + S)^2 - (f*A - S)^2) / 4f
//
// The first squares are least if all domains have the same f*A + S. The second are greatest if the things are
// sorted by f*a - s and fill one domain after the other. Each of these is a bound of its own, whatever the
// placement. f is the one that gives the largest difference.
//
// 2. Cores. A pair of things on one core pays (k1 - r*a) * u in both directions. No pairing of all things
// pays less than the prices of matching.h.
//
// Both parts seldom have their best at the same placement. A second form of the bound joins them, if every
// core has two threads. By Cauchy and Schwarz (f*A_d - S_d)^2 is at most the number of cores of the domain
// times the sum of (f*a - s)^2 over the pairs on its cores. So that sum goes into the weights of the pairs,
// and the pairing pays for both. The larger of the two forms counts.
//
// The prices of the second part need not be the best ones, only valid. So a quick bound takes prices of
// groups of similar kinds as a first guess.
//
// Under "request" the pool and idle vCPUs disturb nobody. The mean over the domain's other instances is at
// least their sum over the vCPUs that instances can have there. The mean over the instances on shared cores
// is the pressure of the one mate for r = 1. Otherwise it is at least a part of their sum: the weights of a
// mean differ by no more than the largest request.
#include "policies/vcpus/optimal/bound.h"

#include "policies/vcpus/optimal/grouping.h"
#include "policies/vcpus/optimal/matching.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace berth::policies::optimal {

namespace {

// The weight of a pair that cannot be.
constexpr double kNever = 1e6;

// Kinds for which a thorough bound finds the best prices, and groups otherwise.
constexpr int kMostKinds = 64;
constexpr int kManyGroups = 24;
constexpr int kFewGroups = 12;

// Things of one kind.
struct Kind {
  int count = 0;
  int instances = 0;
  double vcpus = 0;  // of the instance; 0 for the pool and idle vCPUs
  double pressure = 0;
  double k1 = 0;      // the price of a neighbour's pressure on the core
  double weight = 0;  // a
  double rebate = 0;  // of a core that an instance has alone
};

class Relaxation {
 public:
  Relaxation(const Ground& ground, const Places& places, Effort effort)
      : ground_(ground), node_(ground.node()), effort_(effort) {
    measure();
    add_kinds(places);
    const auto kinds = static_cast<int>(kinds_.size());
    if (effort == Effort::thorough && kinds <= kMostKinds) return;
    add_groups(effort == Effort::thorough ? kManyGroups : kFewGroups);
  }

  double bound(Work& work) const {
    const double scale = best_factor();
    double best = pairs(0, 0, work) + std::max(0.0, gain(scale));
    if (two_threads_ && domains_ > 1 && crowded_) {
      // The joined form has its best factor near that of the other.
      const bool quick = effort_ == Effort::quick;
      for (const double share : quick ? std::vector<double>{0.8} : std::vector<double>{0.6, 0.8, 1.0, 1.3}) {
        const double factor = share * scale;
        best = std::max(best, pairs(factor, 1 / (4 * factor), work) + spread(factor) / (4 * factor));
      }
    }
    return std::max(0.0, best - own_);
  }

 private:
  void measure() {
    domains_ = node_.domain_count();
    two_threads_ = true;
    for (int domain = 0; domain < domains_; ++domain) {
      const Region& region = node_.region(domain);
      largest_ = std::max(largest_, static_cast<int>(region.cpus.size()));
      int ownable = 0;
      int cores = 0;
      for (const int position : region.cpus) {
        const std::vector<int>& threads = node_.core_threads(node_.core(position));
        const int siblings = static_cast<int>(threads.size()) - 1;
        degrees_.push_back(siblings);
        most_siblings_ = std::max(most_siblings_, siblings);
        two_threads_ = two_threads_ && siblings == 1;
        cores += threads.front() == position ? 1 : 0;
        ownable += ground_.givable(position) ? 1 : 0;
        idle_ += node_.usable(position) ? 0 : 1;
      }
      most_ownable_ = std::max(most_ownable_, ownable);
      most_cores_ = std::max(most_cores_, cores);
    }
    std::sort(degrees_.begin(), degrees_.end());
  }

  void add_kinds(const Places& places) {
    std::map<int, int> instances;  // by kind of the ground
    std::set<int> spans;
    int pooled = node_.usable_count();
    for (int tenant = 0; tenant < static_cast<int>(places.size()); ++tenant) {
      if (!places[tenant].taken()) continue;
      const int vcpus = ground_.tenant(tenant).vcpus;
      ++instances[ground_.kind(tenant)];
      pooled -= vcpus;
      most_vcpus_ = std::max(most_vcpus_, vcpus);
      if (places[tenant].region >= domains_) spans.insert(ground_.kind(tenant));
    }
    const bool request = ground_.weighting() == Weighting::request;
    const BestEffortDemand& demand = ground_.best_effort();
    // Where the pool spares siblings, its pressure depends on the placement; then it counts as idle.
    const bool quiet = request || demand.avoid_siblings;
    const double busy = quiet ? 0.0 : pool_state(pooled, 0, demand).utilisation;
    std::vector<double> pressures(static_cast<std::size_t>(idle_), 0.0);
    pressures.insert(pressures.end(), static_cast<std::size_t>(std::max(0, pooled)), busy);
    for (const auto& [index, count] : instances) {
      const Tenant& it = ground_.tenant(index);
      pressures.insert(pressures.end(), static_cast<std::size_t>(count) * it.vcpus, it.pressure);
    }
    std::sort(pressures.rbegin(), pressures.rend());
    for (const auto& [index, count] : instances) {
      const Tenant& it = ground_.tenant(index);
      Kind kind{.count = count * it.vcpus,
                .instances = count,
                .vcpus = static_cast<double>(it.vcpus),
                .pressure = it.pressure,
                .k1 = it.model.k1,
                .weight = 0,
                .rebate = 0};
      if (request) {
        weigh_request(it, !spans.empty(), kind);
      } else if (!spans.contains(index)) {
        weigh_overlap(it, pressures, kind);
      }
      crowded_ = crowded_ || kind.weight > 0;
      own_ += count * it.vcpus * kind.weight * it.vcpus * it.pressure;
      kinds_.push_back(kind);
    }
    if (pooled > 0) kinds_.push_back({.count = pooled, .pressure = busy});
    if (idle_ > 0) kinds_.push_back({.count = idle_});
    // Domains smaller than the largest one are filled up with things of no pressure. They have no cores.
    int things = 0;
    for (const Kind& kind : kinds_) things += kind.count;
    padding_ = domains_ * largest_ - things;
  }

  void weigh_overlap(const Tenant& it, const std::vector<double>& pressures, Kind& kind) const {
    const int outside = largest_ - 2 * it.vcpus;
    if (two_threads_ && outside > 0 && never_alone(it.vcpus)) {
      kind.weight = it.model.k2 / outside;
      kind.rebate = own_core_rebate(it, pressures);
    } else if (largest_ > it.vcpus) {
      kind.weight = it.model.k2 / (largest_ - it.vcpus);
    }
  }

  // Whether an instance of this size leaves some core of each domain to others, however it lies there.
  bool never_alone(int vcpus) const {
    for (int domain = 0; domain < domains_; ++domain) {
      const Region& region = node_.region(domain);
      if (static_cast<int>(region.window.size()) < vcpus) continue;
      if (static_cast<int>(region.cpus.size()) <= 2 * vcpus) return false;
    }
    return true;
  }

  // The most that a core without neighbours lowers the payment of an instance below that of one which shares
  // every core. It is that for a domain whose other vCPUs have the highest pressures that there are.
  double own_core_rebate(const Tenant& it, const std::vector<double>& pressures) const {
    const int others = largest_ - it.vcpus;
    double mean = 0;
    for (int i = 0; i < std::min(others, static_cast<int>(pressures.size())); ++i)
      mean += pressures[i] / others;
    const auto per_sibling = [&](int own_cores) {
      return it.vcpus * it.model.k2 / (largest_ - 2 * it.vcpus + 2 * own_cores);
    };
    double most = 0;
    for (int own = 1; 2 * own <= it.vcpus; ++own) {
      most = std::max(most, (per_sibling(0) * it.vcpus - per_sibling(own) * (it.vcpus - 2 * own)) / own);
    }
    return most * mean;
  }

  void weigh_request(const Tenant& it, bool spanning, Kind& kind) const {
    if (it.vcpus > 1 || most_siblings_ > 1)
      kind.k1 /= static_cast<double>(most_vcpus_) * std::max(1, most_siblings_);
    // An instance that spans domains counts in full in each of them.
    if (!spanning && most_ownable_ > it.vcpus) kind.weight = it.model.k2 / (most_ownable_ - it.vcpus);
  }

  // Groups of similar kinds, each with its mean.
  void add_groups(int most) {
    std::vector<Point> points;
    std::vector<int> counts;
    for (const Kind& kind : kinds_) {
      points.push_back({kind.pressure, kind.k1 - kind.vcpus * kind.weight, kind.weight});
      counts.push_back(kind.count);
    }
    for (const std::vector<int>& members : group(points, counts, most)) {
      Kind mean;
      for (const int member : members) mean.count += kinds_[member].count;
      for (const int member : members) {
        const Kind& kind = kinds_[member];
        const double share = static_cast<double>(kind.count) / mean.count;
        mean.vcpus += share * kind.vcpus;
        mean.pressure += share * kind.pressure;
        mean.k1 += share * kind.k1;
        mean.weight += share * kind.weight;
      }
      groups_.push_back(mean);
    }
  }

  double directed(const Kind& suffers, const Kind& disturbs) const {
    const bool request = ground_.weighting() == Weighting::request;
    const double in_domain = suffers.vcpus * (request ? disturbs.vcpus : 1);
    return (suffers.k1 - in_domain * suffers.weight) * disturbs.pressure;
  }

  double apart(const Kind& a, const Kind& b) const { return directed(a, b) + directed(b, a); }

  double pair_weight(int a, int b) const {
    const Kind& first = kinds_[a];
    const double foreign = apart(first, kinds_[b]);
    if (a != b || first.vcpus == 0) return foreign;
    // Two of one instance, or of two.
    const bool request = ground_.weighting() == Weighting::request;
    const double own = request ? 0.0 : 2 * first.k1 * first.pressure - first.rebate;
    if (first.vcpus == 1) return first.instances > 1 ? foreign : kNever;
    return first.instances > 1 ? std::min(own, foreign) : own;
  }

  double tilt(const Kind& kind, double factor) const { return factor * kind.weight - kind.pressure; }

  // The least that the pairs on cores pay, less share * cores * (f*a - s)^2 for each.
  double pairs(double factor, double share, Work& work) const {
    if (most_siblings_ == 0) return 0;
    const int count = static_cast<int>(kinds_.size());
    const auto tilted = [&](const Kind& a, const Kind& b) {
      const double sum = tilt(a, factor) + tilt(b, factor);
      return share * most_cores_ * sum * sum;
    };
    PairWeights weights(count);
    for (int a = 0; a < count; ++a) {
      for (int b = a; b < count; ++b) weights.set(a, b, pair_weight(a, b) - tilted(kinds_[a], kinds_[b]));
    }
    if (groups_.empty()) return sum_prices(pair_prices(counts_of(kinds_), weights, work));

    const auto groups = static_cast<int>(groups_.size());
    PairWeights means(groups);
    for (int a = 0; a < groups; ++a) {
      for (int b = a; b < groups; ++b) {
        means.set(a, b, apart(groups_[a], groups_[b]) - tilted(groups_[a], groups_[b]));
      }
    }
    const std::vector<double> of_groups = pair_prices(counts_of(groups_), means, work);
    work.spend(4.0 * count * count / 100);
    std::vector<double> prices(static_cast<std::size_t>(count), kNever);
    for (int a = 0; a < count; ++a) {
      for (int b = 0; b < groups; ++b) {
        const double weight = apart(kinds_[a], groups_[b]) - tilted(kinds_[a], groups_[b]);
        prices[a] = std::min(prices[a], weight - of_groups[b]);
      }
    }
    make_valid(weights, prices);
    return sum_prices(prices);
  }

  static std::vector<int> counts_of(const std::vector<Kind>& kinds) {
    std::vector<int> counts;
    counts.reserve(kinds.size());
    for (const Kind& kind : kinds) counts.push_back(kind.count);
    return counts;
  }

  // Each thing counts its price as often as it has siblings. The dearest have the fewest, at worst.
  double sum_prices(const std::vector<double>& prices) const {
    std::vector<int> order(prices.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    std::sort(order.begin(), order.end(), [&](int a, int b) { return prices[a] > prices[b]; });
    double sum = 0;
    std::size_t at = 0;
    for (const int kind : order) {
      for (int i = 0; i < kinds_[kind].count; ++i) sum += degrees_[at++] * prices[kind];
    }
    return sum;
  }

  // The least sum of (f*A + S)^2.
  double spread(double factor) const {
    double sum = 0;
    for (const Kind& kind : kinds_) sum += kind.count * (factor * kind.weight + kind.pressure);
    return sum * sum / domains_;
  }

  // The greatest sum of (f*A - S)^2.
  double gathered(double factor) const {
    std::vector<std::pair<double, int>> things;
    for (const Kind& kind : kinds_) things.emplace_back(tilt(kind, factor), kind.count);
    things.emplace_back(0.0, padding_);
    std::sort(things.begin(), things.end());
    double sum = 0;
    double here = 0;
    int room = largest_;
    for (auto [tilted, count] : things) {
      while (count > 0) {
        const int some = std::min(count, room);
        here += some * tilted;
        count -= some;
        room -= some;
        if (room > 0) continue;
        sum += here * here;
        here = 0;
        room = largest_;
      }
    }
    return sum;
  }

  double gain(double factor) const { return (spread(factor) - gathered(factor)) / (4 * factor); }

  // The factor for which the domains' part is largest, found on a scale of powers.
  double best_factor() const {
    double weights = 0;
    double pressures = 0;
    for (const Kind& kind : kinds_) {
      weights += kind.count * kind.weight;
      pressures += kind.count * kind.pressure;
    }
    if (weights <= 0 || pressures <= 0) return 1;
    const double middle = pressures / weights;
    double best = middle;
    for (int step = -8; step <= 8; ++step) {
      const double factor = middle * std::exp2(step);
      if (gain(factor) > gain(best)) best = factor;
    }
    // From a factor of 1.41 down to one of 1.02.
    for (int halvings = 1; halvings <= 5; ++halvings) {
      const double stretch = std::exp2(std::exp2(-halvings));
      for (const double factor : {best / stretch, best * stretch}) {
        if (gain(factor) > gain(best)) best = factor;
      }
    }
    return best;
  }

  const Ground& ground_;
  const Node& node_;
  Effort effort_;
  int domains_ = 0;
  int largest_ = 0;       // vCPUs of the largest domain
  int most_cores_ = 0;    // of a domain
  int most_ownable_ = 0;  // vCPUs of a domain that instances may have
  int most_siblings_ = 0;
  int most_vcpus_ = 1;  // of an instance
  int idle_ = 0;        // vCPUs that berth may not use
  int padding_ = 0;
  bool two_threads_ = true;   // every core has two
  bool crowded_ = false;      // some instance pays for its domain
  std::vector<int> degrees_;  // siblings of each vCPU, ascending
  std::vector<Kind> kinds_;
  std::vector<Kind> groups_;  // empty where the prices of kinds are found without them
  double own_ = 0;            // the instances' own pressure, which is in S but disturbs others alone
};

}  // namespace

double lower_bound(const Ground& ground, const Places& places, Effort effort, Work& work) {
  const bool any = std::any_of(places.begin(), places.end(), [](const Place& it) { return it.taken(); });
  return any ? Relaxation(ground, places, effort).bound(work) : 0;
}

}  // namespace berth::policies::optimal
