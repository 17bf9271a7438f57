// SPDX-License-Identifier: Apache-2.0
#include "policies/placement/wide.h"

#include "policies/placement/candidate.h"
#include "policies/placement/gpus.h"
#include "policies/placement/nearest.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

namespace berth::policies {

namespace {

using Set = std::vector<std::size_t>;  // indices of bins, ascending

bool sensitive(const model::PendingWorkload& request) {
  return request.workload_class == model::WorkloadClass::latency_sensitive;
}

// A request needs so many cores of one row of `cores_of`, and so many GPUs, in all nodes of its set together.
// A row is one place for its vCPUs: cores of one kind in a region of the host for latency-sensitive work, the
// whole host for other work.
struct Need {
  double cores = 0;
  int gpus = 0;
  std::vector<std::vector<double>> cores_of;  // by row, then bin
  std::vector<int> gpus_of;                   // by bin
};

// vCPUs that a latency-sensitive newcomer could own, by bin.
std::vector<double> ownable_in(const Host& on, const Region& region, int kind) {
  model::CpuSet inside = on.node().cpu_set(region.window) & on.node().kind_cpus(kind);
  inside -= on.withheld();
  std::vector<double> ownable;
  for (const Bin& bin : on.bins()) ownable.push_back(static_cast<double>((bin.unowned & inside).size()));
  return ownable;
}

// A request for vCPUs of one region. Of regions that lie in one node it is enough to know whether the node
// has one with enough of them: they become one row, in which such a node alone is enough.
void add_regions(const Host& on, const std::vector<int>& regions, Need& need) {
  std::vector<double> in_one_node(on.bins().size());
  bool any_in_one = false;
  const auto add = [&](int region, int kind) {
    std::vector<double> ownable = ownable_in(on, on.node().region(region), kind);
    if (std::accumulate(ownable.begin(), ownable.end(), 0.0) < need.cores) return;
    const auto holds = std::find_if(ownable.begin(), ownable.end(), [](double cores) { return cores > 0; });
    if (std::count_if(ownable.begin(), ownable.end(), [](double cores) { return cores > 0; }) > 1) {
      need.cores_of.push_back(std::move(ownable));
      return;
    }
    in_one_node[static_cast<std::size_t>(holds - ownable.begin())] = need.cores;
    any_in_one = true;
  };
  for (const int region : regions) {
    for (int kind = 0; kind < on.node().kind_count(); ++kind) add(region, kind);
  }
  if (any_in_one) need.cores_of.push_back(std::move(in_one_node));
}

Need need_of(const Host& on, const model::PendingWorkload& request) {
  Need need{.cores = static_cast<double>(request.vcpus.value_or(0)),
            .gpus = request.gpus,
            .cores_of = {},
            .gpus_of = {}};
  for (const Bin& bin : on.bins()) {
    // choose_gpus() gives no more than are asked for, which is enough of any node.
    need.gpus_of.push_back(request.gpus > 0 ? static_cast<int>(choose_gpus(bin, request).size()) : 0);
  }
  if (!sensitive(request)) {
    std::vector<double> free;
    for (const Bin& bin : on.bins()) free.push_back(on.free_cores(bin, request.workload_class));
    need.cores_of.push_back(std::move(free));
    return need;
  }
  const auto regions =
      on.node().regions_for(request.vcpus.value_or(0), on.settings().interference.allow_cross_socket);
  if (regions && need.cores > 0) add_regions(on, *regions, need);
  return need;
}

// The sums of a set that grows.
class Sums {
 public:
  explicit Sums(const Need& need) : need_(&need), cores_(need.cores_of.size()) {}

  void add(std::size_t bin) {
    gpus_ += need_->gpus_of[bin];
    for (std::size_t row = 0; row < cores_.size(); ++row) cores_[row] += need_->cores_of[row][bin];
  }
  bool enough() const {
    return gpus_ >= need_->gpus && std::any_of(cores_.begin(), cores_.end(), [this](double cores) {
             return cores - need_->cores > -kCoresRounding;
           });
  }
  // Whether the bin brings something that the set still needs.
  bool helps(std::size_t bin) const {
    if (gpus_ < need_->gpus && need_->gpus_of[bin] > 0) return true;
    for (std::size_t row = 0; row < cores_.size(); ++row) {
      if (need_->cores_of[row][bin] > 0) return true;
    }
    return false;
  }

 private:
  const Need* need_;
  std::vector<double> cores_;
  int gpus_ = 0;
};

// No set of fewer bins can be enough.
std::size_t least_size(const Need& need, std::size_t bins) {
  std::vector<int> gpus = need.gpus_of;
  std::sort(gpus.begin(), gpus.end(), std::greater<>());
  std::vector<std::vector<double>> rows = need.cores_of;
  for (auto& row : rows) std::sort(row.begin(), row.end(), std::greater<>());
  Need best{.cores = need.cores, .gpus = need.gpus, .cores_of = std::move(rows), .gpus_of = std::move(gpus)};
  Sums sums(best);
  for (std::size_t size = 1; size <= bins; ++size) {
    sums.add(size - 1);
    if (sums.enough()) return size;
  }
  return bins + 1;
}

// The sum over the links of the GPUs that a set gives to a request.
using LinksOf = std::function<double(const Set& set)>;

// All sets of one size. The best ones have the least sum of the GPUs' links, if `links` is given, and of
// these the least sum of their nodes' distances.
class SetsOneByOne {
 public:
  SetsOneByOne(const Host& on, const Need& need, std::size_t size, LinksOf links)
      : on_(on), size_(size), links_(std::move(links)), sums_(size + 1, Sums(need)) {
    extend(0, 0);
  }
  std::vector<Set> take() { return std::move(nearest_); }

 private:
  using Worth = std::pair<double, double>;  // links, distance

  void extend(std::size_t first, double distance) {
    // With links, a set that is farther apart may be better.
    if (!links_ && distance > least_.second) return;
    if (set_.size() == size_) {
      if (sums_[size_].enough()) judge(distance);
      return;
    }
    const std::size_t missing = size_ - set_.size();
    for (std::size_t bin = first; bin + missing <= on_.bins().size(); ++bin) {
      double farther = distance;
      for (const std::size_t other : set_) farther += on_.distance(bin, other);
      Sums& sums = sums_[set_.size() + 1];
      sums = sums_[set_.size()];
      sums.add(bin);
      set_.push_back(bin);
      extend(bin + 1, farther);
      set_.pop_back();
    }
  }

  void judge(double distance) {
    const Worth worth(links_ ? links_(set_) : 0, distance);
    if (worth > least_) return;
    if (worth < least_) nearest_.clear();
    least_ = worth;
    if (nearest_.size() < kMostEqualSets) nearest_.push_back(set_);
  }

  const Host& on_;
  std::size_t size_;
  LinksOf links_;           // empty: links do not count
  std::vector<Sums> sums_;  // of the first bins of the set, by their number
  Set set_;
  Worth least_{std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  std::vector<Set> nearest_;
};

double distance_in(const Host& on, const Set& set) {
  double sum = 0;
  for (std::size_t i = 0; i < set.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) sum += on.distance(set[i], set[j]);
  }
  return sum;
}

// From one bin on, always the nearest bin that helps, until they are enough. Then those go that are not
// needed.
Set grown_from(const Host& on, const Need& need, std::size_t start) {
  const std::size_t bins = on.bins().size();
  Sums sums(need);
  std::vector<double> distances(bins);  // to all in the set
  std::vector<char> inside(bins);
  Set set;
  const auto add = [&](std::size_t bin) {
    inside[bin] = 1;
    set.push_back(bin);
    sums.add(bin);
    for (std::size_t other = 0; other < bins; ++other) distances[other] += on.distance(bin, other);
  };
  add(start);
  while (!sums.enough()) {
    std::size_t nearest = bins;
    for (std::size_t bin = 0; bin < bins; ++bin) {
      if (inside[bin] != 0 || !sums.helps(bin)) continue;
      if (nearest == bins || distances[bin] < distances[nearest]) nearest = bin;
    }
    if (nearest == bins) return {};
    add(nearest);
  }
  for (std::size_t at = 0; at < set.size();) {
    Sums others(need);
    for (std::size_t i = 0; i < set.size(); ++i) {
      if (i != at) others.add(set[i]);
    }
    if (others.enough()) {
      set.erase(set.begin() + static_cast<std::ptrdiff_t>(at));
    } else {
      ++at;
    }
  }
  std::sort(set.begin(), set.end());
  return set;
}

std::vector<Set> grown(const Host& on, const Need& need) {
  std::vector<Set> best;
  for (std::size_t start = 0; start < on.bins().size(); ++start) {
    Set set = grown_from(on, need, start);
    if (set.empty()) continue;
    const auto worth = [&](const Set& of) { return std::pair(of.size(), distance_in(on, of)); };
    if (!best.empty() && worth(best.front()) < worth(set)) continue;
    if (!best.empty() && worth(set) < worth(best.front())) best.clear();
    best.push_back(std::move(set));
  }
  std::sort(best.begin(), best.end());
  best.erase(std::unique(best.begin(), best.end()), best.end());
  return best;
}

std::vector<Set> nearest_sets(const Host& on, const Need& need, const model::PendingWorkload& request) {
  const std::size_t bins = on.bins().size();
  const LinksOf links_of = [&](const Set& set) {
    const Bin bin = on.together(set);
    return linkage_of(bin, choose_gpus(bin, request)).distance;
  };
  const bool linked = request.gpus > 1 && on.bins().front().links != nullptr;
  std::uint64_t looked_at = 0;
  for (std::size_t size = std::max<std::size_t>(2, least_size(need, bins)); size <= bins; ++size) {
    const std::uint64_t sets_here = sets_of(bins, size, kMostSets);
    looked_at += sets_here;
    if (looked_at > kMostSets) return grown(on, need);
    const bool by_links = linked && sets_here <= kMostLinkedSets;
    auto sets = SetsOneByOne(on, need, size, by_links ? links_of : LinksOf()).take();
    if (!sets.empty()) return sets;
  }
  return {};
}

}  // namespace

std::optional<Candidate> told_set(const Host& on, std::size_t host, const model::PendingWorkload& request) {
  const auto& gpus = request.told_gpus;
  if (request.told_cpus.empty()) return std::nullopt;
  Set set;
  for (std::size_t bin = 0; bin < on.bins().size(); ++bin) {
    const auto& here = on.bins()[bin].gpus;
    const bool has_gpu = std::any_of(here.begin(), here.end(), [&](const BinGpu& gpu) {
      return std::find(gpus.begin(), gpus.end(), gpu.id) != gpus.end();
    });
    if (has_gpu || on.bins()[bin].cpus.intersects(request.told_cpus)) set.push_back(bin);
  }
  if (set.size() < 2 || on.bins().size() > model::kMostDistantNodes) return std::nullopt;
  Candidate candidate = consider_set(on, host, set, request);
  const bool free = request.told_cpus.is_subset_of(candidate.set->unowned);
  return free && candidate.lack == Lack::nothing ? std::optional(std::move(candidate)) : std::nullopt;
}

std::optional<Candidate> all_nodes(const Host& on, std::size_t host, const model::PendingWorkload& request) {
  const std::size_t bins = on.bins().size();
  if (bins < 2 || bins > model::kMostDistantNodes) return std::nullopt;
  Set all(bins);
  std::iota(all.begin(), all.end(), std::size_t{0});
  Candidate candidate = consider_set(on, host, all, request);
  const bool curable =
      candidate.lack == Lack::nothing || candidate.lack == Lack::cpu || candidate.lack == Lack::gpus;
  if (!curable) return std::nullopt;
  if (!sensitive(request) || request.gpus > 0) return candidate;
  const int vcpus = request.vcpus.value_or(0);
  if (vcpus <= 0) return std::nullopt;
  const auto regions = on.node().regions_for(vcpus, on.settings().interference.allow_cross_socket);
  if (!regions) return candidate;
  bool any_spans = false;
  for (const int region : *regions) {
    for (int kind = 0; kind < on.node().kind_count(); ++kind) {
      const auto ownable = ownable_in(on, on.node().region(region), kind);
      any_spans = any_spans ||
                  std::count_if(ownable.begin(), ownable.end(), [](double cores) { return cores > 0; }) > 1;
    }
  }
  return any_spans ? std::optional(std::move(candidate)) : std::nullopt;
}

std::vector<Candidate> smallest_sets(const Host& on, std::size_t host,
                                     const model::PendingWorkload& request) {
  const auto all = all_nodes(on, host, request);
  // Best-effort work may be promised more than a node has. So the sum of all nodes answers for
  // latency-sensitive work alone.
  if (!all || (sensitive(request) && all->lack != Lack::nothing)) return {};
  std::vector<Candidate> candidates;
  for (const Set& set : nearest_sets(on, need_of(on, request), request)) {
    Candidate candidate = consider_set(on, host, set, request);
    if (candidate.lack == Lack::nothing) candidates.push_back(std::move(candidate));
  }
  return candidates;
}

}  // namespace berth::policies
