// SPDX-License-Identifier: Apache-2.0
// Hosts and workloads for tests of overselling.
#pragma once

#include "model/snapshot.h"
#include "policies/oversell/policy.h"
#include "tests/unit/policies/placement/gpu_hosts.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace berth::policies::testing {

// Running for long, with a sample a second up to now; GiB in use.
inline model::Workload task(const std::string& id, std::vector<double> cores, double gib = 1) {
  model::Workload made = best_effort(id);
  made.created = 1;
  made.usage.clear();
  double time = 1000 - static_cast<double>(cores.size());
  for (const double use : cores) {
    model::UsageSample sample;
    sample.time = ++time;
    sample.cpu_cores = use;
    sample.memory_bytes = static_cast<std::uint64_t>(gib * static_cast<double>(kGiB));
    made.usage.push_back(sample);
  }
  return made;
}

inline model::Workload asking(model::Workload workload, double cores, double gib = 0) {
  workload.cpu_quota_cores = cores;
  workload.memory_request_bytes = static_cast<std::uint64_t>(gib * static_cast<double>(kGiB));
  return workload;
}

// 16 vCPUs, 64 GiB.
inline model::Snapshot node(std::vector<model::Workload> workloads, double memory_used = 0.1) {
  model::Snapshot snapshot = gpu_host("a", {});
  snapshot.workloads = std::move(workloads);
  snapshot.memory.available_bytes =
      static_cast<std::uint64_t>((1 - memory_used) * static_cast<double>(snapshot.memory.total_bytes));
  return snapshot;
}

inline model::OversellFindings findings(const model::Snapshot& snapshot,
                                        const PolicySettings& settings = {}) {
  return propose_advertising(snapshot, settings).findings;
}

}  // namespace berth::policies::testing
