// SPDX-License-Identifier: Apache-2.0
#include "policies/arbiter.h"

#include "policies/action_order.h"
#include "policies/decision_id.h"
#include "policies/interference/standing.h"
#include "policies/memory_nodes.h"
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

enum class Attribute {
  life,
  cpus,
  cpu_quota,
  memory_high,
  memory_nodes,
  cpu_idle,
  advertised_cpu,
  advertised_memory
};
using Target = std::pair<std::string, Attribute>;

Target target_of(const model::Action& action) {
  struct Visitor {
    Attribute operator()(const model::PinAction&) const { return Attribute::cpus; }
    Attribute operator()(const model::UnpinAction&) const { return Attribute::cpus; }
    Attribute operator()(const model::SetCpuQuotaAction&) const { return Attribute::cpu_quota; }
    Attribute operator()(const model::SetMemoryHighAction&) const { return Attribute::memory_high; }
    Attribute operator()(const model::SetMemoryNodesAction&) const { return Attribute::memory_nodes; }
    Attribute operator()(const model::SetCpuIdleAction&) const { return Attribute::cpu_idle; }
    Attribute operator()(const model::EvictAction&) const { return Attribute::life; }
    Attribute operator()(const model::AdvertiseAction& it) const {
      return it.resource == model::Resource::cpu ? Attribute::advertised_cpu : Attribute::advertised_memory;
    }
  };
  const std::string* workload = action.workload();
  return {workload == nullptr ? std::string() : *workload, std::visit(Visitor{}, action.what)};
}

// Strongest first.
enum class Precedence { evict, grow, reclaim, pin, restore, advertise };

template <typename Limit>
Precedence limit_precedence(const std::optional<Limit>& wanted, const std::optional<Limit>& present,
                            model::WorkloadClass workload_class) {
  const bool raises = !wanted || (present && *wanted > *present);
  if (workload_class == model::WorkloadClass::latency_sensitive) {
    return raises ? Precedence::grow : Precedence::restore;
  }
  return raises ? Precedence::restore : Precedence::reclaim;
}

// The change shows the purpose of an action. More for a latency-sensitive workload is growth, less for a
// best-effort one is reclaiming. The reverse of either is giving back.
Precedence precedence_of(const model::Action& action, const model::Workload* workload) {
  if (std::holds_alternative<model::EvictAction>(action.what)) return Precedence::evict;
  if (workload == nullptr) return Precedence::advertise;
  if (const auto* quota = std::get_if<model::SetCpuQuotaAction>(&action.what)) {
    return limit_precedence(quota->cpu_quota_cores, workload->cpu_quota_cores, workload->workload_class);
  }
  if (const auto* high = std::get_if<model::SetMemoryHighAction>(&action.what)) {
    return limit_precedence(high->memory_high_bytes, workload->memory_high_bytes, workload->workload_class);
  }
  return Precedence::pin;
}

// Of two limits that take memory from a best-effort workload, the lower one also serves the other's purpose.
std::uint64_t taking_limit(const model::Action& action, Precedence precedence) {
  const auto* high = std::get_if<model::SetMemoryHighAction>(&action.what);
  return precedence == Precedence::reclaim && high != nullptr ? high->memory_high_bytes.value_or(0) : 0;
}

std::vector<model::Action> strongest_per_target(const WorkloadIndex& workloads,
                                                std::vector<model::Action> proposals) {
  const auto rank = [&](const model::Action& action) {
    const Precedence precedence = precedence_of(action, workloads.find(action));
    return std::make_tuple(precedence, taking_limit(action, precedence), action.policy,
                           std::string(action.kind()), value_text(action), action.reason);
  };
  std::map<Target, model::Action> chosen;
  for (model::Action& action : proposals) {
    if (action.workload() != nullptr && workloads.find(action) == nullptr) continue;
    const auto [held, added] = chosen.try_emplace(target_of(action), action);
    if (!added && rank(action) < rank(held->second)) held->second = std::move(action);
  }
  std::vector<model::Action> actions;
  actions.reserve(chosen.size());
  for (auto& [target, action] : chosen) actions.push_back(std::move(action));
  return actions;
}

// A best-effort quota rises by be_quota_rise of the host a tick. A quota as large as the host limits nothing.
// So a rise beyond that, and lifting it, counts as a rise to the whole host.
void limit_rise(const model::Workload& workload, const model::Topology& topology, double be_quota_rise,
                model::Action& action) {
  auto* quota = std::get_if<model::SetCpuQuotaAction>(&action.what);
  if (quota == nullptr || workload.workload_class != model::WorkloadClass::best_effort) return;
  if (!workload.cpu_quota_cores) return;
  const auto node_cores = static_cast<double>(topology.usable().size());
  const double most = *workload.cpu_quota_cores + be_quota_rise * node_cores;
  if (std::min(quota->cpu_quota_cores.value_or(node_cores), node_cores) <= most) return;
  quota->cpu_quota_cores = most;
  action.reason += fmt::format("; held to +{:.3g} cores this tick (be_quota_rise {:.3g} of {} vCPUs)",
                               be_quota_rise * node_cores, be_quota_rise, node_cores);
}

template <typename Limit>
bool changes(const std::optional<Limit>& wanted, const std::optional<Limit>& present, double min_change) {
  if (!wanted || !present) return wanted.has_value() != present.has_value();
  const auto before = static_cast<double>(*present);
  const double difference = std::abs(static_cast<double>(*wanted) - before);
  return difference > 0 && difference >= min_change * before;
}

// Whether a limit comes nearer to its original. Such a step is never too small: else a changed limit could
// stay changed.
template <typename Limit>
bool goes_back(const std::optional<Limit>& wanted, const std::optional<Limit>& present,
               const std::optional<Limit>& original) {
  if (wanted == original) return true;
  if (!wanted || !present) return false;
  if (!original) return *wanted > *present;
  return (*present < *wanted && *wanted < *original) || (*original < *wanted && *wanted < *present);
}

bool worth_doing(const model::Action& action, const model::Workload* workload, double min_change) {
  if (workload == nullptr) return true;
  if (const auto* pin = std::get_if<model::PinAction>(&action.what)) {
    return !pin->cpus.empty() && pin->cpus != workload->cpus;
  }
  if (std::holds_alternative<model::UnpinAction>(action.what)) return !workload->cpus.empty();
  const auto& original = workload->original;
  if (const auto* quota = std::get_if<model::SetCpuQuotaAction>(&action.what)) {
    const auto& present = workload->cpu_quota_cores;
    const bool back = original && goes_back(quota->cpu_quota_cores, present, original->cpu_quota_cores);
    return changes(quota->cpu_quota_cores, present, back ? 0 : min_change);
  }
  if (const auto* high = std::get_if<model::SetMemoryHighAction>(&action.what)) {
    const auto& present = workload->memory_high_bytes;
    const bool back = original && goes_back(high->memory_high_bytes, present, original->memory_high_bytes);
    return changes(high->memory_high_bytes, present, back ? 0 : min_change);
  }
  if (const auto* priority = std::get_if<model::SetCpuIdleAction>(&action.what))
    return priority->idle != workload->cpu_idle;
  return true;
}

// Pins that may not move yet: those that stand and changed less than the cool-down ago.
class CoolDown {
 public:
  CoolDown(const model::Snapshot& snapshot, const PolicySettings& settings,
           const std::set<std::string>& sharing)
      : topology_(snapshot.topology), settings_(settings), now_(snapshot.time) {
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
    if (workload.shares || !cools_down(workload, now_, settings_.safety.repin_cooldown_s)) return false;
    if (workload.cpus.is_subset_of(wanted) || wanted.is_subset_of(workload.cpus)) return false;
    if (workload.cpus.intersects(contested_)) return false;
    if (!node_) node_.emplace(topology_, settings_.interference.shared_domain);
    return check_pin(*node_, settings_.interference, workload).stands();
  }

 private:
  const model::Topology& topology_;
  std::optional<Node> node_;  // made at the first question
  const PolicySettings& settings_;
  double now_;
  model::CpuSet contested_;  // vCPUs that more than one latency-sensitive pin holds
};

// Drops moves within the cool-down. Then drops each latency-sensitive pin that needs the vCPUs kept so.
// Pins of best-effort work, and of services that share vCPUs as well, stay off them.
void hold_moves(const model::Snapshot& snapshot, const WorkloadIndex& workloads,
                const PolicySettings& settings, const std::set<std::string>& sharing,
                std::vector<model::Action>& actions) {
  const auto moves = [](const model::Action& it) {
    return std::holds_alternative<model::PinAction>(it.what);
  };
  if (std::none_of(actions.begin(), actions.end(), moves)) return;
  CoolDown cool_down(snapshot, settings, sharing);
  const auto shares = [&](const model::Workload& workload) {
    return workload.workload_class == model::WorkloadClass::best_effort || sharing.contains(workload.id);
  };
  model::CpuSet kept;
  const auto drop_if = [&](auto must_stay) {
    return std::erase_if(actions, [&](const model::Action& action) {
             const auto* pin = std::get_if<model::PinAction>(&action.what);
             if (pin == nullptr) return false;
             const model::Workload& workload = *workloads.find(action);
             if (shares(workload)) return false;
             if (!must_stay(workload, pin->cpus)) return false;
             kept |= workload.cpus;
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
    auto* pin = std::get_if<model::PinAction>(&action.what);
    if (pin == nullptr) continue;
    if (shares(*workloads.find(action))) pin->cpus -= kept;
  }
}

// Keeps the evictions of one policy: they may meet the need of the other one, too. The policy's name decides,
// as elsewhere.
void keep_evictions_of_one_policy(std::vector<model::Action>& actions) {
  const model::Action* kept = nullptr;
  for (const model::Action& action : actions) {
    if (!std::holds_alternative<model::EvictAction>(action.what)) continue;
    if (kept == nullptr || action.policy < kept->policy) kept = &action;
  }
  if (kept == nullptr) return;
  const std::string policy = kept->policy;
  std::erase_if(actions, [&](const model::Action& action) {
    return std::holds_alternative<model::EvictAction>(action.what) && action.policy != policy;
  });
}

}  // namespace

std::vector<model::Action> arbitrate(const model::Snapshot& snapshot, std::vector<model::Action> proposals,
                                     const PolicySettings& settings, bool memory_follows,
                                     const std::set<std::string>& sharing) {
  const WorkloadIndex workloads(snapshot);
  std::vector<model::Action> actions = strongest_per_target(workloads, std::move(proposals));
  keep_evictions_of_one_policy(actions);
  hold_moves(snapshot, workloads, settings, sharing, actions);
  for (model::Action& action : actions) {
    const model::Workload* workload = workloads.find(action);
    if (workload != nullptr) limit_rise(*workload, snapshot.topology, settings.safety.be_quota_rise, action);
  }
  std::erase_if(actions, [&](const model::Action& action) {
    return !worth_doing(action, workloads.find(action), settings.safety.min_change);
  });
  if (memory_follows) follow_pins(snapshot, settings.placement, actions);
  actions = order_actions(workloads, std::move(actions));
  for (model::Action& action : actions)
    action.decision = decision_id(snapshot.time + snapshot.wall_ahead_s, action);
  return actions;
}

}  // namespace berth::policies
