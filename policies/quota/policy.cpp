// SPDX-License-Identifier: Apache-2.0
#include "policies/quota/policy.h"

#include "model/standing.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/core.h>

namespace berth::policies {

namespace {

using model::Attribute;
using model::Workload;

constexpr std::uint64_t kDefaultPeriod_us = 100'000;

bool is_service(const Workload& workload) {
  return workload.workload_class == model::WorkloadClass::latency_sensitive && !workload.left_alone;
}

bool is_lifted(const Workload& workload) {
  return workload.held_cpu && workload.held_cpu->cause == model::HeldCause::lifted;
}

// Of a workload with a pin of its own: the cores that its owner lets it use. A straggler's pin is larger than
// its vcpus, and then the straggler policy raises its quota in any case.
double own_cores(const Workload& workload) {
  return std::min(*workload.vcpus, static_cast<int>(workload.cpus.size()));
}

// Whether the quota of its owner limits nothing but bursts.
bool only_hinders(const Workload& workload, double quota_cores, const std::set<std::string>& losing) {
  const bool owns = workload.vcpus && !workload.cpus.empty() && !workload.shares;
  // A quota that the straggler policy holds is that policy's.
  const bool free = !workload.fixed.cpu && (!workload.held_cpu || is_lifted(workload));
  return owns && free && !losing.contains(workload.id) && quota_cores >= own_cores(workload);
}

// The kernel takes no burst above the quota in force, and no quota of the owner below the burst.
std::uint64_t burst_us(const Workload& workload, double quota_cores) {
  const double cores = std::min(quota_cores, workload.cpu_quota_cores.value_or(quota_cores));
  const auto period_us = static_cast<double>(workload.cpu_period_us.value_or(kDefaultPeriod_us));
  return static_cast<std::uint64_t>(std::round(cores * period_us));
}

model::Action action_on(model::Action::What what, std::string reason) {
  return {.what = std::move(what), .policy = "quota", .decision = {}, .reason = std::move(reason)};
}

// `host_cores`: the quota that limits nothing.
void decide_lift(const Workload& workload, double quota_cores, double host_cores, QuotaProposal& out) {
  std::string reason = fmt::format(
      "it owns vCPUs {}, and its CPU quota of {:.4g} cores is no less: the quota can only throttle bursts",
      workload.cpus.to_string(), quota_cores);
  if (workload.cpu_quota_cores != host_cores)
    out.actions.push_back(action_on(model::Set{workload.id, model::CpuQuota{host_cores}}, reason));
  out.findings.lifted.push_back({.workload = workload.id, .reason = std::move(reason)});
}

void decide_burst(const Workload& workload, double quota_cores, QuotaProposal& out) {
  const model::AttributeValue wanted = model::CpuBurst{burst_us(workload, quota_cores)};
  std::string reason =
      fmt::format("it has a CPU quota of {:.4g} cores, and may save up one period of it", quota_cores);
  if (value_in(workload, Attribute::cpu_burst) != wanted)
    out.actions.push_back(action_on(model::Set{workload.id, wanted}, reason));
  out.findings.bursting.push_back({.workload = workload.id, .reason = std::move(reason)});
}

}  // namespace

QuotaProposal propose_quotas(const OrderedSnapshot& ordered, const QuotaSettings& settings,
                             const std::set<std::string>& losing) {
  QuotaProposal out;
  const auto host_cores = static_cast<double>(ordered.snapshot.topology.cpus().size());
  for (const Workload* workload : ordered.workloads) {
    const auto quota = model::limits_of_owner(*workload).cpu_quota_cores;
    const bool served = is_service(*workload) && quota;
    const bool lift =
        settings.lift && served && *quota < host_cores && only_hinders(*workload, *quota, losing);
    const bool burst =
        settings.burst && served && !lift && !workload->fixed.others.contains(Attribute::cpu_burst);
    if (lift) {
      decide_lift(*workload, *quota, host_cores, out);
    } else if (is_lifted(*workload) && workload->original) {
      out.actions.push_back(action_on(model::Set{workload->id, model::CpuQuota{quota}},
                                      "its CPU quota does not only hinder it any more, and goes back"));
    }
    if (burst) {
      decide_burst(*workload, *quota, out);
    } else if (workload->others.contains(Attribute::cpu_burst)) {
      out.actions.push_back(action_on(model::GiveBack{workload->id, Attribute::cpu_burst},
                                      "no quota of it needs a burst any more"));
    }
  }
  return out;
}

}  // namespace berth::policies
