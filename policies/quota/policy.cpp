// SPDX-License-Identifier: Apache-2.0
#include "policies/quota/policy.h"

#include "model/ground.h"
#include "model/standing.h"
#include "policies/share.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/core.h>

namespace berth::policies {

namespace {

using model::Attribute;
using model::Workload;

constexpr std::uint64_t kDefaultPeriod_us = 100'000;
// Of a lifted quota: more than any host has, so that discovery (cgroup/discovery_rules.cpp) takes no number
// of vCPUs from it.
constexpr double kLifted_cores = model::kMaxCpu + 1;

// A user's own group could set both quota and burst itself, so it is given neither.
bool is_service(const Workload& workload) {
  return workload.workload_class == model::WorkloadClass::latency_sensitive && !workload.left_alone &&
         model::may_favour_itself({.user = workload.user}, model::Word::limit);
}

// The most vCPUs of its own while the plan is carried out; 0: it has none before or after it.
std::size_t most_vcpus(const Workload& workload, const OtherChanges& others) {
  if (!workload.vcpus || workload.shares) return 0;
  const auto pin = others.pins.find(workload.id);
  const std::size_t later = pin == others.pins.end() ? workload.cpus.size() : pin->second.size();
  return workload.cpus.empty() || later == 0 ? 0 : std::max(workload.cpus.size(), later);
}

// Whether the quota of its owner limits nothing but bursts.
bool only_stops_bursts(const Workload& workload, double quota_cores, const OtherChanges& others) {
  const std::size_t most = most_vcpus(workload, others);
  // A quota that the straggler policy holds is that policy's. A burst of the owner would be lost on some
  // kernels (DirectOwner::merged), and serves the same end.
  const bool free = !workload.fixed.cpu && (!workload.held_cpu || is_lifted(workload)) &&
                    !workload.fixed.others.contains(Attribute::cpu_burst);
  return free && most > 0 && quota_cores >= static_cast<double>(most);
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

void decide_lift(const Workload& workload, double quota_cores, QuotaProposal& out) {
  std::string reason = fmt::format(
      "it owns vCPUs {}, and its CPU quota of {:.4g} cores is no less: the quota can only throttle bursts",
      workload.cpus.to_string(), quota_cores);
  if (workload.cpu_quota_cores != kLifted_cores)
    out.actions.push_back(action_on(model::Set{workload.id, model::CpuQuota{kLifted_cores}}, reason));
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
                             const OtherChanges& others) {
  QuotaProposal out;
  const auto host_cores = static_cast<double>(ordered.snapshot.topology.cpus().size());
  for (const Workload* workload : ordered.workloads) {
    const auto quota = model::limits_of_owner(*workload).cpu_quota_cores;
    const bool served = is_service(*workload) && quota;
    const bool taken = others.quotas.contains(workload->id);
    const bool lift = settings.lift && served && !taken && *quota < host_cores &&
                      only_stops_bursts(*workload, *quota, others);
    const bool burst =
        settings.burst && served && !lift && !workload->fixed.others.contains(Attribute::cpu_burst);
    if (lift) {
      decide_lift(*workload, *quota, out);
    } else if (!taken && is_lifted(*workload) && workload->original) {
      out.actions.push_back(action_on(model::Set{workload->id, model::CpuQuota{quota}},
                                      "its CPU quota limits more than bursts now, and goes back"));
    }
    if (burst) {
      decide_burst(*workload, *quota, out);
    } else if (workload->others.contains(Attribute::cpu_burst)) {
      out.actions.push_back(
          action_on(model::GiveBack{workload->id, Attribute::cpu_burst}, "it needs no burst any more"));
    }
  }
  return out;
}

}  // namespace berth::policies
