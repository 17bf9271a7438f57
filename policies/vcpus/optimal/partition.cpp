// SPDX-License-Identifier: Apache-2.0
// The prices of all instances together, as if they shared one domain, are a bound for each set of instances
// that fits into a domain (domain_bounds.cpp). The partition into such sets with the least sum is found
// exactly. Its sets get prices of their own, until the best partition has none without. Where there are few
// sets, all of them get prices of their own at once.
#include "policies/vcpus/optimal/partition.h"

#include "policies/vcpus/optimal/domain_bounds.h"

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <utility>

namespace berth::policies::optimal {

namespace {

constexpr double kRounding = 1e-10;  // of a bound
constexpr int kMostTenants = 18;     // of several domains
constexpr int kMostBranches = 60;    // of a domain
constexpr double kCloseGap = 0.005;  // share of the total
// The work for the prices of a domain, roughly.
constexpr double kPricesUnits = 8;

class Partitioning {
 public:
  Partitioning(const Ground& ground, const Places& places, const Shape& shape, double enough, Work& work)
      : shape_(shape),
        enough_(enough),
        work_(work),
        domain_(ground, places, shape, work),
        members_(domain_.members()) {}

  std::optional<Partition> run() {
    if (members_.empty()) return std::nullopt;
    if (shape_.domains == 1) {
      Company all = domain_.everyone();
      const double bound = domain_.best_bound(all, domain_.any_own(), kMostBranches, enough_);
      return Partition{.bound = std::max(0.0, bound - kRounding), .domains = {tenants(all.list)}};
    }
    if (std::ssize(members_) > kMostTenants) return std::nullopt;
    fill();
    known_.resize(static_cast<std::size_t>(shape_.domains) + 1);
    if (work_.left() <= 0) return std::nullopt;
    Partition partition;
    while (work_.left() > 0) {
      const double sum = find_least();
      if (work_.left() <= 0 || best_.empty()) break;
      partition.bound = std::max(0.0, sum - kRounding);
      partition.domains.clear();
      for (const Set set : best_) partition.domains.push_back(tenants(listed(set)));
      if (sum >= enough_ || !refine()) break;
    }
    if (partition.domains.empty()) partition.bound = std::max(0.0, sum_of_shares() - kRounding);
    return partition;
  }

 private:
  List listed(Set set) const {
    List list;
    for (; set != 0; set &= set - 1) list.push_back(std::countr_zero(set));
    return list;
  }
  std::vector<int> tenants(const List& list) const {
    std::vector<int> tenants;
    for (const int i : list) tenants.push_back(members_[i].tenant);
    return tenants;
  }

  // The bounds of all sets that fit into a domain while the others fit into the rest.
  void fill() {
    const Company all = domain_.everyone();
    typical_ = domain_.any_own();
    bounds_.assign(std::size_t{1} << members_.size(), kNoBound);
    refined_.assign(bounds_.size(), 0);
    cheapest_.assign(members_.size(), 0);
    domain_.bound(all, domain_.prices(all, typical_), cheapest_);
    for (std::size_t i = 0; i < cheapest_.size(); ++i) typical_[i].reference = cheapest_[i];
    quick_.emplace(domain_, domain_.prices(all, typical_));
    vcpus_ = 0;
    for (const Member& it : members_) vcpus_ += it.vcpus;
    count_sets(0, shape_.size);
    price_all_ = shape_.domains > 2 && sets_ * kPricesUnits <= 0.5 * work_.left();
    fill_from(0, 0, shape_.size);
  }

  bool others_fit(int room) const {
    return vcpus_ - (shape_.size - room) <= (shape_.domains - 1) * shape_.size;
  }

  void count_sets(int from, int room) {
    sets_ += others_fit(room) ? 1 : 0;
    for (int i = from; i < static_cast<int>(members_.size()); ++i) {
      if (members_[i].vcpus <= room) count_sets(i + 1, room - members_[i].vcpus);
    }
  }

  void fill_from(Set set, int from, int room) {
    if (set != 0 && others_fit(room)) {
      if (!work_.spend(0.1 * std::popcount(set))) return;
      price(set);
    }
    for (int i = from; i < static_cast<int>(members_.size()); ++i) {
      if (members_[i].vcpus <= room) fill_from(set | one(i), i + 1, room - members_[i].vcpus);
    }
  }

  void price(Set set) {
    bounds_[set] = quick_->bound(set);
    if (!price_all_) return;
    const double bound = domain_.best_bound(domain_.company(listed(set)), typical_, 0, kNoBound);
    bounds_[set] = std::max(bounds_[set], bound);
  }

  // Each member gets a share, as large as it can be beside those of earlier ones: the shares of a set are no
  // larger than its bound. So no partition has a smaller sum.
  double sum_of_shares() const {
    std::vector<double> left = bounds_;
    double sum = 0;
    for (int i = 0; i < static_cast<int>(members_.size()); ++i) {
      double share = kNoBound;
      for (Set set = one(i); set < left.size(); set = (set + 1) | one(i)) share = std::min(share, left[set]);
      for (Set set = one(i); set < left.size(); set = (set + 1) | one(i)) left[set] -= share;
      sum += share;
    }
    return sum;
  }

  // Better bounds for the sets of the best partition. False where none has a better one.
  bool refine() {
    std::vector<Set> news;
    for (const Set set : best_) {
      if (refined_[set] == 2) continue;
      const bool thorough = price_all_ || refined_[set] == 1;
      refined_[set] = thorough ? 2 : 1;
      const double bound =
          domain_.best_bound(domain_.company(listed(set)), typical_, thorough ? kMostBranches : 0, kNoBound);
      bounds_[set] = std::max(bounds_[set], bound);
      news.push_back(set);
    }
    forget(news);
    return !news.empty();
  }

  // The least sum of some members over some domains, and the members of the first of these.
  struct Known {
    double sum = kNoBound;
    Set first = 0;
  };

  // Bounds only rise. So what is known stays true, unless one of its sets has a new bound.
  void forget(const std::vector<Set>& news) {
    const auto is_new = [&](Set set) { return std::find(news.begin(), news.end(), set) != news.end(); };
    for (std::size_t domains = 2; domains < known_.size(); ++domains) {
      std::erase_if(known_[domains], [&](const auto& entry) {
        const auto& [set, known] = entry;
        if (known.first == 0) return false;
        const Set others = set & ~known.first;
        const bool stale =
            domains == 2 ? is_new(others) : others != 0 && !known_[domains - 1].contains(others);
        return stale || is_new(known.first);
      });
    }
  }

  // The partition with the least sum, into best_. Infinite where there is none.
  double find_least() {
    Set rest = static_cast<Set>(bounds_.size() - 1);
    int domains = shape_.domains;
    known_[domains].clear();
    const double sum = sum_of(rest, vcpus_, domains);
    best_.clear();
    for (; sum < kNoBound && rest != 0; --domains) {
      best_.push_back(domains == 1 ? rest : known_[domains][rest].first);
      rest &= ~best_.back();
    }
    return sum;
  }

  double sum_of(Set rest, int vcpus, int domains) {
    if (rest == 0) return 0;
    if (vcpus > domains * shape_.size) return kNoBound;
    if (domains == 1) return bounds_[rest];
    const auto known = known_[domains].find(rest);
    if (known != known_[domains].end()) return known->second.sum;
    const int first = std::countr_zero(rest);
    Known found;
    try_firsts(rest & ~one(first), one(first), first + 1, shape_.size - members_[first].vcpus,
               vcpus - members_[first].vcpus, domains, found);
    known_[domains][rest] = found;
    return found.sum;
  }

  // `others`: members that are not in `set`, with so many vCPUs. Members of these from an index on may join.
  void try_firsts(Set others, Set set, int from, int room, int vcpus, int domains, Known& found) {
    if (!work_.spend(0.03)) return;
    if (bounds_[set] < found.sum) {
      const double sum = bounds_[set] + sum_of(others, vcpus, domains - 1);
      if (sum < found.sum) found = {.sum = sum, .first = set};
    }
    for (Set more = others >> static_cast<unsigned>(from); more != 0; more &= more - 1) {
      const int i = from + std::countr_zero(more);
      if (members_[i].vcpus <= room)
        try_firsts(others & ~one(i), set | one(i), i + 1, room - members_[i].vcpus, vcpus - members_[i].vcpus,
                   domains, found);
    }
  }

  const Shape& shape_;
  double enough_;
  Work& work_;
  DomainBounds domain_;
  const std::vector<Member>& members_;
  int vcpus_ = 0;                   // of all members
  std::optional<SetBounds> quick_;  // by the prices of all members together
  std::vector<Own> typical_;        // the references by these
  std::vector<int> cheapest_;
  int sets_ = 0;
  bool price_all_ = false;                             // every set gets prices of its own
  std::vector<double> bounds_;                         // by set
  std::vector<char> refined_;                          // 1: prices of its own, 2: with branches
  std::vector<Set> best_;                              // the partition with the least sum
  std::vector<std::unordered_map<Set, Known>> known_;  // by number of domains
};

}  // namespace

std::optional<Partition> best_partition(const Ground& ground, const Places& places, double enough,
                                        Work& work) {
  const std::optional<Shape> shape = shape_of(ground, places);
  if (!shape) return std::nullopt;
  return Partitioning(ground, places, *shape, enough, work).run();
}

bool is_close(double total, double bound) { return total - bound <= kCloseGap * total; }

Partition raised_bound(const Ground& ground, const Places& places, double total, double bound, Work& work) {
  Partition raised{.bound = bound, .domains = {}};
  if (is_close(total, bound)) return raised;
  const auto partition = best_partition(ground, places, (1 - kCloseGap) * total, work);
  if (!partition) return raised;
  return {.bound = std::max(bound, partition->bound), .domains = partition->domains};
}

}  // namespace berth::policies::optimal
