// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ebpf/collector.h"
#include "ebpf/load.h"
#include "model/error.h"

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace berth::ebpf {

// One group of four performance events on every CPU, counting all that runs there.
class Counters {
 public:
  // Error unavailable where there is no such event (a host without a PMU), permission without CAP_PERFMON.
  static model::Result<std::unique_ptr<Counters>> open(const CounterEvents& events);

  // Puts them into four BPF maps of type perf event array, one an event, indexed by CPU.
  model::Result<void> give_to(const std::array<int, 4>& maps) const;
  // Time enabled over time running of each CPU's group since the last call, by CPU; 1 where the kernel never
  // had to share the PMU out, or where it could not tell.
  std::vector<double> scales();

 private:
  struct Group {
    std::array<Fd, 4> events;  // none where the CPU is offline
    std::uint64_t enabled_ns = 0;
    std::uint64_t running_ns = 0;
  };
  std::vector<Group> cpus_;
};

// What a count grew by has to be multiplied with; 1 where nothing ran.
double multiplexing_scale(std::uint64_t enabled_ns, std::uint64_t running_ns);

}  // namespace berth::ebpf
