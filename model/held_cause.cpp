// SPDX-License-Identifier: Apache-2.0
#include "model/held_cause.h"

#include <algorithm>

namespace berth::model {

HeldCause held_cause(const Plan& plan, const Workload* subject, const std::string& workload,
                     Resource resource, std::optional<HeldCause> before) {
  const auto& quota = plan.findings.quota;
  const auto names = [&](const WorkloadFinding& finding) { return finding.workload == workload; };
  if (quota && resource == Resource::cpu && std::ranges::any_of(quota->lifted, names))
    return HeldCause::lifted;
  if (subject != nullptr && subject->workload_class == WorkloadClass::latency_sensitive)
    return HeldCause::extended;
  auto cause = before.value_or(HeldCause::lent);
  if (plan.findings.eviction && resource == Resource::memory) {
    // A squeezed cache is no loan: its owner has no claim to it while memory is short.
    for (const auto& taken : plan.findings.eviction->reclaim) {
      if (taken.workload == workload) return HeldCause::preempted;
    }
  }
  // A replacement of an evicted executor has no claim to a quota that it never had.
  if (plan.findings.eviction && resource == Resource::cpu && plan.findings.eviction->held.contains(workload))
    return HeldCause::preempted;
  if (!plan.findings.straggler) return cause;
  using Kind = LimitMove::Kind;
  for (const auto& move : plan.findings.straggler->moves) {
    if (move.workload != workload) continue;
    if (resource == Resource::cpu ? move.amount.cpu_cores <= 0 : move.amount.memory_bytes == 0) continue;
    // Otherwise a preempted workload that lends a little more would get a claim to all of it at once.
    if (move.kind == Kind::reclaim && cause != HeldCause::preempted) cause = HeldCause::lent;
    if (move.kind == Kind::preempt) cause = HeldCause::preempted;
  }
  return cause;
}

}  // namespace berth::model
