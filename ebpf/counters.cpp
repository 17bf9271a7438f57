// SPDX-License-Identifier: Apache-2.0
#include "ebpf/counters.h"

#include <cerrno>

#include <bpf/bpf.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>

namespace berth::ebpf {

using model::Result;

CounterEvents hardware_events() {
  // perf_event_open(2): the "generic" last-level cache events are what PERF_COUNT_HW_CACHE_* name.
  return {{{PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
           {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
           {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
           {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES}}};
}

double multiplexing_scale(std::uint64_t enabled_ns, std::uint64_t running_ns) {
  if (running_ns == 0 || enabled_ns <= running_ns) return 1;
  return static_cast<double>(enabled_ns) / static_cast<double>(running_ns);
}

Result<std::unique_ptr<Counters>> Counters::open(const CounterEvents& events) {
  const int cpus = libbpf_num_possible_cpus();
  if (cpus <= 0) return model::fail(model::Error::from_errno(-cpus, "counting the possible CPUs"));
  auto made = std::make_unique<Counters>();
  made->cpus_.resize(static_cast<std::size_t>(cpus));
  bool any = false;
  for (int cpu = 0; cpu < cpus; ++cpu) {
    Group& group = made->cpus_[static_cast<std::size_t>(cpu)];
    for (std::size_t which = 0; which < events.size(); ++which) {
      perf_event_attr attributes{};
      attributes.size = sizeof(attributes);
      attributes.type = events[which].type;
      attributes.config = events[which].config;
      attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
      const int leader = which == 0 ? -1 : group.events[0].get();
      group.events[which] = Fd(
          static_cast<int>(syscall(SYS_perf_event_open, &attributes, -1, cpu, leader, PERF_FLAG_FD_CLOEXEC)));
      if (group.events[which]) continue;
      if (which == 0 && errno == ENODEV) break;  // offline
      const int error = errno;
      const std::string what = "performance event " + std::to_string(events[which].type) + ':' +
                               std::to_string(events[which].config) + " on CPU " + std::to_string(cpu);
      if (error == ENOENT || error == EOPNOTSUPP || error == ENODEV || error == EINVAL) {
        return model::fail(model::ErrorKind::unavailable, what + ": this host has no such counter");
      }
      return model::fail(model::Error::from_errno(error, what));
    }
    any |= static_cast<bool>(group.events[0]);
  }
  if (!any) return model::fail(model::ErrorKind::unavailable, "no CPU is online");
  return made;
}

Result<void> Counters::give_to(const std::array<int, 4>& maps) const {
  for (std::uint32_t cpu = 0; cpu < cpus_.size(); ++cpu) {
    for (std::size_t which = 0; which < maps.size(); ++which) {
      const int fd = cpus_[cpu].events[which].get();
      if (fd < 0) continue;
      if (bpf_map_update_elem(maps[which], &cpu, &fd, BPF_ANY) != 0) {
        return model::fail(model::Error::from_errno(
            errno, "giving a performance event of CPU " + std::to_string(cpu) + " to the BPF programs"));
      }
    }
  }
  return {};
}

std::vector<double> Counters::scales() {
  std::vector<double> scales;
  scales.reserve(cpus_.size());
  for (Group& group : cpus_) {
    struct {
      std::uint64_t value, enabled_ns, running_ns;
    } now{};
    double scale = 1;
    if (group.events[0] && ::read(group.events[0].get(), &now, sizeof(now)) == sizeof(now)) {
      scale = multiplexing_scale(now.enabled_ns - group.enabled_ns, now.running_ns - group.running_ns);
      group.enabled_ns = now.enabled_ns;
      group.running_ns = now.running_ns;
    }
    scales.push_back(scale);
  }
  return scales;
}

}  // namespace berth::ebpf
