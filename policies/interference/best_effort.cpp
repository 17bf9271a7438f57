// SPDX-License-Identifier: Apache-2.0
#include "policies/interference/best_effort.h"

#include "model/count_text.h"
#include "policies/vcpus/pin_check.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <fmt/core.h>

namespace berth::policies {

namespace {

constexpr const char* kPolicy = "interference";
// A service that crashes and starts again takes longer than a move.
constexpr double kHeldCooldowns = 3;

std::string describe(const Occupancy& occupancy, const BestEffortDemand& demand, const PoolState& state,
                     const model::CpuSet& pool) {
  std::string text = fmt::format("best-effort pool {}: {} of {} vCPUs, {} owned by {}, utilisation {:.3g}",
                                 pool.to_string(), pool.size(), occupancy.node().usable_count(),
                                 occupancy.node().usable_count() - occupancy.unowned_count(),
                                 model::count_text(occupancy.placed_count(), "latency-sensitive instance"),
                                 state.utilisation);
  if (state.spares_siblings) {
    text += "; siblings of owned vCPUs are spared";
  } else if (demand.avoid_siblings) {
    text += fmt::format("; siblings of owned vCPUs are not spared: {} would be left, be_min_cpus is {}",
                        occupancy.spared_count(), demand.min_cpus);
  }
  return text;
}

// The pool with the cores beside shared services in place of these domains.
model::CpuSet with_domains(const Node& node, model::CpuSet pool,
                           const std::map<int, model::BestEffortCores>& beside_shared) {
  for (int index = 0; index < node.domain_count(); ++index) {
    const auto left = beside_shared.find(node.region(index).id);
    if (left == beside_shared.end()) continue;
    pool -= node.cpu_set(node.region(index).cpus);
    pool |= left->second.cpus;
  }
  return pool;
}

}  // namespace

bool Hold::holds(std::optional<double> changed_at) const {
  return cools_down(changed_at, now, kHeldCooldowns * cooldown_s);
}

void confine_best_effort(const Occupancy& occupancy, const BestEffortDemand& demand,
                         const std::vector<const model::Workload*>& workloads, const model::CpuSet& of_others,
                         const std::map<int, model::BestEffortCores>& beside_shared, const Hold& hold,
                         InterferenceProposal& proposal) {
  PoolState state = pool_state(occupancy.unowned_count(), occupancy.spared_count(), demand);
  const model::CpuSet unowned = best_effort_pool(occupancy, demand);
  const model::CpuSet pool = with_domains(occupancy.node(), unowned, beside_shared);
  if (!beside_shared.empty())
    state.utilisation = std::min(1.0, demand.use_cores / std::max(1.0, static_cast<double>(pool.size())));
  const model::CpuSet& reserved = occupancy.node().reserved();
  proposal.findings.best_effort = {
      .cpus = pool, .domains = beside_shared, .reserved = reserved, .utilisation = state.utilisation};
  // Those of instances, of other programs, reserved ones, and those that shared services need.
  const model::CpuSet owned = owned_by_instances(occupancy) | of_others | reserved | (unowned - pool);
  const bool instances = occupancy.placed_count() > 0 || !beside_shared.empty();
  model::CpuSet damped_apart;
  for (const auto& [domain, left] : beside_shared) damped_apart |= left.cpus;
  std::string pool_text = describe(occupancy, demand, state, pool);
  if (!of_others.empty())
    pool_text += fmt::format("; vCPUs {} belong to other programs' containers", of_others.to_string());
  pool_text += reserved_text(occupancy.node());
  if (!(unowned - pool).empty())
    pool_text += fmt::format("; services without vCPUs of their own need {}", (unowned - pool).to_string());

  for (const model::Workload* workload : workloads) {
    if (workload->workload_class != model::WorkloadClass::best_effort) continue;
    const auto& allowed = workload->allowed_cpus;
    model::CpuSet target = allowed ? pool & *allowed : pool;
    const bool young = !workload->cpus.empty() && !workload->left_alone && hold.holds(workload->pinned_at);
    // It gets no more vCPUs, but loses those that an instance owns now.
    if (young && owned.empty() && beside_shared.empty()) continue;
    if (young && target.intersects(workload->cpus)) target &= workload->cpus | damped_apart;
    std::optional<std::string> unpin;
    if (workload->left_alone) {
      unpin = "berth leaves it alone: " + *workload->left_alone;
    } else if (owned.empty()) {
      unpin = beside_shared.empty() ? "no latency-sensitive instance owns vCPUs, so it may use all"
                                    : "the services leave all vCPUs to it";
    } else if (allowed && !allowed->intersects(owned) && (target.empty() || !instances)) {
      unpin = fmt::format("its allowed CPUs {} share none with any owner", allowed->to_string());
    } else if (target.empty()) {
      unpin = fmt::format("its allowed CPUs {} share none with the best-effort pool {}{}",
                          allowed->to_string(), pool.to_string(), reserved_text(occupancy.node()));
      proposal.findings.unconfined.push_back({.workload = workload->id, .reason = *unpin});
    } else if (workload->cpus != target) {
      const std::string limits =
          allowed ? fmt::format("; its allowed CPUs {}", allowed->to_string()) : std::string();
      proposal.actions.push_back({.what = model::Set{.workload = workload->id, .value = target},
                                  .policy = kPolicy,
                                  .decision = {},
                                  .reason = pool_text + limits});
    }
    if (unpin && !workload->cpus.empty()) {
      proposal.actions.push_back(
          {.what = model::GiveBack{.workload = workload->id, .attribute = model::Attribute::cpus},
           .policy = kPolicy,
           .decision = {},
           .reason = std::move(*unpin)});
    }
  }
}

}  // namespace berth::policies
