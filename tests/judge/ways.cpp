// SPDX-License-Identifier: Apache-2.0
// The ways of sharing the host: berth's, those of the field, as their documents have them, and simple ones.
#include "policies/interference/settings.h"
#include "tests/judge/berth.h"
#include "tests/judge/rows.h"
#include "tests/unit/policies/draws.h"
#include "tests/unit/policies/interference/ground_truth/baselines.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <memory>
#include <numeric>
#include <utility>

namespace berth::judge {

namespace {

using policies::BestEffortPriority;
using policies::InterferenceSettings;
using policies::Search;
using Groups = std::vector<Group>;

CpuMask mask_of(const model::CpuSet& cpus) {
  CpuMask mask;
  for (const int cpu : cpus) mask.set(static_cast<std::size_t>(cpu));
  return mask;
}

// What the batch is to the services.
enum class Priority { same, least_weight, idle };

Groups with_batch(const Host& host, Groups groups, Priority priority) {
  for (int group = 0; group < host.groups(); ++group) {
    if (!host.is_batch(group)) continue;
    groups[group].idle = priority == Priority::idle;
    if (priority == Priority::least_weight) groups[group].weight = kLeastWeight;
  }
  return groups;
}

Groups idle_anywhere(const Host& host) { return with_batch(host, same_priority(host), Priority::idle); }

// Each service gets vCPUs of its own, if there are enough, and the batch and the other services the rest. See
// ground_truth/baselines.h: `packed` is kubelet's static CPU manager with full-pcpus-only.
enum class Take { packed, spread, random };
Groups own(const Host& host, Take take) {
  auto groups = same_priority(host);
  const model::Topology topology = topology_of(host.places);
  policies::testing::Draws draws(host.seed + 31);
  model::CpuSet left = topology.usable();
  std::vector<std::size_t> without;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (host.is_batch(static_cast<int>(i))) {
      without.push_back(i);
      continue;
    }
    const int vcpus = host.services[i].vcpus;
    const model::CpuSet taken = take == Take::packed ? policies::testing::take_packed(topology, left, vcpus)
                                : take == Take::spread
                                    ? policies::testing::take_spread(topology, left, vcpus)
                                    : policies::testing::take_random(topology, left, vcpus, draws);
    // The last vCPU stays for the others.
    if (taken.empty() || taken == left) {
      without.push_back(i);
      continue;
    }
    groups[i].mask = mask_of(taken);
    left -= taken;
  }
  for (const std::size_t i : without) groups[i].mask = mask_of(left);
  return groups;
}
Groups packed(const Host& host) { return own(host, Take::packed); }
Groups spread(const Host& host) { return own(host, Take::spread); }
Groups random(const Host& host) { return own(host, Take::random); }

Groups spread_idle_anywhere(const Host& host) {
  auto groups = with_batch(host, spread(host), Priority::idle);
  for (int group = 0; group < host.groups(); ++group) {
    if (host.is_batch(group)) groups[group].mask = everywhere(host);
  }
  return groups;
}

// No service owns anything: each is in the part with the least requests, of those that `part` numbers.
Groups in_parts(const Host& host, int CpuPlace::*part) {
  auto groups = same_priority(host);
  std::vector<int> requests;
  std::vector<CpuMask> masks;
  for (int cpu = 0; cpu < host.cpus(); ++cpu) {
    const auto number = static_cast<std::size_t>(host.places[cpu].*part);
    if (masks.size() <= number) masks.resize(number + 1);
    masks[number].set(static_cast<std::size_t>(cpu));
  }
  requests.resize(masks.size());
  for (std::size_t i = 0; i < host.services.size(); ++i) {
    const auto least = std::min_element(requests.begin(), requests.end());
    *least += host.services[i].vcpus;
    groups[i].mask = masks[static_cast<std::size_t>(least - requests.begin())];
  }
  return groups;
}
// As numad does.
Groups one_socket_each(const Host& host) { return in_parts(host, &CpuPlace::socket); }
// As newer kernels do by themselves (cache-aware scheduling); "idle core first" of bench-placement, because
// the simulated kernel searches for an idle core anyway.
Groups one_cache_each(const Host& host) { return in_parts(host, &CpuPlace::domain); }

// The last vCPUs of the host, so many: whole cores, as siblings have adjacent numbers.
CpuMask last_cpus(const Host& host, int count) {
  CpuMask mask;
  for (int cpu = std::max(0, host.cpus() - std::max(1, count)); cpu < host.cpus(); ++cpu)
    mask.set(static_cast<std::size_t>(cpu));
  return mask;
}

// So many vCPUs from all sockets alike, siblings together.
CpuMask scattered_cpus(const Host& host, int count) {
  std::vector<std::pair<int, int>> order;  // the rank of its core in the socket
  std::vector<int> cores(1 + static_cast<std::size_t>(host.places.back().socket));
  for (int cpu = host.cpus() - 1; cpu >= 0; --cpu) {
    const CpuPlace& place = host.places[cpu];
    if (cpu + 1 == host.cpus() || host.places[cpu + 1].core != place.core) ++cores[place.socket];
    order.emplace_back(cores[place.socket], -cpu);
  }
  std::sort(order.begin(), order.end());
  CpuMask mask;
  for (int i = 0; i < std::min(count, host.cpus()); ++i) mask.set(static_cast<std::size_t>(-order[i].second));
  return mask;
}

void give_batch(const Host& host, Kernel& kernel, const CpuMask& mask) {
  for (int number = 0; number < host.groups(); ++number) {
    if (!host.is_batch(number) || kernel.group(number).mask == mask) continue;
    Group group = kernel.group(number);
    group.mask = mask;
    kernel.set_group(number, group);
  }
}

int cpus_of_batch(const Host& host, const Kernel& kernel) {
  return static_cast<int>(kernel.group(static_cast<int>(host.services.size())).mask.count());
}

double services_cores(const Host& host, const std::vector<Reading>& readings) {
  double sum = 0;
  for (std::size_t i = 0; i < host.services.size(); ++i) sum += readings[i].cores;
  return sum;
}

// Whole cores, as many as 1.5 times the services' use leaves.
void leave_half_more(const Host& host, Kernel& kernel, const std::vector<Reading>& readings) {
  const double left = host.cpus() - 1.5 * services_cores(host, readings);
  give_batch(host, kernel, last_cpus(host, 2 * static_cast<int>(std::floor(left / 2))));
}

// Koordinator, "CPU Suppress" and pkg/koordlet/qosmanager/plugins/cpusuppress: the best-effort work gets 65 %
// of the host less the use of services, from all NUMA nodes, cores whole; no less than two vCPUs, and at most
// a tenth of the host more each second.
void suppress(const Host& host, Kernel& kernel, const std::vector<Reading>& readings) {
  const double left = 0.65 * host.cpus() - services_cores(host, readings);
  const int most = cpus_of_batch(host, kernel) + static_cast<int>(std::ceil(0.1 * host.cpus()));
  give_batch(host, kernel,
             scattered_cpus(host, std::min(most, std::max(2, static_cast<int>(std::ceil(left))))));
}

// PerfIso (Iorgulescu et al., ATC 2018): the batch has so many vCPUs that some always idle; 8 of 48 there.
constexpr Time kPoll = 10 * kMillisecond;
void keep_some_idle(const Host& host, Kernel& kernel, const std::vector<Reading>&) {
  const int buffer = std::max(1, host.cpus() / 6);
  int idle = 0;
  for (int cpu = 0; cpu < host.cpus(); ++cpu) idle += kernel.running(cpu) < 0 ? 1 : 0;
  const int now = cpus_of_batch(host, kernel);
  give_batch(host, kernel, last_cpus(host, std::clamp(now + idle - buffer, 1, host.cpus())));
}

template <void (*change)(const Host&, Kernel&, const std::vector<Reading>&)>
Way::Change make(const Host& host) {
  return [&host](Kernel& kernel, const std::vector<Reading>& readings) { change(host, kernel, readings); };
}

Way berth_way(std::string name, const InterferenceSettings& settings, bool learned = false,
              bool batch_anywhere = false) {
  return {.name = std::move(name),
          .begin = same_priority,
          .period = kSecond,
          .make = [settings, learned, batch_anywhere](const Host& host) -> Way::Change {
            const auto berth = std::make_shared<Berth>(
                host, settings, learned ? host.learned : std::map<std::string, model::ServiceProfile>());
            if (batch_anywhere) berth->pin_batch({host.batch.size(), everywhere(host)});
            return [berth](Kernel& kernel, const std::vector<Reading>& readings) {
              berth->decide(kernel, readings);
            };
          },
          .learned = learned};
}

}  // namespace

CpuMask everywhere(const Host& host) {
  CpuMask mask;
  for (int cpu = 0; cpu < host.cpus(); ++cpu) mask.set(static_cast<std::size_t>(cpu));
  return mask;
}

Groups same_priority(const Host& host) {
  Group group;
  group.mask = everywhere(host);
  return Groups(static_cast<std::size_t>(host.groups()), group);
}

std::vector<Way> all_ways() {
  std::vector<Way> ways{
      berth_way("berth", {}),
      berth_way("berth, waits of 5 ms", {.max_runq_latency_s = 5e-3}),
      berth_way("berth, least weight", {.best_effort_priority = BestEffortPriority::weight}),
      berth_way("berth, leaves the priority", {.best_effort_priority = BestEffortPriority::leave}),
      berth_way("berth, learned", {}, true),
      berth_way("berth, own vCPUs", {.isolation = model::Isolation::vcpus}),
      berth_way("berth, own vCPUs, optimal",
                {.search = Search::optimal, .isolation = model::Isolation::vcpus}),
      berth_way("berth, own vCPUs, optimal, learned",
                {.search = Search::optimal, .isolation = model::Isolation::vcpus}, true),
      berth_way("berth, own vCPUs, be_avoid_siblings",
                {.isolation = model::Isolation::vcpus, .be_avoid_siblings = true}),
      berth_way("berth, own vCPUs, batch idle anywhere", {.isolation = model::Isolation::vcpus}, false, true),
      berth_way("berth, whole cores", {.isolation = model::Isolation::cores}),
  };
  const std::array<std::pair<const char*, Groups (*)(const Host&)>, 6> places{
      {{"anywhere", same_priority},
       {"one cache each", one_cache_each},
       {"one socket each", one_socket_each},
       {"packed", packed},
       {"spread", spread},
       {"random", random}}};
  for (const auto& [name, begin] : places) {
    for (const auto& [suffix, priority] : {std::pair("", Priority::same),
                                           {", batch of the least weight", Priority::least_weight},
                                           {", batch idle", Priority::idle}}) {
      ways.push_back({.name = std::string(name) + suffix,
                      .begin = [begin = begin, priority = priority](const Host& host) {
                        return with_batch(host, begin(host), priority);
                      }});
    }
  }
  ways.push_back({.name = "spread, batch idle anywhere", .begin = spread_idle_anywhere});
  ways.push_back({.name = "batch idle, cores that 1.5 x use leaves",
                  .begin = idle_anywhere,
                  .period = kSecond,
                  .make = make<leave_half_more>});
  ways.push_back({.name = "PerfIso", .begin = same_priority, .period = kPoll, .make = make<keep_some_idle>});
  ways.push_back({.name = "Koordinator", .begin = idle_anywhere, .period = kSecond, .make = make<suppress>});
  return ways;
}

}  // namespace berth::judge
