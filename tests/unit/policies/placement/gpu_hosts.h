// SPDX-License-Identifier: Apache-2.0
// Hosts with GPUs, and requests, for tests of placement.
#pragma once

#include "model/snapshot.h"
#include "tests/unit/policies/hosts.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace berth::policies::testing {

inline constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

inline model::Gpu gpu(const std::string& id, int numa, std::uint64_t memory_gib = 80) {
  return {.id = id,
          .vendor = "nvidia",
          .model = "NVIDIA H100",
          .numa = numa,
          .memory_bytes = memory_gib * kGiB,
          .memory_used_bytes = 0,
          .utilisation = 0,
          .healthy = true,
          .holder = {}};
}

// Two NUMA nodes of eight vCPUs each, 64 GiB of memory.
inline model::Snapshot gpu_host(const std::string& name, std::vector<model::Gpu> gpus) {
  model::Snapshot snapshot =
      snapshot_of(model::Topology::make(cpus_of({.sockets = 2}), std::move(gpus)).value());
  snapshot.host = name;
  snapshot.memory.total_bytes = 64 * kGiB;
  snapshot.memory.available_bytes = 64 * kGiB;
  return snapshot;
}

inline model::PendingWorkload request(int vcpus, int gpus = 0, std::uint64_t memory_gib = 0) {
  model::PendingWorkload made;
  made.isolation = model::Isolation::vcpus;
  made.id = "new";
  made.service = "new";
  made.vcpus = vcpus;
  made.gpus = gpus;
  made.memory_request_bytes = memory_gib * kGiB;
  return made;
}

}  // namespace berth::policies::testing
