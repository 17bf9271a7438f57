// SPDX-License-Identifier: Apache-2.0
#include "ebpf/counters.h"

#include "os/file_descriptor.h"

#include <cerrno>

#include <bpf/bpf.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>

namespace berth::ebpf {

using model::Result;

CounterEvents hardware_events() {
  // perf_event_open(2): PERF_COUNT_HW_CACHE_* name the "generic" last-level cache events.
  return {{{PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
           {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
           {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
           {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES}}};
}

double multiplexing_scale(std::uint64_t enabled_ns, std::uint64_t running_ns) {
  if (running_ns == 0 || enabled_ns <= running_ns) return 1;
  return static_cast<double>(enabled_ns) / static_cast<double>(running_ns);
}

std::optional<Counters::Times> Counters::times_of(const os::FileDescriptor& event) {
  struct {
    std::uint64_t value, enabled_ns, running_ns;
  } now{};
  if (!event || ::read(event.get(), &now, sizeof(now)) != sizeof(now)) return std::nullopt;
  return Times{now.enabled_ns, now.running_ns};
}

Result<std::unique_ptr<Counters>> Counters::try_open(const CounterEvents& events, bool grouped) {
  const int cpus = libbpf_num_possible_cpus();
  if (cpus <= 0) return model::fail(model::Error::from_errno(-cpus, "counting the possible CPUs"));
  auto made = std::make_unique<Counters>();
  made->grouped_ = grouped;
  made->cpus_.resize(static_cast<std::size_t>(cpus));
  bool any = false;
  for (int cpu = 0; cpu < cpus; ++cpu) {
    auto& opened = made->cpus_[static_cast<std::size_t>(cpu)].events;
    for (std::size_t which = 0; which < events.size(); ++which) {
      const std::string what = "performance event " + std::to_string(events[which].type) + ':' +
                               std::to_string(events[which].config) + " on CPU " + std::to_string(cpu);
      perf_event_attr attributes{};
      attributes.size = sizeof(attributes);
      attributes.type = events[which].type;
      attributes.config = events[which].config;
      attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
      const int leader = which == 0 || !grouped ? -1 : opened[0].get();
      opened[which] = os::FileDescriptor(
          static_cast<int>(syscall(SYS_perf_event_open, &attributes, -1, cpu, leader, PERF_FLAG_FD_CLOEXEC)));
      if (opened[which]) continue;
      const int error = errno;
      if (which == 0 && error == ENODEV) break;  // offline
      if (error == ENOENT || error == EOPNOTSUPP || error == ENODEV || error == EINVAL) {
        return model::fail(model::ErrorKind::unavailable, what + ": this host has no such counter");
      }
      // Debian's kernels ask for CAP_SYS_ADMIN where the setting is above 2; CAP_PERFMON is not enough.
      const char* hint =
          error == EACCES ? " (kernel.perf_event_paranoid = 2 would let CAP_PERFMON do it)" : "";
      return model::fail(model::Error::from_errno(error, what + hint));
    }
    if (!opened[0]) continue;
    any = true;
    // An event of a CPU starts at once or waits for its turn. One that cannot have a turn would never count.
    for (std::size_t which = 0; which < events.size(); ++which) {
      const auto times = times_of(opened[which]);
      if (times && times->enabled_ns > 0 && times->running_ns == 0) {
        return model::fail(model::ErrorKind::unavailable,
                           "performance event " + std::to_string(events[which].type) + ':' +
                               std::to_string(events[which].config) + " on CPU " + std::to_string(cpu) +
                               " gets no counter: others hold the PMU");
      }
    }
  }
  if (!any) return model::fail(model::ErrorKind::unavailable, "no CPU is online");
  return made;
}

Result<std::unique_ptr<Counters>> Counters::open(const CounterEvents& events) {
  auto grouped = try_open(events, true);
  return grouped ? std::move(grouped) : try_open(events, false);
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

std::vector<std::array<double, 4>> Counters::scales() {
  std::vector<std::array<double, 4>> scales(cpus_.size());
  for (std::size_t cpu = 0; cpu < cpus_.size(); ++cpu) {
    scales[cpu].fill(1);
    // The events of a group share its times.
    const std::size_t asked = grouped_ ? 1 : scales[cpu].size();
    for (std::size_t which = 0; which < asked; ++which) {
      const auto now = times_of(cpus_[cpu].events[which]);
      if (!now) continue;
      Times& before = cpus_[cpu].times[which];
      scales[cpu][which] =
          multiplexing_scale(now->enabled_ns - before.enabled_ns, now->running_ns - before.running_ns);
      before = *now;
    }
    if (grouped_) scales[cpu].fill(scales[cpu][0]);
  }
  return scales;
}

}  // namespace berth::ebpf
