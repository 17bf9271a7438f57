// SPDX-License-Identifier: Apache-2.0
// State common to the steps of one decision: they go through the workloads once for CPU and once for memory.
#pragma once

#include "policies/settings.h"
#include "policies/share.h"
#include "policies/straggler/policy.h"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace berth::policies {

// There is one of each workload, at each tick, so it is kept small.
struct Member {
  const model::Workload* workload = nullptr;
  std::unique_ptr<model::StragglerTask> task;  // set for a latency-sensitive workload that is a task
  std::array<Share, 2> shares;                 // by resource
  std::array<bool, 2> changed{};               // its limit is changed this tick already
  std::array<double, 2> counts{};              // its counted share under the changed limit
  bool held = false;                           // its CPU quota is another policy's (policies/replacements.h)

  bool latency_sensitive() const {
    return workload->workload_class == model::WorkloadClass::latency_sensitive;
  }
  bool straggles() const { return task && task->straggler; }
};

struct Round {
  model::Resource resource;
  double capacity = 0;
  double now = 0;         // epoch seconds
  double min_change = 0;  // 0..1: the least change, as a share of a limit
  const StragglerSettings& settings;
  std::vector<Member>& members;  // ascending by id
  StragglerProposal& out;

  std::size_t index() const { return resource == model::Resource::cpu ? 0 : 1; }
  Share& share(Member& member) const { return member.shares[index()]; }
  const Share& share(const Member& member) const { return member.shares[index()]; }
  bool changed(const Member& member) const { return member.changed[index()]; }
  std::string text(double amount) const { return amount_text(resource, amount); }
  // "2 cores"; "no limit"
  std::string limit_text(const std::optional<double>& limit) const {
    return limit ? text(*limit) : "no limit";
  }

  // Sets a member's limit, once a tick.
  void set(Member& member, const std::optional<double>& limit, const std::string& reason) {
    member.changed[index()] = true;
    member.counts[index()] = share(member).counted_under(limit);
    out.actions.push_back(set_limit(member.workload->id, resource, limit, reason));
  }
  // Notes that a member gives up or gets back `amount`, if that is not 0: limits beyond the host's size are
  // all alike. A recall is always noted, for later ticks.
  void note(model::LimitMove::Kind kind, const Member& member, double amount, const std::string& reason) {
    if (amount <= 0 && kind != model::LimitMove::Kind::recall) return;
    model::LimitMove move{.kind = kind, .workload = member.workload->id, .amount = {}, .reason = reason};
    add(move.amount, resource, amount);
    out.findings.moves.push_back(std::move(move));
  }
};

}  // namespace berth::policies
