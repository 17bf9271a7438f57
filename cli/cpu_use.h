// SPDX-License-Identifier: Apache-2.0
// How busy each vCPU of this host is, between two readings of /proc/stat (proc_stat(5)).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace berth::cli {

struct CpuTimes {
  std::uint64_t busy = 0;  // clock ticks since boot; all but idle and waiting for I/O
  std::uint64_t total = 0;
};

// By vCPU; lines that cannot be parsed are left out.
std::map<int, CpuTimes> parse_cpu_times(std::string_view stat);
// The times of this host; empty where they cannot be read.
std::map<int, CpuTimes> read_cpu_times();

// Busy share 0..1 of the time between the readings. Only vCPUs that were online in both, and for which time
// passed.
std::map<int, double> cpu_use(const std::map<int, CpuTimes>& before, const std::map<int, CpuTimes>& after);

}  // namespace berth::cli
