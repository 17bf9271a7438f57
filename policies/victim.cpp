// SPDX-License-Identifier: Apache-2.0
#include "policies/victim.h"

#include "model/ground.h"
#include "model/json.h"

#include <algorithm>
#include <map>
#include <utility>

namespace berth::policies {

namespace {

// A process that ends loses its pages at once, and the kernel needs a while to free them.
constexpr double kFreeingLag_s = 2;

struct FirstVictims {
  std::vector<std::size_t> positions;
  double freed_bytes = 0;
  bool ends_unknown = false;
};

// From the first one on until they free the need, without those that are known to free less than
// `least_bytes`.
FirstVictims first_victims(const std::vector<Freed>& frees,
                           const std::vector<std::optional<std::uint64_t>>& worth, double need_bytes,
                           double least_bytes) {
  FirstVictims chosen;
  for (std::size_t at = 0; at < frees.size(); ++at) {
    if (!chosen.positions.empty() && chosen.freed_bytes >= need_bytes) break;
    const auto& bytes = frees[at].bytes;
    if (bytes && static_cast<double>(*worth[at]) < least_bytes) continue;
    chosen.positions.push_back(at);
    chosen.ends_unknown = !bytes;
    if (!bytes) break;
    chosen.freed_bytes += static_cast<double>(*bytes);
  }
  return chosen;
}

}  // namespace

Freed freed_by(const model::Workload& workload) {
  return {.bytes = latest_memory(workload), .user = workload.user};
}

std::vector<std::optional<std::uint64_t>> worth_freeing(const std::vector<Freed>& frees) {
  std::map<std::uint32_t, std::uint64_t> of_users;
  for (const Freed& each : frees) {
    if (!each.user) continue;
    std::uint64_t& sum = of_users[*each.user];
    sum = std::min(sum + each.bytes.value_or(0), model::kMaxBytes);
  }
  std::vector<std::optional<std::uint64_t>> worth;
  worth.reserve(frees.size());
  for (const Freed& each : frees) {
    // One that frees nothing is no victim, whatever the others free.
    const bool in_sum = each.user && each.bytes.value_or(0) > 0;
    worth.push_back(in_sum ? std::optional(of_users.at(*each.user)) : each.bytes);
  }
  return worth;
}

std::vector<std::size_t> victims_among(const std::vector<Freed>& frees, double need_bytes) {
  constexpr auto kLeast = static_cast<double>(kLeastFreedBytes);
  const auto worth = worth_freeing(frees);
  FirstVictims chosen =
      first_victims(frees, worth, need_bytes, std::max(kLeast, kLeastFreedShare * need_bytes));
  if (chosen.freed_bytes < need_bytes && !chosen.ends_unknown)
    chosen = first_victims(frees, worth, need_bytes, kLeast);
  // The last one is needed. Of the others the last, and so the dearest ones, go first.
  for (std::size_t i = chosen.positions.size(); i-- > 0;) {
    if (i + 1 == chosen.positions.size() || chosen.ends_unknown) continue;
    const auto bytes = static_cast<double>(*frees[chosen.positions[i]].bytes);
    if (chosen.freed_bytes - bytes < need_bytes) continue;
    chosen.freed_bytes -= bytes;
    chosen.positions.erase(chosen.positions.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return std::move(chosen.positions);
}

double loss_outside_spark(const model::Workload& workload, double now) {
  // An exporter that ran for ten days, mostly asleep, weighs as much as a job after 2.4 hours of one vCPU.
  constexpr double kOfAge = 0.01;
  // A user makes its work as old as it likes, by an old process in a new group.
  const bool known = workload.created > 0 && !workload.user;
  const double age_s = known ? std::max(0.0, now - workload.created) : 0;
  return cpu_seconds_used(workload, now) + kOfAge * age_s;
}

bool may_be_ended(const model::Workload& workload) {
  const model::FixedLimits& fixed = workload.fixed;
  // A leaf's memory limit is always fixed. A user can fix both limits of its own groups.
  const bool by_root = model::may_favour_itself({.user = workload.user}, model::Word::write);
  const bool out_of_reach = fixed.life || (fixed.cpu && fixed.memory && !workload.leaf_since && by_root);
  return workload.workload_class == model::WorkloadClass::best_effort && !workload.spared &&
         !workload.evicted_at && !out_of_reach;
}

bool can_be_evicted(const model::Workload& workload) {
  return may_be_ended(workload) && memory_in_use(workload) > 0;
}

std::uint64_t memory_being_freed(const model::Snapshot& snapshot) {
  std::uint64_t bytes = 0;
  for (const model::Workload& workload : snapshot.workloads) {
    if (!workload.evicted_at) continue;
    std::uint64_t most = memory_in_use(workload);
    for (auto sample = workload.usage.rbegin(); sample != workload.usage.rend(); ++sample) {
      const model::UsageSample seen = *sample;
      if (seen.time < snapshot.time - kFreeingLag_s) break;
      most = std::max(most, seen.memory_bytes.value_or(0));
    }
    bytes = std::min(bytes + most, model::kMaxBytes);
  }
  return bytes;
}

model::Action eviction_of(const model::Workload& workload, double grace_s, bool emergency, const char* policy,
                          std::string reason) {
  const bool executor = workload.spark && workload.spark->role == model::SparkRole::executor;
  return {.what = model::Evict{.workload = workload.id,
                               .how = executor ? model::EvictionStep::decommission
                                               : model::EvictionStep::terminate,
                               .frees_bytes = memory_in_use(workload),
                               .grace_s = emergency ? std::min(grace_s, kEmergencyGrace_s) : grace_s},
          .policy = policy,
          .decision = {},
          .reason = std::move(reason)};
}

}  // namespace berth::policies
