// SPDX-License-Identifier: Apache-2.0
// The ways of sharing a host: those of the field, as their documents have them, and simple ones.
#include "tests/judge/rows.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace berth::judge {

namespace {

// cpu.weight of 100 is 1024 of the kernel's.
constexpr double kLeastWeight = 10.24;

CpuMask everywhere(const Host& host) {
  CpuMask mask;
  for (int cpu = 0; cpu < host.cpus(); ++cpu) mask.set(static_cast<std::size_t>(cpu));
  return mask;
}

std::vector<Group> with_batch(const Host& host, void (*change)(Group&)) {
  auto groups = same_priority(host);
  for (int group = 0; group < host.groups(); ++group) {
    if (host.is_batch(group)) change(groups[group]);
  }
  return groups;
}

std::vector<Group> least_weight(const Host& host) {
  return with_batch(host, [](Group& group) { group.weight = kLeastWeight; });
}

std::vector<Group> idle_anywhere(const Host& host) {
  return with_batch(host, [](Group& group) { group.idle = true; });
}

// vCPUs of their own for the services, one after the other; `whole`: nothing else on their cores. The batch
// has the rest.
std::vector<Group> own(const Host& host, bool whole) {
  auto groups = same_priority(host);
  CpuMask left = everywhere(host);
  for (std::size_t i = 0; i < host.services.size(); ++i) {
    CpuMask mask;
    CpuMask taken;
    int wanted = host.services[i].vcpus;
    for (int cpu = 0; cpu < host.cpus() && wanted > 0; ++cpu) {
      if (!left.test(static_cast<std::size_t>(cpu))) continue;
      mask.set(static_cast<std::size_t>(cpu));
      taken.set(static_cast<std::size_t>(cpu));
      --wanted;
      for (int other = 0; whole && other < host.cpus(); ++other) {
        if (host.places[other].core == host.places[cpu].core) taken.set(static_cast<std::size_t>(other));
      }
    }
    // Without enough of its own it runs anywhere, as kubelet's shared pool.
    if (wanted > 0) continue;
    groups[i].mask = mask;
    left &= ~taken;
  }
  if (left.none()) left = everywhere(host);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (host.is_batch(static_cast<int>(i)) || groups[i].mask == everywhere(host)) groups[i].mask = left;
  }
  return groups;
}

std::vector<Group> own_vcpus(const Host& host) { return own(host, false); }
std::vector<Group> own_cores(const Host& host) { return own(host, true); }

std::vector<Group> own_vcpus_idle_anywhere(const Host& host) {
  auto groups = own(host, false);
  for (int group = 0; group < host.groups(); ++group) {
    if (!host.is_batch(group)) continue;
    groups[group].idle = true;
    groups[group].mask = everywhere(host);
  }
  return groups;
}

// The last vCPUs of the host, so many: whole cores, as siblings have adjacent numbers.
CpuMask last_cpus(const Host& host, int count) {
  CpuMask mask;
  for (int cpu = std::max(0, host.cpus() - std::max(1, count)); cpu < host.cpus(); ++cpu)
    mask.set(static_cast<std::size_t>(cpu));
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

double services_cores(const Host& host, const std::vector<double>& used_s, Time period) {
  const double sum = std::accumulate(used_s.begin(),
                                     used_s.begin() + static_cast<std::ptrdiff_t>(host.services.size()), 0.0);
  return sum / (static_cast<double>(period) * 1e-9);
}

// Whole cores, as many as 1.5 times the services' use leaves.
void leave_half_more(const Host& host, Kernel& kernel, const std::vector<double>& used_s) {
  const double left = host.cpus() - 1.5 * services_cores(host, used_s, kSecond);
  give_batch(host, kernel, last_cpus(host, 2 * static_cast<int>(std::floor(left / 2))));
}

// Koordinator, docs "CPU Suppress": the best-effort work gets 65 % of the host less the use of services.
void suppress(const Host& host, Kernel& kernel, const std::vector<double>& used_s) {
  const double left = 0.65 * host.cpus() - services_cores(host, used_s, kSecond);
  give_batch(host, kernel, last_cpus(host, static_cast<int>(std::floor(left))));
}

// PerfIso (Iorgulescu et al., ATC 2018): the batch has so many vCPUs that some always idle; 8 of 48 there.
constexpr Time kPoll = 10 * kMillisecond;
void keep_some_idle(const Host& host, Kernel& kernel, const std::vector<double>&) {
  const int buffer = std::max(1, host.cpus() / 6);
  int idle = 0;
  for (int cpu = 0; cpu < host.cpus(); ++cpu) idle += kernel.running(cpu) < 0 ? 1 : 0;
  const int group = static_cast<int>(host.services.size());
  const int now = static_cast<int>(kernel.group(group).mask.count());
  give_batch(host, kernel, last_cpus(host, std::clamp(now + idle - buffer, 1, host.cpus())));
}

template <void (*change)(const Host&, Kernel&, const std::vector<double>&)>
Way::Change make(const Host& host) {
  return [&host](Kernel& kernel, const std::vector<double>& used_s) { change(host, kernel, used_s); };
}

}  // namespace

std::vector<Group> same_priority(const Host& host) {
  Group group;
  group.mask = everywhere(host);
  return std::vector<Group>(static_cast<std::size_t>(host.groups()), group);
}

std::vector<Way> all_ways() {
  return {
      {.name = "berth, search window", .begin = same_priority, .period = kSecond, .make = berth_by_window},
      {.name = "berth, search optimal", .begin = same_priority, .period = kSecond, .make = berth_by_optimum},
      {.name = "same priority, anywhere", .begin = same_priority},
      {.name = "batch of the least weight", .begin = least_weight},
      {.name = "batch idle, anywhere", .begin = idle_anywhere},
      {.name = "own vCPUs", .begin = own_vcpus},
      {.name = "own cores (full-pcpus-only)", .begin = own_cores},
      {.name = "own vCPUs, batch idle anywhere", .begin = own_vcpus_idle_anywhere},
      {.name = "batch idle, cores that 1.5 x use leaves",
       .begin = idle_anywhere,
       .period = kSecond,
       .make = make<leave_half_more>},
      {.name = "PerfIso", .begin = same_priority, .period = kPoll, .make = make<keep_some_idle>},
      {.name = "Koordinator", .begin = idle_anywhere, .period = kSecond, .make = make<suppress>},
  };
}

}  // namespace berth::judge
