// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/policies/placement/naive_placement.h"

#include "model/glob.h"
#include "tests/unit/policies/hosts.h"
#include "tests/unit/policies/interference/naive.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

namespace berth::policies::naive {

namespace {

using Set = std::set<int>;

bool sensitive(const model::PendingWorkload& request) {
  return request.workload_class == model::WorkloadClass::latency_sensitive;
}

double mean_use(const model::Workload& workload) {
  double sum = 0;
  for (const auto& sample : workload.usage) sum += sample.cpu_cores;
  return workload.usage.empty() ? 0 : sum / static_cast<double>(workload.usage.size());
}

Set both(const Set& a, const Set& b) {
  Set common;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::inserter(common, common.end()));
  return common;
}

// One host, one bin, one request. The bin is a NUMA node, or a set of them.
class Fitting {
 public:
  Fitting(const model::PendingWorkload& request, const model::Snapshot& host, const Outcome& outcome,
          const Set& nodes, const PolicySettings& settings, Links links)
      : request_(request),
        host_(host),
        nodes_(nodes),
        settings_(settings),
        outcome_(outcome),
        links_count_(links == Links::count) {
    const model::CpuSet given = testing::given_out(host.topology, settings.interference);
    for (const auto& cpu : host.topology.cpus()) {
      if (!given.contains(cpu.cpu)) continue;
      usable_.insert(cpu.cpu);
      if (nodes.contains(cpu.numa)) here_.insert(cpu.cpu);
    }
    free_ = usable_;
    for (const auto& workload : host.workloads) {
      if (!outcome_.placed.contains(workload.id)) continue;
      for (const int cpu : outcome_.placed.at(workload.id)) free_.erase(cpu);
    }
  }

  std::optional<Place> find() {
    const auto closed = [](const auto& resource) {
      return resource && resource->state != model::SchedulingState::schedule;
    };
    if (closed(host_.advertised.cpu) || closed(host_.advertised.memory)) return std::nullopt;
    Place found{.host = host_.host, .nodes = nodes_, .cpus = both(free_, here_), .gpus = {}};
    found.cpu_left = cpu_there() - request_.vcpus.value();
    if (found.cpu_left < -1e-9 || found.cpus.empty()) return std::nullopt;
    found.memory_left = memory_there() - static_cast<double>(request_.memory_request_bytes);
    if (found.memory_left < 0) return std::nullopt;
    if (!find_gpus(found)) return std::nullopt;
    if (sensitive(request_)) {
      const Outcome with = with_newcomer();
      const auto placed = with.placed.find(request_.id);
      if (placed == with.placed.end()) return std::nullopt;
      found.cpus = placed->second;
      found.rise = with.node - outcome_.node;
    }
    return found;
  }

  // To be ascending.
  std::vector<double> order(Place& found) const {
    double idle_left = 0;
    double memory = 0;
    bool any = false;
    for (const auto& gpu : host_.topology.gpus()) {
      if (!is_here(gpu)) continue;
      any = true;
      const bool taken = std::find(found.gpus.begin(), found.gpus.end(), gpu.id) != found.gpus.end();
      if (idle(gpu) && !taken) ++idle_left;
      if (taken) memory += static_cast<double>(free_of(gpu) - request_.gpu_memory_bytes);
    }
    if (request_.gpus > 0 && links_count_)
      return {idle_left, found.links, memory, rounded(found.cpu_left, found)};
    if (request_.gpus > 0) return {idle_left, memory, rounded(found.cpu_left, found)};
    const bool last = any && settings_.placement.avoid_gpu_nodes;
    std::vector<double> order{last ? 1.0 : 0.0};
    if (sensitive(request_)) {
      const bool meets_its_own =
          std::any_of(host_.workloads.begin(), host_.workloads.end(), [&](const model::Workload& it) {
            return it.workload_class == model::WorkloadClass::latency_sensitive &&
                   it.service == request_.service;
          });
      order.push_back(settings_.placement.spread_service && meets_its_own ? 1 : 0);
      order.push_back(rounded(found.rise, found));
    }
    if (last) {
      order.push_back(idle_left);
      return order;
    }
    double share = 0;
    const double cpus = static_cast<double>(here_.size()) * (sensitive(request_) ? 1 : cpu_factor());
    if (cpus > 0) share += found.cpu_left / cpus / 2;
    if (memory_total() > 0) share += found.memory_left / memory_total() / 2;
    order.push_back(-rounded(share, found));
    return order;
  }

 private:
  // In billionths. The figures are off by less than a twentieth of one (placement_property_test.cpp).
  static double rounded(double figure, Place& found) {
    const double billionths = figure * 1e9;
    const double above = billionths - std::floor(billionths);
    if (std::abs(above - 0.5) < 0.05) found.between = true;
    return std::round(billionths);
  }

  double cpu_factor() const { return host_.advertised.cpu ? host_.advertised.cpu->factor : 1; }

  double cpu_there() const {
    if (sensitive(request_)) {
      Set ownable = both(free_, here_);
      for (const int cpu : settings_.interference.reserved_cpus) ownable.erase(cpu);
      const int least = std::max(1, settings_.interference.be_min_cpus);
      return std::max(0, std::min(static_cast<int>(ownable.size()), static_cast<int>(free_.size()) - least));
    }
    double there = cpu_factor() * static_cast<double>(both(free_, here_).size());
    for (const auto& workload : host_.workloads) {
      if (outcome_.placed.contains(workload.id)) continue;
      Set over = free_;
      if (workload.allowed_cpus) {
        for (const int cpu : usable_) {
          if (!workload.allowed_cpus->contains(cpu)) over.erase(cpu);
        }
      }
      if (over.empty()) over = usable_;
      there -= allocation(workload) * static_cast<double>(both(over, here_).size()) /
               static_cast<double>(over.size());
    }
    return there;
  }

  double allocation(const model::Workload& workload) const {
    const auto node = static_cast<double>(usable_.size());
    if (workload.cpu_quota_cores) return std::min(node, *workload.cpu_quota_cores);
    if (!workload.vcpus) return mean_use(workload);
    double cores = std::max(0, *workload.vcpus);
    if (workload.workload_class == model::WorkloadClass::latency_sensitive && !workload.cpus.empty())
      cores = std::max(cores, static_cast<double>(workload.cpus.size()));
    return std::min(node, cores);
  }

  double usable_memory() const {
    const auto cap = static_cast<double>(settings_.oversell.memory_cap_bytes);
    const auto total = static_cast<double>(host_.memory.total_bytes);
    return cap > 0 && cap < total ? cap : total;
  }

  double memory_total() const {
    const double factor = host_.advertised.memory ? host_.advertised.memory->factor : 1;
    return std::floor(factor * usable_memory());
  }

  double memory_there() const {
    double claimed = 0;
    for (const auto& workload : host_.workloads) {
      double claim = static_cast<double>(workload.memory_request_bytes);
      std::optional<double> last;
      for (const auto& sample : workload.usage) {
        if (sample.memory_bytes) last = static_cast<double>(*sample.memory_bytes);
      }
      claimed += std::max(claim, last.value_or(0));
    }
    const double unusable = static_cast<double>(host_.memory.total_bytes) - usable_memory();
    return std::max(0.0, std::min(memory_total() - claimed,
                                  static_cast<double>(host_.memory.available_bytes) - unusable));
  }

  int home_of(const model::Gpu& gpu) const {
    if (gpu.numa) return *gpu.numa;
    int first = *nodes_.begin();
    for (const auto& cpu : host_.topology.cpus()) {
      if (cpu.online && cpu.allowed) first = std::min(first, cpu.numa);
    }
    for (const auto& other : host_.topology.gpus()) first = std::min(first, other.numa.value_or(first));
    return first;
  }
  bool is_here(const model::Gpu& gpu) const { return nodes_.contains(home_of(gpu)); }

  static bool memory_is_known(const model::Gpu& gpu) {
    return gpu.memory_bytes.has_value() && gpu.memory_used_bytes.has_value();
  }
  // 0 where it is not known, which is as much as a request may ask of such a GPU.
  static std::uint64_t free_of(const model::Gpu& gpu) {
    return memory_is_known(gpu) ? *gpu.memory_bytes - *gpu.memory_used_bytes : 0;
  }

  int users(const model::Gpu& gpu) const {
    int count = gpu.other_processes.value_or(0) > 0 ? 1 : 0;
    for (const auto& workload : host_.workloads)
      count += static_cast<int>(std::count(workload.gpus.begin(), workload.gpus.end(), gpu.id));
    return count;
  }

  bool idle(const model::Gpu& gpu) const { return gpu.healthy && !gpu.holder && users(gpu) == 0; }

  const model::Gpu& gpu_named(const std::string& id) const {
    return *std::find_if(host_.topology.gpus().begin(), host_.topology.gpus().end(),
                         [&id](const model::Gpu& gpu) { return gpu.id == id; });
  }

  // NV, PIX, PXB, PHB, NODE, SYS.
  double link_distance(const std::string& one, const std::string& other) const {
    const auto link_of = [](const model::Gpu& gpu, const std::string& peer) {
      for (const model::GpuPeer& link : gpu.links) {
        if (link.id == peer) return static_cast<int>(link.link);
      }
      return -1;
    };
    const auto& gpus = host_.topology.gpus();
    const bool any =
        std::any_of(gpus.begin(), gpus.end(), [](const auto& gpu) { return !gpu.links.empty(); });
    const model::Gpu& a = gpu_named(one);
    const model::Gpu& b = gpu_named(other);
    if (!any) return nodes_.size() == 1 ? 8 : 9;
    const int link = std::max(link_of(a, other), link_of(b, one));
    if (link < 0) return home_of(a) == home_of(b) ? 8 : 9;
    return std::array{0, 5, 6, 7, 8, 9}.at(static_cast<std::size_t>(link));
  }

  double links_among(const std::vector<std::string>& gpus) const {
    double sum = 0;
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) sum += link_distance(gpus[i], gpus[j]);
    }
    return sum;
  }

  // Adds so many of the others that the links of all are least; of equal ones, the first by their order.
  void add_nearest(std::vector<std::string>& gpus, const std::vector<std::string>& others) const {
    const auto missing = static_cast<std::size_t>(request_.gpus) - gpus.size();
    using Choice = std::pair<double, std::vector<std::size_t>>;
    std::optional<Choice> best;
    for (unsigned mask = 0; mask < 1U << others.size(); ++mask) {
      Choice choice;
      std::vector<std::string> all = gpus;
      for (std::size_t i = 0; i < others.size(); ++i) {
        if (((mask >> i) & 1U) == 0) continue;
        choice.second.push_back(i);
        all.push_back(others[i]);
      }
      if (choice.second.size() != missing) continue;
      choice.first = links_among(all);
      if (!best || choice < *best) best = choice;
    }
    for (const std::size_t i : best->second) gpus.push_back(others[i]);
  }

  bool find_gpus(Place& found) const {
    using Good = std::tuple<bool, bool, std::uint64_t, std::string>;
    std::map<int, std::set<Good>> good_of;  // by node
    for (const auto& gpu : host_.topology.gpus()) {
      const std::uint64_t free = free_of(gpu);
      if (!is_here(gpu) || !gpu.healthy || gpu.holder || free < request_.gpu_memory_bytes) continue;
      if (request_.gpu_exclusive && users(gpu) > 0) continue;
      if (request_.gpu_model && !model::glob_match(*request_.gpu_model, gpu.model)) continue;
      good_of[home_of(gpu)].emplace(idle(gpu), memory_is_known(gpu), free, gpu.id);
    }
    // Node by node: the one with the most first, then the lowest.
    while (std::ssize(found.gpus) < request_.gpus && !good_of.empty()) {
      auto most = good_of.begin();
      for (auto node = good_of.begin(); node != good_of.end(); ++node) {
        if (node->second.size() > most->second.size()) most = node;
      }
      for (const bool idle : {false, true}) {  // shared ones first
        std::vector<std::string> these;
        for (const Good& gpu : most->second) {
          if (std::get<0>(gpu) == idle) these.push_back(std::get<3>(gpu));
        }
        const auto missing = static_cast<std::size_t>(request_.gpus) - found.gpus.size();
        if (links_count_ && these.size() > missing) {
          add_nearest(found.gpus, these);
          continue;
        }
        these.resize(std::min(these.size(), missing));
        found.gpus.insert(found.gpus.end(), these.begin(), these.end());
      }
      good_of.erase(most);
    }
    std::sort(found.gpus.begin(), found.gpus.end());
    if (links_count_) found.links = links_among(found.gpus);
    return std::ssize(found.gpus) == request_.gpus;
  }

  // As a workload that came last and may only be here.
  Outcome with_newcomer() const {
    model::Snapshot with = host_;
    model::Workload newcomer;
    newcomer.id = request_.id;
    newcomer.service = request_.service;
    newcomer.workload_class = model::WorkloadClass::latency_sensitive;
    newcomer.vcpus = request_.vcpus;
    newcomer.created = 1e9;
    newcomer.allowed_cpus.emplace();
    for (const int cpu : here_) newcomer.allowed_cpus->insert(cpu);
    with.workloads.push_back(newcomer);
    return place(with, settings_.interference);
  }

  const model::PendingWorkload& request_;
  const model::Snapshot& host_;
  Set nodes_;
  const PolicySettings& settings_;
  Set usable_;
  Set here_;
  Set free_;                // owned by nobody
  const Outcome& outcome_;  // of the residents
  bool links_count_;
};

// Both ways; where they are not known, 12 in a socket and 32 across. 0 for a single node.
double distance_in(const Set& nodes, const model::Snapshot& host) {
  const auto socket_of = [&host](int node) {
    for (const auto& cpu : host.topology.cpus()) {
      if (cpu.online && cpu.allowed && cpu.numa == node) return cpu.socket;
    }
    return -1 - node;
  };
  double sum = 0;
  for (const int a : nodes) {
    for (const int b : nodes) {
      if (a >= b) continue;
      const auto there = host.topology.numa_distances().between(a, b);
      const auto back = host.topology.numa_distances().between(b, a);
      const double unknown = socket_of(a) == socket_of(b) ? 12 : 32;
      sum += there && back ? (*there + *back) / 2.0 : unknown;
    }
  }
  return sum;
}

// Places are sorted by this: the number of nodes, the links of the GPUs of several nodes, the nodes'
// distances, the order of the page, and names.
using Key = std::tuple<std::size_t, double, double, std::vector<double>, std::string, std::vector<int>>;

std::optional<std::pair<Key, Place>> in_bin(const model::PendingWorkload& request,
                                            const model::Snapshot& host, const Outcome& outcome,
                                            const Set& nodes, const PolicySettings& settings, Links links) {
  Fitting fitting(request, host, outcome, nodes, settings, links);
  auto found = fitting.find();
  if (!found) return std::nullopt;
  const std::vector<double> order = fitting.order(*found);
  return std::pair(Key(nodes.size(), nodes.size() > 1 ? found->links : 0, distance_in(nodes, host), order,
                       host.host, std::vector<int>(nodes.begin(), nodes.end())),
                   *found);
}

using Found = std::vector<std::pair<Key, Place>>;

// Whether rounding may decide between two of these.
bool is_close(const Found& all) {
  const auto alike = [](const std::vector<double>& a, const std::vector<double>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](double x, double y) { return std::abs(x - y) <= 1; });
  };
  for (const auto& [key, place] : all) {
    for (const auto& [other_key, other] : all) {
      if (&place != &other && place.between && alike(std::get<3>(key), std::get<3>(other_key))) return true;
    }
  }
  return false;
}

// The best of all sets of several nodes: the smallest, then the nearest, then by the order.
std::optional<std::pair<Key, Place>> in_sets(const model::PendingWorkload& request,
                                             const model::Snapshot& host, const Outcome& outcome,
                                             const Set& all, const PolicySettings& settings, Links links,
                                             Found& every) {
  std::optional<std::pair<Key, Place>> best;
  const std::vector<int> list(all.begin(), all.end());
  for (unsigned mask = 0; mask < 1U << list.size(); ++mask) {
    Set nodes;
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (((mask >> i) & 1U) != 0) nodes.insert(list[i]);
    }
    if (nodes.size() < 2) continue;
    auto found = in_bin(request, host, outcome, nodes, settings, links);
    if (found) every.push_back(*found);
    if (found && (!best || found->first < best->first)) best = std::move(found);
  }
  return best;
}

}  // namespace

Places rank(const model::PendingWorkload& request, const std::vector<model::Snapshot>& hosts,
            const PolicySettings& settings, Links links) {
  Places places;
  std::map<Key, Place> sorted;
  Found every;
  for (const auto& host : hosts) {
    Set nodes;
    for (const auto& cpu : host.topology.cpus()) {
      if (cpu.online && cpu.allowed) nodes.insert(cpu.numa);
    }
    for (const auto& gpu : host.topology.gpus()) {
      if (gpu.numa) nodes.insert(*gpu.numa);
    }
    const Outcome outcome = place(host, settings.interference);
    bool fits = false;
    for (const int numa : nodes) {
      auto found = in_bin(request, host, outcome, {numa}, settings, links);
      if (!found) places.rejected.emplace(host.host, numa);
      if (found) every.push_back(*found);
      fits = fits || found;
      if (found) sorted.insert(*std::move(found));
    }
    if (fits) continue;
    if (auto found = in_sets(request, host, outcome, nodes, settings, links, every))
      sorted.insert(*std::move(found));
  }
  for (const auto& [key, place] : sorted) places.fitting.push_back(place);
  places.close = is_close(every);
  return places;
}

}  // namespace berth::policies::naive
