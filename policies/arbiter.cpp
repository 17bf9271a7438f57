// SPDX-License-Identifier: Apache-2.0
#include "policies/arbiter.h"

#include "policies/action_order.h"
#include "policies/decision_id.h"
#include "policies/limit_change.h"
#include "policies/memory_nodes.h"
#include "policies/share.h"
#include "policies/vcpus/pin_check.h"
#include "policies/vcpus/pool.h"
#include "policies/workload_index.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/core.h>

namespace berth::policies {

namespace {

// What an action changes. Of a workload it is its life, or an attribute.
struct Target {
  std::string workload;
  std::optional<model::Attribute> attribute;
  std::optional<model::Resource> advertised;
  friend bool operator<(const Target& a, const Target& b) {
    return std::tie(a.workload, a.attribute, a.advertised) < std::tie(b.workload, b.attribute, b.advertised);
  }
};

Target target_of(const model::Action& action) {
  Target target{.workload = {}, .attribute = action.attribute(), .advertised = {}};
  if (const std::string* workload = action.workload()) target.workload = *workload;
  if (const auto* said = std::get_if<model::Advertise>(&action.what)) target.advertised = said->resource;
  return target;
}

// Strongest first.
enum class Precedence { evict, grow, reclaim, pin, restore, advertise };

// The change shows the purpose of an action. More for a latency-sensitive workload is growth, less for a
// best-effort one is reclaiming. The reverse of either is giving back.
Precedence precedence_of(const model::Action& action, const model::Workload* workload) {
  if (std::holds_alternative<model::Evict>(action.what)) return Precedence::evict;
  if (workload == nullptr) return Precedence::advertise;
  const auto limit = limit_change(action, *workload);
  if (!limit) return Precedence::pin;
  const bool raises = std::isinf(limit->wanted) || limit->wanted > limit->present;
  if (workload->workload_class == model::WorkloadClass::latency_sensitive)
    return raises ? Precedence::grow : Precedence::restore;
  return raises ? Precedence::restore : Precedence::reclaim;
}

// Of two limits that take memory from a best-effort workload, the lower one also serves the other's purpose.
std::uint64_t taking_limit(const model::Action& action, Precedence precedence) {
  const auto* high = action.sets<model::MemoryHigh>();
  return precedence == Precedence::reclaim && high != nullptr ? high->bytes.value_or(0) : 0;
}

bool is_known(const model::Snapshot& snapshot, const WorkloadIndex& workloads, const model::Action& action) {
  const std::string* id = action.workload();
  if (id == nullptr) return true;
  if (action.attribute() == model::Attribute::cpu_idle) return find_group(snapshot, *id) != nullptr;
  if (workloads.find(action) != nullptr) return true;
  return action.attribute() == model::Attribute::cpus && find_other(snapshot, *id) != nullptr;
}

// Evictions in the order of the proposals, then all others by target.
std::vector<model::Action> strongest_per_target(const model::Snapshot& snapshot,
                                                const WorkloadIndex& workloads,
                                                std::vector<model::Action> proposals) {
  const auto rank = [&](const model::Action& action) {
    const Precedence precedence = precedence_of(action, workloads.find(action));
    return std::make_tuple(precedence, taking_limit(action, precedence), action.policy,
                           std::string(action.kind()), value_text(action), action.reason);
  };
  std::map<Target, std::size_t> chosen;
  for (std::size_t i = 0; i < proposals.size(); ++i) {
    const model::Action& action = proposals[i];
    if (!is_known(snapshot, workloads, action)) continue;
    const auto [held, added] = chosen.try_emplace(target_of(action), i);
    if (!added && rank(action) < rank(proposals[held->second])) held->second = i;
  }
  std::vector<std::size_t> evictions;
  std::vector<std::size_t> others;
  for (const auto& [target, i] : chosen)
    (std::holds_alternative<model::Evict>(proposals[i].what) ? evictions : others).push_back(i);
  std::sort(evictions.begin(), evictions.end());
  std::vector<model::Action> actions;
  actions.reserve(chosen.size());
  for (const auto* places : {&evictions, &others}) {
    for (const std::size_t i : *places) actions.push_back(std::move(proposals[i]));
  }
  return actions;
}

// A best-effort quota rises by be_quota_rise of the host a tick. A quota as large as the host limits nothing.
// So a rise beyond that, and lifting it, counts as a rise to the whole host.
void limit_rise(const model::Workload& workload, double node_cores, double be_quota_rise,
                model::Action& action) {
  auto* quota = action.sets<model::CpuQuota>();
  if (quota == nullptr || workload.workload_class != model::WorkloadClass::best_effort) return;
  if (!workload.cpu_quota_cores) return;
  const double most = *workload.cpu_quota_cores + be_quota_rise * node_cores;
  if (std::min(quota->cores.value_or(node_cores), node_cores) <= most) return;
  quota->cores = most;
  action.reason += fmt::format("; held to +{:.3g} cores this tick (be_quota_rise {:.3g} of {} vCPUs)",
                               be_quota_rise * node_cores, be_quota_rise, node_cores);
}

// Whether a limit comes nearer to its original. Such a step is never too small: else a changed limit could
// stay changed.
bool goes_back(const LimitChange& limit) {
  if (!limit.original) return false;
  if (limit.wanted == *limit.original) return true;
  if (std::isinf(limit.wanted) || std::isinf(limit.present)) return false;
  return (limit.present < limit.wanted && limit.wanted < *limit.original) ||
         (*limit.original < limit.wanted && limit.wanted < limit.present);
}

bool changes(const LimitChange& limit, double min_change) {
  if (std::isinf(limit.wanted) || std::isinf(limit.present)) return limit.wanted != limit.present;
  const double difference = std::abs(limit.wanted - limit.present);
  return difference > 0 && (goes_back(limit) || difference >= min_change * limit.present);
}

bool worth_doing(const model::Snapshot& snapshot, const model::Action& action,
                 const model::Workload* workload, double min_change) {
  const auto* cpus = action.sets<model::CpuSet>();
  if (cpus != nullptr && cpus->empty()) return false;
  if (workload == nullptr) {
    const model::OtherGroup* other = cpus != nullptr ? find_other(snapshot, *action.workload()) : nullptr;
    return other == nullptr || other->held != *cpus;
  }
  if (const auto limit = limit_change(action, *workload)) return changes(*limit, min_change);
  const auto attribute = action.attribute();
  if (!attribute || *attribute == model::Attribute::cpu_idle) return true;  // a group's
  const auto present = value_in(*workload, *attribute);
  const auto* set = std::get_if<model::Set>(&action.what);
  return set != nullptr ? set->value != present : present.has_value();
}

// Pins that may not move yet: those that stand and changed less than the cool-down ago.
class CoolDown {
 public:
  CoolDown(const model::Snapshot& snapshot, const PolicySettings& settings,
           const std::set<std::string>& sharing)
      : snapshot_(snapshot), settings_(settings), now_(snapshot.time) {
    model::CpuSet seen;
    for (const model::Workload& workload : snapshot.workloads) {
      if (workload.workload_class != model::WorkloadClass::latency_sensitive) continue;
      if (workload.shares || sharing.contains(workload.id)) continue;
      contested_ |= seen & workload.cpus;
      seen |= workload.cpus;
    }
  }

  // Growing or shrinking in place is no move.
  bool holds(const model::Workload& workload, const model::CpuSet& wanted) {
    if (workload.shares || !cools_down(workload.pinned_at, now_, settings_.safety.repin_cooldown_s))
      return false;
    if (workload.cpus.is_subset_of(wanted) || wanted.is_subset_of(workload.cpus)) return false;
    if (workload.cpus.intersects(contested_)) return false;
    if (!node_) node_ = node_to_plan(snapshot_, settings_.interference);
    return check_pin(*node_, settings_.interference, workload).stands();
  }

 private:
  const model::Snapshot& snapshot_;
  std::optional<Node> node_;  // made at the first question
  const PolicySettings& settings_;
  double now_;
  model::CpuSet contested_;  // vCPUs that more than one latency-sensitive pin holds
};

// Drops moves within the cool-down. Then drops each latency-sensitive pin that needs the vCPUs kept so.
// Pins of all others stay off them.
void hold_moves(const model::Snapshot& snapshot, const WorkloadIndex& workloads,
                const PolicySettings& settings, const std::set<std::string>& sharing,
                std::vector<model::Action>& actions) {
  const auto moves = [](const model::Action& it) { return it.sets<model::CpuSet>() != nullptr; };
  if (std::none_of(actions.begin(), actions.end(), moves)) return;
  CoolDown cool_down(snapshot, settings, sharing);
  // nullptr: other work.
  const auto shares = [&](const model::Workload* workload) {
    return workload == nullptr || workload->workload_class == model::WorkloadClass::best_effort ||
           sharing.contains(workload->id);
  };
  model::CpuSet kept;
  const auto drop_if = [&](auto must_stay) {
    return std::erase_if(actions, [&](const model::Action& action) {
             const auto* cpus = action.sets<model::CpuSet>();
             if (cpus == nullptr) return false;
             const model::Workload* workload = workloads.find(action);
             if (shares(workload)) return false;
             if (!must_stay(*workload, *cpus)) return false;
             kept |= workload->cpus;
             return true;
           }) > 0;
  };
  bool dropped = drop_if([&](const model::Workload& workload, const model::CpuSet& wanted) {
    return cool_down.holds(workload, wanted);
  });
  while (dropped) {
    dropped = drop_if([&](const model::Workload& workload, const model::CpuSet& wanted) {
      return wanted.intersects(kept - workload.cpus);
    });
  }
  if (kept.empty()) return;
  for (model::Action& action : actions) {
    auto* cpus = action.sets<model::CpuSet>();
    if (cpus != nullptr && shares(workloads.find(action))) *cpus -= kept;
  }
}

// Keeps the evictions of one policy, because they may meet the need of the other one, too. Overselling's come
// before those for forecast memory, because its threshold is passed already.
void keep_evictions_of_one_policy(std::vector<model::Action>& actions) {
  const auto evicts = [](const model::Action& action) {
    return std::holds_alternative<model::Evict>(action.what);
  };
  const bool oversold = std::any_of(actions.begin(), actions.end(), [&](const model::Action& action) {
    return evicts(action) && action.policy == "oversell";
  });
  if (!oversold) return;
  std::erase_if(actions,
                [&](const model::Action& action) { return evicts(action) && action.policy != "oversell"; });
}

}  // namespace

std::vector<model::Action> arbitrate(const model::Snapshot& snapshot, std::vector<model::Action> proposals,
                                     const PolicySettings& settings, bool memory_follows,
                                     const std::set<std::string>& sharing) {
  const WorkloadIndex workloads(snapshot);
  keep_evictions_of_one_policy(proposals);
  std::vector<model::Action> actions = strongest_per_target(snapshot, workloads, std::move(proposals));
  hold_moves(snapshot, workloads, settings, sharing, actions);
  const double cores = capacity_of(snapshot, settings.interference, model::Resource::cpu);
  for (model::Action& action : actions) {
    const model::Workload* workload = workloads.find(action);
    if (workload != nullptr) limit_rise(*workload, cores, settings.safety.be_quota_rise, action);
  }
  std::erase_if(actions, [&](const model::Action& action) {
    return !worth_doing(snapshot, action, workloads.find(action), settings.safety.min_change);
  });
  if (memory_follows) follow_pins(snapshot, settings.placement, actions);
  actions = order_actions(workloads, std::move(actions));
  for (model::Action& action : actions)
    action.decision = decision_id(snapshot.time + snapshot.wall_ahead_s, action);
  return actions;
}

}  // namespace berth::policies
