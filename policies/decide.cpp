// SPDX-License-Identifier: Apache-2.0
#include "policies/decide.h"

#include "policies/arbiter.h"
#include "policies/eviction/candidates.h"
#include "policies/eviction/demand.h"
#include "policies/eviction/policy.h"
#include "policies/interference/policy.h"
#include "policies/oversell/policy.h"
#include "policies/oversell/score.h"
#include "policies/pins.h"
#include "policies/placement/rank.h"
#include "policies/quota/policy.h"
#include "policies/straggler/policy.h"
#include "policies/workload_index.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace berth::policies {

const std::vector<std::string>& policy_names() {
  static const std::vector<std::string> names{"interference", "straggler", "eviction",
                                              "oversell",     "placement", "quota"};
  return names;
}

namespace {

// The cost of an eviction is computed in one place, for all policies.
EvictionCost cost_of_evicting(const model::Snapshot& snapshot, const EvictionSettings& settings) {
  using Prices = std::map<std::string, model::EvictionCandidate>;
  // It is computed at the first question: most ticks have none.
  return [&snapshot, &settings,
          prices = std::make_shared<std::optional<Prices>>()](const model::Workload& workload) {
    if (!*prices) {
      const double delta = weighted_delta(snapshot, settings);
      *prices = candidates_of(snapshot, settings, delta, Priced::all).by_workload;
    }
    const auto found = (*prices)->find(workload.id);
    return found == (*prices)->end() ? 0 : found->second.cost_s;
  };
}

OtherChanges changes_beside_quotas(const model::Plan& plan, const std::vector<model::Action>& proposals) {
  OtherChanges changes;
  for (const model::Action& action : proposals) {
    if (const auto* cpus = action.sets<model::CpuSet>()) changes.pins[*action.workload()] = *cpus;
    if (action.gives_back(model::Attribute::cpus)) changes.pins[*action.workload()] = {};
    if (action.attribute() == model::Attribute::cpu_quota) changes.quotas.insert(*action.workload());
  }
  for (const std::string& id : without_own_vcpus(plan)) changes.pins[id] = {};
  return changes;
}

}  // namespace

std::set<std::string> without_own_vcpus(const model::Plan& plan) {
  std::set<std::string> ids;
  if (!plan.findings.interference) return ids;
  for (const auto& finding : plan.findings.interference->unplaceable) ids.insert(finding.workload);
  for (const auto& [id, instance] : plan.findings.interference->shared) ids.insert(id);
  return ids;
}

model::Plan decide(const model::Snapshot& snapshot, const PolicySettings& settings,
                   const std::vector<std::string>& only) {
  const auto runs = [&](const char* name) {
    return only.empty() || std::find(only.begin(), only.end(), name) != only.end();
  };
  if (const auto sparing = sparing_owned_cpus(snapshot, settings)) return decide(snapshot, *sparing, only);
  const OrderedSnapshot ordered(snapshot);
  model::Plan plan;
  plan.host = snapshot.host;
  plan.time = snapshot.time;
  plan.wall_ahead_s = snapshot.wall_ahead_s;
  std::vector<model::Action> proposals;
  // This comes first, because a task that grows is also to own more vCPUs.
  GrownRequests grown;
  if (runs("straggler")) {
    StragglerProposal proposal = propose_help(ordered, settings);
    grown = grown_requests(proposal.findings);
    plan.findings.straggler = std::move(proposal.findings);
    std::move(proposal.actions.begin(), proposal.actions.end(), std::back_inserter(proposals));
  }
  if (runs("oversell")) {
    OversellProposal proposal =
        propose_advertising(ordered, settings, cost_of_evicting(snapshot, settings.eviction));
    plan.findings.oversell = std::move(proposal.findings);
    std::move(proposal.actions.begin(), proposal.actions.end(), std::back_inserter(proposals));
  }
  // This comes before pins too: pending work gets its vCPUs near its GPUs.
  PendingBins bins;
  if (runs("placement")) {
    PlacementProposal proposal = propose_places(snapshot, settings);
    bins = std::move(proposal.bins);
    plan.findings.placement = std::move(proposal.findings);
  }
  if (runs("interference")) {
    InterferenceProposal proposal =
        propose_pins(ordered, settings.interference, grown, bins, settings.safety.repin_cooldown_s);
    plan.findings.interference = std::move(proposal.findings);
    std::move(proposal.actions.begin(), proposal.actions.end(), std::back_inserter(proposals));
  }
  if (runs("quota")) {
    QuotaProposal proposal = propose_quotas(ordered, settings.quota, changes_beside_quotas(plan, proposals));
    plan.findings.quota = std::move(proposal.findings);
    std::move(proposal.actions.begin(), proposal.actions.end(), std::back_inserter(proposals));
  }
  if (runs("eviction")) {
    EvictionProposal proposal = propose_evictions(snapshot, settings.eviction);
    plan.findings.eviction = std::move(proposal.findings);
    std::move(proposal.actions.begin(), proposal.actions.end(), std::back_inserter(proposals));
  }
  if (plan.findings.oversell) {
    plan.findings.oversell->score = host_score(*plan.findings.oversell, plan.findings.interference);
    if (plan.findings.interference) {
      const model::CpuSet& pool = plan.findings.interference->best_effort.cpus;
      plan.findings.oversell->cpu.best_effort_capacity = static_cast<double>(pool.size());
    }
  }
  plan.actions =
      arbitrate(snapshot, std::move(proposals), settings, runs("placement"), without_own_vcpus(plan));
  return plan;
}

}  // namespace berth::policies
