// SPDX-License-Identifier: Apache-2.0
// Best-effort work on idle vCPUs of latency-sensitive instances (docs/decisions/borrowing.md).
#pragma once

#include "model/borrowing.h"
#include "model/plan.h"
#include "model/snapshot.h"
#include "policies/interference/policy.h"
#include "policies/interference/settings.h"
#include "policies/vcpus/node.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace berth::policies {

// More is lent while best-effort work keeps this share of its own vCPUs busy, over kBusySamples.
inline constexpr double kBusyPool = 0.8;
inline constexpr std::size_t kBusySamples = 3;
// All goes back where it used less than this over kLenderSamples.
inline constexpr double kIdlePool = 0.5;

// A running instance that owns vCPUs after the plan.
struct Owner {
  model::CpuSet cpus;
  double sensitivity = 0;  // k1 + k2 of its model
};

struct BorrowingInput {
  const std::vector<const model::Workload*>& workloads;  // ascending by id
  const Node& node;
  std::map<std::string, Owner> owners;  // by workload id
  model::CpuSet pool;                   // vCPUs that best-effort work shares
  // By id: best-effort workloads that the plan confines.
  std::vector<std::string> confined;
  const GrownRequests& grown;  // stragglers
  double now = 0;              // epoch seconds
};

struct Borrowing {
  std::optional<model::BorrowingFindings> findings;  // nullopt where interference.borrow is off
  std::map<std::string, model::CpuSet> borrowed;     // by best-effort workload: vCPUs beside its own
  std::vector<model::Action> actions;                // of idle priority
};

// Decides which vCPUs are lent after this tick, and which work gets them. Each is lent by its owner alone,
// and goes to work that runs at idle priority beside that owner already. Priorities go back after vCPUs. With
// interference.borrow off, only priorities go back. Pure.
Borrowing decide_borrowing(const BorrowingInput& input, const InterferenceSettings& settings);

// Whether idle priority of cgroup `workload` yields to the tasks of cgroup `other`. The kernel compares two
// tasks by those ancestors of theirs that are siblings (find_matching_se() in kernel/sched/fair.c), so it
// must be the workload's own cgroup that is compared.
bool yields_to(const std::string& workload, const std::string& other);

}  // namespace berth::policies
