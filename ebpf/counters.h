// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ebpf/collector.h"
#include "ebpf/load.h"
#include "model/error.h"
#include "os/file_descriptor.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace berth::ebpf {

// Four performance events on every CPU, counting all that runs there. They are one group where the PMU has
// enough counters, so that they are counted over the same time. Otherwise each is counted by itself.
class Counters {
 public:
  // Error unavailable where there is no such event (a host without a PMU) or it never gets a counter. Error
  // permission without CAP_PERFMON.
  static model::Result<std::unique_ptr<Counters>> open(const CounterEvents& events);

  // Puts them into four BPF maps of type perf event array, one an event, indexed by CPU.
  model::Result<void> give_to(const std::array<int, 4>& maps) const;
  // Time enabled over time running of each CPU's events since the last call, by CPU. It is 1 where the kernel
  // never had to share the PMU out, or where that is not known.
  std::vector<std::array<double, 4>> scales();
  bool grouped() const { return grouped_; }

 private:
  struct Times {
    std::uint64_t enabled_ns = 0;
    std::uint64_t running_ns = 0;
  };
  struct Cpu {
    std::array<os::FileDescriptor, 4> events;  // none where the CPU is offline
    std::array<Times, 4> times{};
  };
  static model::Result<std::unique_ptr<Counters>> try_open(const CounterEvents& events, bool grouped);
  // nullopt where it cannot be read.
  static std::optional<Times> times_of(const os::FileDescriptor& event);

  std::vector<Cpu> cpus_;
  bool grouped_ = true;
};

// Factor for the growth of a count; 1 where nothing ran.
double multiplexing_scale(std::uint64_t enabled_ns, std::uint64_t running_ns);

}  // namespace berth::ebpf
