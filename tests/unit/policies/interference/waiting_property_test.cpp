// SPDX-License-Identifier: Apache-2.0
// Instances that wait for vCPUs, against a restatement of docs/decisions/waiting.md with sets and loops.
#include "policies/interference/policy.h"
#include "tests/unit/policies/draws.h"
#include "tests/unit/policies/hosts.h"
#include "tests/unit/policies/interference/random_node.h"
#include "tests/unit/policies/seeds.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::policies {

namespace {

using Cpus = std::set<int>;
using model::WaitCause;
using model::Workload;
using model::WorkloadClass;

constexpr double kLimit_s = 0.005;
constexpr double kCooldown_s = 10;

struct Case {
  model::Snapshot snapshot;
  InterferenceSettings settings;
};

// A random node, in which instances are busy, throttled or disturbed, and wait for vCPUs or not.
Case random_waits(std::uint64_t seed) {
  auto random = testing::random_case(seed);
  testing::Draws draws(seed + 1);
  Case result{.snapshot = std::move(random.snapshot), .settings = random.settings.interference};
  result.settings.max_runq_latency_s = kLimit_s;
  result.settings.max_moves = draws.number(0, 3);
  result.settings.min_gain = draws.chance(0.5) ? 0.05 : draws.fraction();
  result.settings.search = draws.chance(0.8) ? Search::window : Search::optimal;
  result.settings.budget_s = 0.001;
  for (Workload& workload : result.snapshot.workloads) {
    const bool waits = draws.chance(0.7);
    const double busy = draws.chance(0.5) ? 0.8 + 0.3 * draws.fraction() : draws.fraction();
    const bool sensitive = workload.workload_class == WorkloadClass::latency_sensitive;
    std::vector<model::UsageSample> samples;
    for (int i = draws.number(1, 5); i > 0; --i) {
      model::UsageSample sample;
      sample.time = result.snapshot.time - i + 1;
      sample.cpu_cores = busy * (sensitive ? static_cast<double>(workload.cpus.size()) : 2);
      if (!draws.chance(0.03))
        sample.runq_latency_us =
            static_cast<float>(waits && !draws.chance(0.05) ? 6000 + 10000 * draws.fraction() : 4000);
      samples.push_back(sample);
    }
    workload.usage = samples;
    workload.cpu_throttled =
        draws.chance(0.7) ? std::nullopt : std::optional(draws.chance(0.5) ? 0.005 : draws.fraction());
    workload.pinned_at =
        draws.chance(0.5) ? std::nullopt : std::optional(result.snapshot.time - draws.number(0, 20));
    if (sensitive && draws.chance(0.2)) workload.cpu_quota_cores = draws.number(1, 8);
    if (!sensitive && draws.chance(0.3)) {
      workload.cpus = {};
      workload.allowed_cpus = model::CpuSet{draws.number(0, 3), draws.number(0, 7)};
    }
  }
  return result;
}

model::CpuSet given_out_by(const Case& given) {
  return testing::given_out(given.snapshot.topology, given.settings);
}

std::vector<model::UsageSample> last_three(const Workload& workload) {
  std::vector<model::UsageSample> all(workload.usage.begin(), workload.usage.end());
  return all.size() < 3 ? std::vector<model::UsageSample>() : std::vector(all.end() - 3, all.end());
}

double mean_use(const Workload& workload) {
  double sum = 0;
  for (const auto& sample : last_three(workload)) sum += sample.cpu_cores / 3;
  return sum;
}

// Where a best-effort workload may run, of the vCPUs that are online.
Cpus may_run_on(const Workload& workload, const model::Topology& topology) {
  Cpus where;
  for (const model::Cpu& cpu : topology.cpus()) {
    if (!cpu.online) continue;
    const bool may = !workload.cpus.empty()  ? workload.cpus.contains(cpu.cpu)
                     : workload.allowed_cpus ? workload.allowed_cpus->contains(cpu.cpu)
                                             : topology.usable().contains(cpu.cpu);
    if (may) where.insert(cpu.cpu);
  }
  return where;
}

double best_effort_on(int cpu, const model::Snapshot& snapshot) {
  double sum = 0;
  for (const Workload& workload : snapshot.workloads) {
    if (workload.workload_class != WorkloadClass::best_effort || workload.usage.size() < 3) continue;
    const Cpus where = may_run_on(workload, snapshot.topology);
    if (where.count(cpu) > 0) sum += mean_use(workload) / static_cast<double>(where.size());
  }
  return sum;
}

double best_effort_on(const model::CpuSet& cpus, const model::Snapshot& snapshot) {
  double sum = 0;
  int count = 0;
  for (const model::Cpu& cpu : snapshot.topology.cpus()) {
    if (!cpu.online || !cpus.contains(cpu.cpu)) continue;
    sum += best_effort_on(cpu.cpu, snapshot);
    ++count;
  }
  return count > 0 ? sum / count : 0;
}

bool waits(const Workload& workload) {
  if (workload.workload_class != WorkloadClass::latency_sensitive) return false;
  if (workload.vcpus.value_or(0) <= 0) return false;
  if (static_cast<int>(workload.cpus.size()) < *workload.vcpus) return false;
  const auto samples = last_three(workload);
  if (samples.empty()) return false;
  return std::all_of(samples.begin(), samples.end(), [&](const model::UsageSample& sample) {
    const std::optional<double> delay = sample.runq_latency_us;
    return delay && *delay * 1e-6 > kLimit_s && (!workload.pinned_at || sample.time > *workload.pinned_at);
  });
}

WaitCause cause_of(const Workload& workload, const model::Snapshot& snapshot) {
  if (workload.cpu_throttled.value_or(0) > 0.01) return WaitCause::quota;
  if (mean_use(workload) >= 0.9 * static_cast<double>(workload.cpus.size())) return WaitCause::vcpus;
  if (best_effort_on(workload.cpus, snapshot) > 0.01) return WaitCause::best_effort;
  return WaitCause::unknown;
}

// The least number that lowers the use of each vCPU by min_gain; 0 where it is beyond the limits.
int asked_by(const Workload& workload, const Case& given) {
  const int held = static_cast<int>(workload.cpus.size());
  for (int more = 1; held + more <= 2 * *workload.vcpus; ++more) {
    if (held + more > static_cast<int>(given_out_by(given).size())) break;
    if (workload.cpu_quota_cores && held + more > std::ceil(*workload.cpu_quota_cores)) break;
    const double gain = 1 - static_cast<double>(held) / (held + more);
    if (gain >= given.settings.min_gain - 1e-9) return held + more;
  }
  return 0;
}

bool cools(const Workload& workload, double now) {
  return workload.pinned_at && now - *workload.pinned_at >= 0 && now - *workload.pinned_at < kCooldown_s;
}

InterferenceProposal propose(const Case& given) {
  return propose_pins(given.snapshot, given.settings, {}, {}, kCooldown_s);
}

// The vCPUs of each workload after the plan.
std::map<std::string, model::CpuSet> after(const InterferenceProposal& proposal,
                                           const model::Snapshot& snapshot) {
  std::map<std::string, model::CpuSet> cpus;
  for (const Workload& workload : snapshot.workloads) cpus[workload.id] = workload.cpus;
  for (const model::Action& action : proposal.actions) {
    if (const auto* pin = action.sets<model::CpuSet>()) cpus[*action.workload()] = *pin;
    if (action.gives_back(model::Attribute::cpus)) cpus[*action.workload()] = {};
  }
  return cpus;
}

RC_GTEST_PROP(Waiting, TheFindingIsThatOfThePage, ()) {
  const Case given = random_waits(*testing::any_seed());
  const auto findings = propose(given).findings.waiting;
  std::size_t expected = 0;
  for (const Workload& workload : given.snapshot.workloads) {
    const auto found = findings.find(workload.id);
    RC_ASSERT((found != findings.end()) == waits(workload));
    if (found == findings.end()) continue;
    ++expected;
    const WaitCause cause = cause_of(workload, given.snapshot);
    RC_TAG(std::string(model::to_string(cause)));
    RC_ASSERT(found->second.cause == cause);
    RC_ASSERT(found->second.vcpus == (cause == WaitCause::vcpus ? asked_by(workload, given) : 0));
    RC_ASSERT(!found->second.reason.empty());
    Cpus quieter;
    if (cause == WaitCause::best_effort) {
      const double most = (1 - given.settings.min_gain) * best_effort_on(workload.cpus, given.snapshot);
      for (const int cpu : given_out_by(given)) {
        if (best_effort_on(cpu, given.snapshot) <= most) quieter.insert(cpu);
      }
    }
    const auto listed = found->second.quieter.to_vector();
    RC_ASSERT(Cpus(listed.begin(), listed.end()) == quieter);
  }
  RC_ASSERT(findings.size() == expected);
}

// Against the same host without a limit, only so many pins differ, and none of those that cool down.
RC_GTEST_PROP(Waiting, ChangesAreDamped, ()) {
  Case given = random_waits(*testing::any_seed());
  given.settings.search = Search::window;
  const auto limited = propose(given);
  const auto with = after(limited, given.snapshot);
  int grown = 0;
  int moved = 0;
  for (const Workload& workload : given.snapshot.workloads) {
    const auto found = limited.findings.waiting.find(workload.id);
    if (found == limited.findings.waiting.end()) continue;
    // One that may not be pinned to less than it uses shares vCPUs instead.
    if (limited.findings.instances.count(workload.id) == 0) continue;
    const model::CpuSet& now = with.at(workload.id);
    if (now.size() > workload.cpus.size() && found->second.cause == WaitCause::vcpus) {
      RC_ASSERT(workload.cpus.is_subset_of(now));
      RC_ASSERT(static_cast<int>(now.size()) <= found->second.vcpus);
      RC_ASSERT(!cools(workload, given.snapshot.time));
      ++grown;
    }
    const bool by_wait = std::any_of(limited.actions.begin(), limited.actions.end(), [&](const auto& action) {
      return action.workload() != nullptr && *action.workload() == workload.id &&
             action.reason.find("waits for vCPUs") != std::string::npos;
    });
    if (!by_wait) continue;
    RC_ASSERT(found->second.cause == WaitCause::best_effort);
    RC_ASSERT(now.is_subset_of(found->second.quieter));
    RC_ASSERT(now.size() == workload.cpus.size());
    RC_ASSERT(!cools(workload, given.snapshot.time));
    RC_ASSERT(best_effort_on(now, given.snapshot) <=
              (1 - given.settings.min_gain) * best_effort_on(workload.cpus, given.snapshot) + 1e-12);
    ++moved;
  }
  RC_ASSERT(grown + moved <= given.settings.max_moves);
  RC_CLASSIFY(moved > 0, "moved");
  RC_CLASSIFY(grown > 0, "grown");
}

RC_GTEST_PROP(Waiting, WithoutALimitNothingIsFound, ()) {
  Case given = random_waits(*testing::any_seed());
  given.settings.max_runq_latency_s = 0;
  RC_ASSERT(propose(given).findings.waiting.empty());
}

// No two instances own one vCPU, and best-effort work keeps its own.
RC_GTEST_PROP(Waiting, InstancesOwnDifferentVcpus, ()) {
  const Case given = random_waits(*testing::any_seed());
  const auto findings = propose(given).findings;
  Cpus owned;
  std::size_t sum = 0;
  for (const auto& [id, instance] : findings.instances) {
    for (const int cpu : instance.cpus) owned.insert(cpu);
    sum += instance.cpus.size();
  }
  RC_ASSERT(owned.size() == sum);
  if (sum > 0) {
    RC_ASSERT(given_out_by(given).size() - sum >=
              static_cast<std::size_t>(std::max(1, given.settings.be_min_cpus)));
  }
}

}  // namespace

}  // namespace berth::policies
