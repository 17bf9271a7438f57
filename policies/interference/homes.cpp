// SPDX-License-Identifier: Apache-2.0
#include "policies/interference/homes.h"

#include "policies/interference/waiting.h"
#include "policies/interference/warnings.h"
#include "policies/usage.h"
#include "policies/vcpus/pool.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/core.h>

namespace berth::policies {

namespace {

// Services leave the slower vCPUs of a hybrid processor when so much of the faster ones has room for their
// use, so that they do not come and go.
constexpr double kRoomToLeaveSlower = 0.8;

using model::CpuSet;
using model::SharedInstance;

CpuSet usable_cpus(const Node& node) { return node.cpu_set(node.region(node.whole()).window); }

// The vCPUs of the host that services without vCPUs of their own may use.
CpuSet open_cpus(const Occupancy& occupancy, const CpuSet& withheld) {
  return usable_cpus(occupancy.node()) - owned_by_instances(occupancy) - withheld;
}

// What a service loses to its neighbours, for each core that it uses and each that a vCPU of the domain is
// busy.
double sensitivity(const model::InterferenceModel& model, double siblings) {
  return model.k1 * siblings + model.k2;
}

struct Place {
  const Region* region = nullptr;
  CpuSet cpus;             // that services may use
  double used = 0;         // cores of them in use by services
  int services = 0;        // at home here
  double siblings = 0;     // other threads of the core of a vCPU, on average
  double busy = 0;         // cores in use, of all work
  double sensitivity = 0;  // of all services here, times the cores that they have
  double size() const { return static_cast<double>(region->cpus.size()); }
};

std::vector<Place> places_of(const HomeSearch& search) {
  const Node& node = search.occupancy.node();
  const CpuSet open = open_cpus(search.occupancy, search.withheld);
  const double unowned = std::max(1, search.occupancy.unowned_count());
  const double spread = std::min(1.0, search.best_effort_cores / unowned);
  std::vector<Place> places;
  for (int index = 0; index < node.domain_count(); ++index) {
    Place place;
    place.region = &node.region(index);
    for (const int position : place.region->cpus) {
      if (open.contains(node.cpu(position))) place.cpus.insert(node.cpu(position));
      place.siblings += static_cast<double>(node.core_threads(node.core(position)).size() - 1);
      place.busy += search.occupancy.unowned(position) ? spread : search.occupancy.owner_pressure(position);
    }
    place.siblings /= place.size();
    for (const int tenant : search.occupancy.tenants_in(index)) {
      place.sensitivity += search.occupancy.share(tenant, index) *
                           sensitivity(search.occupancy.tenant(tenant).model, place.siblings);
    }
    places.push_back(std::move(place));
  }
  return places;
}

class Homes {
 public:
  explicit Homes(const HomeSearch& search)
      : search_(search),
        places_(places_of(search)),
        reachable_(usable_cpus(search.occupancy.node()) | search.off_limits) {}

  // A home of before that has any vCPU left.
  bool stands(const SharedRequest& request) const {
    return !cpus_of(indices(request.workload->home), request).empty();
  }

  bool may_leave(const SharedRequest& request) const {
    return cpus_of(indices(request.workload->home), request) != cpus_of(all(), request);
  }

  void keep(const SharedRequest& request) {
    std::vector<int> home = indices(request.workload->home);
    std::string why = fmt::format("at home in {}, as before", names(home));
    if (search_.between_ticks) return settle(request, home, std::move(why));
    if (search_.wider.contains(request.workload->id) && widen(home, request)) {
      why = fmt::format("at home in {}: it waits for vCPUs, so its home is wider", names(home));
    } else if (widen_for_use(home, request)) {
      why = fmt::format("at home in {}: it uses {:.3g} cores, so its home is wider", names(home),
                        *request.use_cores);
    }
    settle(request, home, std::move(why));
  }

  void choose(const SharedRequest& request) {
    // For each core of the service, as one without use is to have a good home too.
    std::vector<std::tuple<double, double, int>> rises;
    for (const bool near : {true, false}) {
      for (int index = 0; index < static_cast<int>(places_.size()); ++index) {
        const Place& place = places_[index];
        if (near && request.preferred && !request.preferred->intersects(place.cpus)) continue;
        const bool fits = *request.use_cores <= room_for({index}, request) + kUseRounding;
        if (!fits || cpus_of({index}, request).empty()) continue;
        rises.emplace_back(rise(place, request), place.services / place.size(), index);
      }
      if (!rises.empty()) break;
    }
    if (rises.empty()) {
      std::vector<int> home;
      widen_for_use(home, request);
      std::string why = fmt::format("at home in {}: no domain has room for the {:.3g} cores that it uses",
                                    names(home), *request.use_cores);
      settle(request, home, std::move(why));
      return;
    }
    std::sort(rises.begin(), rises.end());
    const auto [least, load, best] = rises.front();
    std::string why = fmt::format("at home in {}: the score rises least there", names({best}));
    if (rises.size() > 1) {
      const auto& [more, its_load, next] = rises[1];
      why += fmt::format(", by {:.4g} against {:.4g} in {}", *request.use_cores * least,
                         *request.use_cores * more, names({next}));
    }
    settle(request, {best}, std::move(why));
  }

  void leave_open(const SharedRequest& request) {
    SharedInstance& instance = found_[request.workload->id];
    instance.cores = std::max(0, request.workload->vcpus.value_or(0));
    instance.cpus = pin_of(all(), request);
    instance.reason = "it may run in every domain, as its use is not known yet";
  }

  std::map<std::string, SharedInstance> take() { return std::move(found_); }

 private:
  std::vector<int> all() const {
    std::vector<int> home(places_.size());
    std::iota(home.begin(), home.end(), 0);
    return home;
  }
  std::vector<int> indices(const CpuSet& home) const {
    std::vector<int> list;
    for (int index = 0; index < static_cast<int>(places_.size()); ++index) {
      if (home.contains(places_[index].region->id)) list.push_back(index);
    }
    return list;
  }
  std::string names(const std::vector<int>& home) const {
    std::string text;
    for (const int index : home) text += (text.empty() ? "" : ", ") + places_[index].region->name;
    return text.empty() ? "no domain" : text;
  }
  // Where it could run without a pin.
  CpuSet may_use(const SharedRequest& request) const {
    const auto& allowed = request.workload->allowed_cpus;
    return allowed ? reachable_ & *allowed : reachable_;
  }
  CpuSet cpus_of(const std::vector<int>& home, const SharedRequest& request) const {
    CpuSet cpus;
    for (const int index : home) cpus |= places_[index].cpus;
    return cpus & may_use(request);
  }
  // None where it would be all that the service may use anyway, or cut the use of the services there.
  CpuSet pin_of(const std::vector<int>& home, const SharedRequest& request) const {
    CpuSet cpus = cpus_of(home, request);
    const double more = request.workload->cpus.empty() ? kMoreThanVcpus : kMoreThanPinned;
    if (request.use_cores.value_or(0) > more * room_for(home, request, 1) + kUseRounding) return {};
    if (search_.hold.holds(request.workload->pinned_at) &&
        is_enough(cpus & request.workload->cpus, home, request))
      cpus &= request.workload->cpus;
    return cpus == may_use(request) ? CpuSet() : cpus;
  }
  // Whether the services of this home can do with these vCPUs of it.
  bool is_enough(const CpuSet& cpus, const std::vector<int>& home, const SharedRequest& request) const {
    if (cpus.empty() || indices(request.workload->home) != home) return false;
    double used = request.use_cores.value_or(0);
    for (const int index : home) used += places_[index].used;
    return used <= kBusyShare * static_cast<double>(cpus.size()) + kUseRounding;
  }
  // Cores that the service may use while services keep at most `busy` of each vCPU busy. A full home would
  // hide that they need more.
  double room_for(const std::vector<int>& home, const SharedRequest& request,
                  double busy = kBusyShare) const {
    double room = 0;
    for (const int index : home) {
      const auto may = static_cast<double>(cpus_of({index}, request).size());
      room += std::clamp(spare(places_[index], busy), 0.0, busy * may);
    }
    return room;
  }
  static double spare(const Place& place, double busy) {
    return busy * static_cast<double>(place.cpus.size()) - place.used;
  }

  // Adds the domain with the most room; false if none has vCPUs for it.
  bool widen(std::vector<int>& home, const SharedRequest& request) const {
    int most = -1;
    for (int index = 0; index < static_cast<int>(places_.size()); ++index) {
      if (std::find(home.begin(), home.end(), index) != home.end() || cpus_of({index}, request).empty())
        continue;
      if (most < 0 || spare(places_[index], 1) > spare(places_[most], 1)) most = index;
    }
    if (most < 0) return false;
    home.insert(std::upper_bound(home.begin(), home.end(), most), most);
    return true;
  }
  bool widen_for_use(std::vector<int>& home, const SharedRequest& request) const {
    bool wider = false;
    while (*request.use_cores > room_for(home, request) + kUseRounding && widen(home, request)) wider = true;
    return wider;
  }

  double score(const Place& place, const SharedRequest& request) const {
    return sensitivity(request.model.model, place.siblings) * std::min(1.0, place.busy / place.size());
  }
  // What each core of the service adds to the sum of scores, each times the cores of its service.
  double rise(const Place& place, const SharedRequest& request) const {
    return score(place, request) + place.sensitivity / place.size();
  }

  void settle(const SharedRequest& request, const std::vector<int>& home, std::string why) {
    SharedInstance& instance = found_[request.workload->id];
    instance.cores = *request.use_cores;
    instance.cpus = pin_of(home, request);
    instance.reason = std::move(why);
    const auto all = static_cast<double>(cpus_of(home, request).size());
    for (const int index : home) {
      Place& place = places_[index];
      instance.home.insert(place.region->id);
      ++place.services;
      if (all <= 0) continue;
      const double share = static_cast<double>(cpus_of({index}, request).size()) / all;
      const double cores = share * instance.cores;
      instance.score += share * score(place, request);
      place.used += cores;
      place.busy += cores;
      place.sensitivity += cores * sensitivity(request.model.model, place.siblings);
    }
  }

  const HomeSearch& search_;
  std::vector<Place> places_;
  CpuSet reachable_;
  std::map<std::string, SharedInstance> found_;
};

}  // namespace

std::map<std::string, SharedInstance> choose_homes(const HomeSearch& search,
                                                   const std::vector<SharedRequest>& requests) {
  Homes homes(search);
  std::vector<const SharedRequest*> settled;
  std::vector<const SharedRequest*> newcomers;
  for (const SharedRequest& request : requests) {
    if (!request.use_cores) {
      homes.leave_open(request);
    } else {
      (homes.stands(request) ? settled : newcomers).push_back(&request);
    }
  }
  // Those that cannot leave come first, so that the others see what they use.
  std::stable_partition(settled.begin(), settled.end(),
                        [&](const SharedRequest* request) { return !homes.may_leave(*request); });
  for (const SharedRequest* request : settled) homes.keep(*request);
  std::sort(newcomers.begin(), newcomers.end(), [](const auto* a, const auto* b) {
    return std::tie(*b->use_cores, a->workload->id) < std::tie(*a->use_cores, b->workload->id);
  });
  for (const SharedRequest* request : newcomers) homes.choose(*request);
  return homes.take();
}

CpuSet slower_cpus_to_leave(const Occupancy& occupancy, const CpuSet& withheld,
                            const std::vector<SharedRequest>& requests) {
  const Node& node = occupancy.node();
  const CpuSet usable = usable_cpus(node);
  CpuSet slower = usable - node.kind_cpus(0);
  if (node.kind_count() < 2 || requests.empty()) return {};
  const auto room = static_cast<double>((open_cpus(occupancy, withheld) - slower).size());
  double use = 0;
  bool run_there = false;
  for (const SharedRequest& request : requests) {
    const model::Workload& workload = *request.workload;
    const auto& allowed = workload.allowed_cpus;
    // It has no other place.
    if (allowed && !allowed->intersects(usable - slower)) return {};
    use += request.use_cores.value_or(std::max(0, workload.vcpus.value_or(0)));
    run_there =
        run_there || (!workload.home.empty() && (workload.cpus.empty() || workload.cpus.intersects(slower)));
  }
  const double most = (run_there ? kRoomToLeaveSlower : kFullShare) * room;
  return use <= most + kUseRounding ? slower : CpuSet();
}

std::map<int, double> use_by_domain(const Occupancy& occupancy, const CpuSet& withheld,
                                    const std::vector<SharedRequest>& requests,
                                    const std::map<std::string, SharedInstance>& homes) {
  const Node& node = occupancy.node();
  const CpuSet open = open_cpus(occupancy, withheld);
  std::map<int, CpuSet> domains;
  for (int index = 0; index < node.domain_count(); ++index) {
    const Region& region = node.region(index);
    domains[region.id] = node.cpu_set(region.cpus) & open;
  }
  std::map<int, double> use;
  for (const SharedRequest& request : requests) {
    const SharedInstance& instance = homes.at(request.workload->id);
    const auto& allowed = request.workload->allowed_cpus;
    std::map<int, double> vcpus;  // on which it runs
    double all = 0;
    for (const auto& [id, cpus] : domains) {
      if (!instance.home.empty() && !instance.home.contains(id)) continue;
      const auto count = static_cast<double>(allowed ? (cpus & *allowed).size() : cpus.size());
      if (count > 0) vcpus[id] = count;
      all += count;
    }
    const double cores = latest_use(*request.workload, model::Resource::cpu).value_or(instance.cores);
    for (const auto& [id, count] : vcpus) use[id] += cores * count / all;
  }
  return use;
}

void pin_to_homes(const std::vector<SharedRequest>& requests,
                  const std::map<std::string, SharedInstance>& homes, std::vector<model::Action>& actions) {
  for (const SharedRequest& request : requests) {
    const model::Workload& workload = *request.workload;
    const SharedInstance& instance = homes.at(workload.id);
    if (instance.cpus == workload.cpus) continue;
    model::Action action{.what = model::Set{.workload = workload.id, .value = instance.cpus},
                         .policy = "interference",
                         .decision = {},
                         .reason = "shares vCPUs with others: " + instance.reason};
    if (instance.cpus.empty()) {
      action.what = model::GiveBack{.workload = workload.id, .attribute = model::Attribute::cpus};
      action.reason = "needs no pin: " + instance.reason;
    }
    actions.push_back(std::move(action));
  }
}

}  // namespace berth::policies
