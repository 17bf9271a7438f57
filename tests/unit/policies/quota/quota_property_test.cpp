// SPDX-License-Identifier: Apache-2.0
// The quota policy against the rules of its README, one workload at a time, and over the ticks of its own
// plans.
#include "model/standing.h"
#include "policies/decide.h"
#include "policies/quota/policy.h"
#include "tests/unit/policies/draws.h"
#include "tests/unit/policies/hosts.h"
#include "tests/unit/policies/seeds.h"
#include "tests/unit/policies/straggler/random_straggler.h"
#include "tests/unit/policies/straggler/stragglers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::policies {
namespace {

using model::Attribute;
using model::HeldCause;
using testing::Draws;

constexpr double kLifted_cores = model::kMaxCpu + 1;

struct Wanted {
  std::optional<double> quota_cores;  // in force after the plan
  std::uint64_t burst_us = 0;
};

model::Workload random_workload(Draws& draws, int number) {
  auto workload = testing::latency_sensitive("w" + std::to_string(number), draws.number(1, 4));
  if (draws.chance(0.2)) workload.vcpus.reset();
  if (draws.chance(0.2)) workload.workload_class = model::WorkloadClass::best_effort;
  if (draws.chance(0.6)) workload.cpus = testing::cpus("0-" + std::to_string(draws.number(0, 4)));
  workload.shares = draws.chance(0.2);
  if (draws.chance(0.1)) workload.left_alone = "it owns vCPUs";
  if (draws.chance(0.1)) workload.user = 1000;
  if (draws.chance(0.8)) workload.cpu_quota_cores = 0.25 * draws.number(1, 20);
  if (draws.chance(0.2)) workload.cpu_period_us = 1000U * static_cast<unsigned>(draws.number(1, 99));
  workload.fixed.cpu = draws.chance(0.1);
  if (draws.chance(0.1)) workload.fixed.others.insert(Attribute::cpu_burst);
  if (draws.chance(0.3) && !workload.fixed.cpu && workload.cpu_quota_cores) {
    workload.original =
        model::OriginalLimits{.cpu_quota_cores = workload.cpu_quota_cores, .memory_high_bytes = {}};
    constexpr std::array kCauses{HeldCause::lifted, HeldCause::extended, HeldCause::preempted};
    const HeldCause cause = kCauses.at(static_cast<std::size_t>(draws.number(0, 2)));
    workload.held_cpu = model::HeldLimit{.cause = cause, .since = 1, .changed_at = 1};
    if (cause == HeldCause::lifted) workload.cpu_quota_cores = kLifted_cores;
    if (cause == HeldCause::extended) *workload.cpu_quota_cores *= 2;
    if (cause == HeldCause::preempted) *workload.cpu_quota_cores /= 2;
  }
  if (draws.chance(0.2)) workload.others[Attribute::cpu_burst] = model::CpuBurst{1000};
  return workload;
}

// The rules 1 to 3 of the README.
Wanted restated(const model::Workload& w, const QuotaSettings& settings, const OtherChanges& others) {
  const auto owner = w.held_cpu ? w.original->cpu_quota_cores : w.cpu_quota_cores;
  const bool service =
      w.workload_class == model::WorkloadClass::latency_sensitive && !w.left_alone && !w.user;
  const bool lifted = w.held_cpu && w.held_cpu->cause == HeldCause::lifted;
  const auto now = static_cast<double>(w.cpus.size());
  const auto later = others.pins.contains(w.id) ? static_cast<double>(others.pins.at(w.id).size()) : now;
  const bool owns = w.vcpus.has_value() && now > 0 && later > 0 && !w.shares;
  bool lift = settings.lift && service && owner.has_value() && owns && *owner >= now && *owner >= later;
  lift = lift && !w.fixed.others.contains(Attribute::cpu_burst);
  lift = lift && !w.fixed.cpu && (!w.held_cpu || lifted) && !others.quotas.contains(w.id);
  Wanted wanted{.quota_cores = w.cpu_quota_cores};
  if (lift) wanted.quota_cores = kLifted_cores;
  if (!lift && lifted && !others.quotas.contains(w.id)) wanted.quota_cores = owner;
  if (settings.burst && service && owner && !lift && !w.fixed.others.contains(Attribute::cpu_burst)) {
    const double cores = w.held_cpu && !lifted ? std::min(*owner, *w.cpu_quota_cores) : *owner;
    wanted.burst_us = static_cast<std::uint64_t>(
        std::lround(cores * static_cast<double>(w.cpu_period_us.value_or(100'000U))));
  }
  return wanted;
}

std::uint64_t burst_of(const model::Workload& workload) {
  const auto found = workload.others.find(Attribute::cpu_burst);
  return found == workload.others.end() ? 0 : std::get<model::CpuBurst>(found->second).us;
}

void carry_out(const QuotaProposal& proposal, model::Snapshot& snapshot) {
  for (const model::Action& action : proposal.actions) {
    const auto found = std::ranges::find(snapshot.workloads, *action.workload(), &model::Workload::id);
    if (const auto* quota = action.sets<model::CpuQuota>()) {
      if (!found->held_cpu)
        found->original =
            model::OriginalLimits{.cpu_quota_cores = found->cpu_quota_cores, .memory_high_bytes = {}};
      found->held_cpu = model::HeldLimit{.cause = HeldCause::lifted, .since = 1, .changed_at = 1};
      if (quota->cores != kLifted_cores) found->held_cpu.reset();
      found->cpu_quota_cores = quota->cores;
    } else if (const auto* burst = action.sets<model::CpuBurst>()) {
      found->others[Attribute::cpu_burst] = *burst;
    } else {
      RC_ASSERT(action.gives_back(Attribute::cpu_burst));
      found->others.erase(Attribute::cpu_burst);
    }
  }
}

RC_GTEST_PROP(QuotaProperty, DoesWhatItsRulesSayAndRests, ()) {
  Draws draws(*testing::any_seed());
  model::Snapshot snapshot = testing::snapshot_of(testing::host({}));
  for (int i = 0, count = draws.number(1, 9); i < count; ++i)
    snapshot.workloads.push_back(random_workload(draws, i));
  const QuotaSettings settings{.lift = draws.chance(0.8), .burst = draws.chance(0.5)};
  OtherChanges others;
  for (const model::Workload& workload : snapshot.workloads) {
    if (draws.chance(0.1)) others.pins[workload.id] = {};
    if (draws.chance(0.1))
      others.pins[workload.id] = testing::cpus("0-" + std::to_string(draws.number(0, 4)));
    if (draws.chance(0.1)) others.quotas.insert(workload.id);
  }

  const model::Snapshot before = snapshot;
  carry_out(propose_quotas(snapshot, settings, others), snapshot);
  for (std::size_t i = 0; i < before.workloads.size(); ++i) {
    const model::Workload& was = before.workloads[i];
    const model::Workload& now = snapshot.workloads[i];
    const Wanted wanted = restated(was, settings, others);
    RC_ASSERT(now.cpu_quota_cores == wanted.quota_cores);
    RC_ASSERT(burst_of(now) == wanted.burst_us);
    // The kernel would refuse anything else.
    const double period_us = static_cast<double>(now.cpu_period_us.value_or(100'000U));
    RC_ASSERT(!now.cpu_quota_cores ||
              static_cast<double>(burst_of(now)) <= std::round(*now.cpu_quota_cores * period_us));
  }
  RC_ASSERT(propose_quotas(snapshot, settings, others).actions.empty());
  // Switched off, it leaves what it found.
  carry_out(propose_quotas(snapshot, {.lift = false, .burst = false}, {}), snapshot);
  for (std::size_t i = 0; i < before.workloads.size(); ++i) {
    RC_ASSERT(burst_of(snapshot.workloads[i]) == 0U);
    RC_ASSERT(model::limits_of_owner(snapshot.workloads[i]) == model::limits_of_owner(before.workloads[i]));
  }
}

// Over whole plans, while other policies grow pins and take them away.
RC_GTEST_PROP(QuotaProperty, ALiftedQuotaIsThatOfAServiceWhoseOwnVcpusItsOwnerAllows, ()) {
  const std::uint64_t seed = *testing::any_seed();
  Draws draws(seed);
  testing::RandomCase node = testing::random_straggler_case(seed);
  for (int tick = 0; tick < 6; ++tick) {
    for (model::Workload& workload : node.snapshot.workloads) {
      if (workload.vcpus && draws.chance(0.2)) workload.vcpus = draws.number(1, 4);
      if (!workload.held_cpu && draws.chance(0.2)) {
        workload.cpu_quota_cores = draws.number(1, 4);
        if (workload.original) workload.original->cpu_quota_cores = workload.cpu_quota_cores;
      }
      if (draws.chance(0.05)) workload.vcpus.reset();
    }
    const model::Plan plan = decide(node.snapshot, node.settings);
    testing::carry_out(plan, node.snapshot);
    node.snapshot.time += 100;
    const std::set<std::string> sharing = without_own_vcpus(plan);
    for (model::Workload& workload : node.snapshot.workloads) {
      workload.shares = sharing.contains(workload.id) && !workload.cpus.empty();
      if (!workload.held_cpu || workload.held_cpu->cause != HeldCause::lifted) continue;
      RC_ASSERT(!workload.cpus.empty());
      RC_ASSERT(!workload.shares);
      RC_ASSERT(workload.original->cpu_quota_cores >= static_cast<double>(workload.cpus.size()));
    }
  }
}

}  // namespace
}  // namespace berth::policies
