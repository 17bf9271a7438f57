// SPDX-License-Identifier: Apache-2.0
// The ten configurations of two vCPUs in which the simulation is compared with a kernel: a service with
// exponential requests beside four threads without end. judge-simulation has them simulated, judge-load runs
// the same for real.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include <fmt/core.h>

namespace berth::judge {

enum class Sharing { alone, same_priority, idle_class, own_vcpu };
constexpr std::string_view to_string(Sharing way) {
  constexpr std::array<std::string_view, 4> kNames{"alone", "same", "idle", "own"};
  return kNames[static_cast<std::size_t>(way)];
}

struct Configuration {
  double cores;  // the service's use
  double work_ms;
  int threads;  // of the service
  Sharing way;
};

// Of one run.
struct Outcome {
  double p99_ms = 0;        // of the answer times
  double batch_cores = 0;   // used
  double others_cores = 0;  // used by other programs
};
// A line of JSON, which tests/judge/real reads.
inline std::string line_of(const Configuration& it, const Outcome& alone, const Outcome& found) {
  return fmt::format(
      R"({{"use": {}, "work_ms": {}, "threads": {}, "way": "{}", "p99_ms": {:.4f}, "alone_ms": {:.4f}, "batch_cores": {:.3f}}})"
      "\n",
      it.cores, it.work_ms, it.threads, to_string(it.way), found.p99_ms, alone.p99_ms, found.batch_cores);
}

inline constexpr int kBatchThreads = 4;
inline constexpr std::array<Configuration, 10> kTwoVcpus{{
    {0.4, 1, 4, Sharing::same_priority},
    {0.4, 1, 4, Sharing::idle_class},
    {0.4, 1, 4, Sharing::own_vcpu},
    {0.7, 1, 4, Sharing::same_priority},
    {0.7, 1, 4, Sharing::idle_class},
    {0.7, 1, 4, Sharing::own_vcpu},
    {0.2, 0.2, 1, Sharing::same_priority},
    {0.2, 0.2, 1, Sharing::idle_class},
    {0.2, 1, 1, Sharing::own_vcpu},
    {0.4, 0.2, 4, Sharing::idle_class},
}};

}  // namespace berth::judge
