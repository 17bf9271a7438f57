// SPDX-License-Identifier: Apache-2.0
// Hosts and workloads for tests of policies, each in one line.
#pragma once

#include "model/snapshot.h"
#include "policies/decide.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace berth::policies::testing {

// A regular host; vCPU numbers as Linux gives them on x86: first threads of all cores, then second ones.
struct HostShape {
  int sockets = 1;
  int llcs_per_socket = 1;
  int cores_per_llc = 4;
  int threads_per_core = 2;
};
// Domains of two cores with two threads each: 0 has vCPUs 0-1,4-5, 1 has 2-3,6-7.
HostShape two_domains();
std::vector<model::Cpu> cpus_of(const HostShape& shape);
model::Topology host(const HostShape& shape);
// Two performance cores with two threads each (0-3) and four efficient ones (4-7) below one cache.
model::Topology hybrid_host();

model::CpuSet cpus(const std::string& cpulist);
model::Snapshot snapshot_of(model::Topology topology);
// The usable vCPUs that a plan gives out: without reserved ones that best-effort work is kept off as well.
model::CpuSet given_out(const model::Topology& topology, const InterferenceSettings& settings);

// Running since `created`, and asks for vCPUs of its own; its service is named like itself.
model::Workload latency_sensitive(const std::string& id, int vcpus, double created = 0);
model::Workload best_effort(const std::string& id, double cores_used = 0);
model::Workload pinned(model::Workload workload, const std::string& cpulist);

// Calls `change` with the workload's samples.
template <typename Change>
void change_samples(model::Workload& workload, Change change) {
  std::vector<model::UsageSample> samples(workload.usage.begin(), workload.usage.end());
  change(samples);
  workload.usage = std::move(samples);
}

// Carries out the plan's pins and idle priorities, and keeps the states of its lenders, as the daemon would.
void apply(const model::Plan& plan, model::Snapshot& snapshot);
// The same, and each of these workloads has its pin since now.
void apply_and_date(const model::Plan& plan, model::Snapshot& snapshot);

// The pins of a plan, "workload=cpulist" in the plan's order; "workload=" for an unpin.
std::vector<std::string> pins(const model::Plan& plan);
std::vector<std::string> pins(const std::vector<model::Action>& actions);

}  // namespace berth::policies::testing
