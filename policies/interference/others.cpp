// SPDX-License-Identifier: Apache-2.0
#include "policies/interference/others.h"

#include "model/path.h"
#include "policies/vcpus/pool.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <fmt/core.h>

namespace berth::policies {

namespace {

using model::CpuSet;
using model::OtherGroup;

// The vCPUs of partitions are no other cgroup's, and a cpuset with isolated ones would bring work onto them.
// Those of containers may have other work on them, and stay as they are.
CpuSet open_to_others(const model::Snapshot& snapshot) {
  return snapshot.topology.usable() | open_to_all(snapshot.owned_cpus);
}

bool has_workload(const model::Snapshot& snapshot, const OtherGroup& group) {
  const auto below = std::lower_bound(snapshot.workloads.begin(), snapshot.workloads.end(), group.id + '/',
                                      [](const auto& it, const std::string& id) { return it.id < id; });
  return below != snapshot.workloads.end() && model::is_within(below->id, group.id);
}

model::Action give_back(const OtherGroup& group, std::string why) {
  return {.what = model::GiveBack{.workload = group.id, .attribute = model::Attribute::cpus},
          .policy = "interference",
          .decision = {},
          .reason = std::move(why)};
}

}  // namespace

void confine_others(const model::Snapshot& snapshot, Others others, const CpuSet& owned, const Hold& hold,
                    InterferenceProposal& proposal) {
  model::OtherWork& findings = proposal.findings.others;
  const bool confine = others == Others::confine && !owned.empty();
  if (confine) findings.cpus = open_to_others(snapshot) - owned;
  const auto leave = [&](const OtherGroup& group, const std::string& why) {
    findings.unconfined.push_back({.workload = group.id, .reason = why});
    if (group.held) proposal.actions.push_back(give_back(group, why));
  };
  for (const OtherGroup& group : snapshot.others) {
    if (!confine) {
      const bool young = others == Others::confine && hold.holds(group.changed_at);
      if (group.held && !young)
        proposal.actions.push_back(
            give_back(group, owned.empty() ? "no instance owns vCPUs" : "interference.others is \"leave\""));
      continue;
    }
    const bool disturbs = !group.allowed_cpus || group.allowed_cpus->intersects(owned);
    if (!disturbs) {
      if (group.held) proposal.actions.push_back(give_back(group, "its own vCPUs are none that are owned"));
      continue;
    }
    if (group.left_alone) {
      leave(group, *group.left_alone);
      continue;
    }
    CpuSet cpus = findings.cpus;
    if (group.allowed_cpus) cpus &= *group.allowed_cpus;
    if (cpus.empty()) {
      leave(group, fmt::format("it may use vCPUs {} alone, and instances own these",
                               (group.allowed_cpus ? *group.allowed_cpus : owned).to_string()));
      continue;
    }
    // A place that moves to and fro costs a write of each group. Best-effort work in it needs its own at
    // once.
    if (group.held && hold.holds(group.changed_at) && cpus.intersects(*group.held) &&
        !has_workload(snapshot, group))
      cpus &= *group.held;
    findings.confined.push_back(group.id);
    if (group.held == cpus) continue;
    proposal.actions.push_back(
        {.what = model::Set{.workload = group.id, .value = cpus},
         .policy = "interference",
         .decision = {},
         .reason = fmt::format("no rule names it, and instances own vCPUs {}", owned.to_string())});
  }
}

}  // namespace berth::policies
