// SPDX-License-Identifier: Apache-2.0
// The values by which the bus and the reports show workloads, and news of them.
#pragma once

#include "model/plan.h"

#include <cstdint>
#include <optional>
#include <string>

namespace berth::daemon {

// One workload as the last tick left it; a value, safe to keep.
struct WorkloadView {
  std::string id;
  std::string service;
  std::string workload_class;  // "latency-sensitive" or "best-effort"
  std::string kind;            // "systemd-service", "podman", ...: cgroup::to_string(Kind)
  std::string matched_by;
  std::uint32_t vcpus = 0;  // 0: none asked for
  std::string pinned_cpus;  // cpulist; empty when berth has not pinned it
  bool managed = true;
  std::string left_alone_reason;    // empty when managed
  std::optional<double> cpu_cores;  // mean cores over the last tick; nullopt before the second reading
  std::optional<std::uint64_t> memory_bytes;
  std::optional<double> progress;  // 0..1, the newest that it reported
  std::optional<double> score;     // interference score; nullopt when not placed
  // CPU quota in cores and memory.high in bytes, now and before berth; nullopt: no limit.
  std::optional<double> cpu_quota;
  std::optional<std::uint64_t> memory_high;
  std::optional<double> original_cpu_quota;
  std::optional<std::uint64_t> original_memory_high;
  // "extended", "lent" or "preempted" where berth holds the limit, else empty.
  std::string cpu_held;
  std::string memory_held;

  friend bool operator==(const WorkloadView&, const WorkloadView&) = default;
};

struct WorkloadCounts {
  std::uint32_t latency_sensitive = 0;
  std::uint32_t best_effort = 0;
  std::uint32_t left_alone = 0;  // counted here only, whatever their class
};

// A straggler, or one that this host cannot help, as it is first found.
struct StragglerNews {
  std::string workload;
  std::string reason;
  model::Resources lacks;  // of a relocation
  std::string decision;    // of what is done about it; empty where nothing is

  friend bool operator==(const StragglerNews&, const StragglerNews&) = default;
};

}  // namespace berth::daemon
