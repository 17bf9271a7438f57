// SPDX-License-Identifier: Apache-2.0
// Tasks, and their state from tick to tick, for tests of the straggler policy.
#pragma once

#include "model/snapshot.h"
#include "policies/straggler/policy.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace berth::policies::testing {

inline constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

// (time, fraction)
using Points = std::vector<std::pair<double, double>>;

// A latency-sensitive task with a quota and a deadline.
model::Workload task(const std::string& id, double quota, double deadline, const Points& reports);
// Its speed halves, and it will be 100 s late. At time 1000 it is 60 % done, with 0.002 and 0.001 per second;
// the deadline is 1300. rho = (0.4 / 300) / 0.001 = 4/3.
model::Workload late_task(const std::string& id, double quota);
// The same task with the vCPUs of the cpulist as its own, and no quota.
model::Workload late_and_pinned(const std::string& id, const std::string& cpulist);
// Half of the time of late_task: it is 20 % ahead and speeds up.
model::Workload good_task(const std::string& id, double quota);

// A best-effort workload that used `cores` in each of its samples.
model::Workload batch(const std::string& id, std::optional<double> quota, double cores);
model::Workload with_memory(model::Workload workload, std::optional<std::uint64_t> high, std::uint64_t use);
// A latency-sensitive request.
model::PendingWorkload pending(const std::string& id, int vcpus);
// Lowered or raised to its present limits from `original_quota`, `age` seconds before 1000.
model::Workload held(model::Workload workload, model::HeldCause cause, std::optional<double> original_quota,
                     double age = 100);

// "workload=limit" of each action, in cores or bytes; "workload=none" where the limit is lifted.
std::vector<std::string> limits(const std::vector<model::Action>& actions);
// "kind workload amount" of each move.
std::vector<std::string> moves(const model::StragglerFindings& findings);

// Changes the snapshot as if the plan had been carried out: limits, pins, and the reasons for them.
void carry_out(const model::Plan& plan, model::Snapshot& snapshot);

}  // namespace berth::policies::testing
