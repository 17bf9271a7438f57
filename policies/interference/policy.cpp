// SPDX-License-Identifier: Apache-2.0
#include "policies/interference/policy.h"

#include "model/count_text.h"
#include "model/json.h"
#include "policies/interference/best_effort.h"
#include "policies/interference/best_effort_cores.h"
#include "policies/interference/homeless.h"
#include "policies/interference/homes.h"
#include "policies/interference/others.h"
#include "policies/interference/priority.h"
#include "policies/interference/promised.h"
#include "policies/interference/queue.h"
#include "policies/interference/resize.h"
#include "policies/interference/unpinned.h"
#include "policies/interference/waiting.h"
#include "policies/interference/warnings.h"
#include "policies/level.h"
#include "policies/usage.h"
#include "policies/vcpus/pin_check.h"
#include "policies/vcpus/pool.h"
#include "policies/vcpus/score.h"
#include "policies/vcpus/search.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/core.h>

namespace berth::policies {

namespace {

constexpr const char* kAllOwned =
    "other programs own every vCPU that berth may use (berthctl status lists them)";

BestEffortDemand best_effort_demand(const Workloads& workloads, const InterferenceSettings& settings) {
  BestEffortDemand demand{.use_cores = 0,
                          .min_cpus = std::max(1, settings.be_min_cpus),
                          .avoid_siblings = settings.be_avoid_siblings};
  for (const model::Workload* workload : workloads) {
    if (workload->left_alone) continue;
    if (!latency_sensitive(workload->workload_class)) demand.use_cores += mean_cores(*workload);
  }
  return demand;
}

// The direction of a resize, and its region, for a pin that is good otherwise.
struct Fit {
  PinCheck standing;  // of a pin that stays as it is
  std::optional<Resize> resize;
};

Fit fit_of(const Node& node, const InterferenceSettings& settings, const Instance& instance, int tenant,
           int declared) {
  const model::Workload& workload = *instance.workload;
  const int held = static_cast<int>(workload.cpus.size());
  const int asked = std::max(declared, instance.grown);
  Fit fit{.standing = {}, .resize = {}};
  if (has_whole_cores(workload, settings)) {
    fit.standing = check_cores(node, settings, workload, declared);
    return fit;
  }
  Resize resize{.tenant = tenant, .held = node.positions(workload.cpus), .vcpus = asked, .region = -1};
  if (held > asked && asked > 0) {
    fit.standing.fault = check_vcpus(node, settings, workload);
    if (!fit.standing.fault.empty()) return fit;
    const auto regions = node.regions_for(asked, settings.allow_cross_socket);
    const auto keeps_enough = [&](int region) {
      return std::count_if(resize.held.begin(), resize.held.end(),
                           [&](int at) { return node.holds(region, at); }) >= asked;
    };
    if (!regions) {
      fit.standing.fault = regions.error().message();
    } else if (std::none_of(regions->begin(), regions->end(), keeps_enough)) {
      fit.standing.fault = "it does not lie in one domain";
    } else {
      fit.resize = std::move(resize);
    }
  } else if (held < asked && held >= declared) {
    fit.standing = check_place(node, settings, workload, held);
    if (!fit.standing.stands()) return fit;
    resize.region = fit.standing.region;
    fit.resize = std::move(resize);
  } else {
    fit.standing = check_pin(node, settings, workload, asked);
  }
  return fit;
}

// An instance whose pin stands, but best-effort work runs on its vCPUs.
struct Disturbed {
  int tenant = 0;
  int region = -1;
  std::vector<int> cpus;  // positions that it owns
};

// Places each of them on quieter vCPUs that none owns, and where it was if there are too few. `owners`: by
// position, those that keep their vCPUs.
void move_disturbed(const std::vector<Disturbed>& disturbed, const Waits& waits,
                    const InterferenceSettings& settings, const BestEffortDemand& demand,
                    std::vector<int>& owners, Queue& queue, Occupancy& occupancy) {
  const Node& node = occupancy.node();
  for (const Disturbed& it : disturbed) {
    PlacementRequest request = queue.requests[it.tenant];
    model::CpuSet free;
    for (const int cpu : waits.quieter.at(queue.instances[it.tenant].id)) {
      const int owner = owners[node.position(cpu)];
      if (owner < 0 || owner == it.tenant) free.insert(cpu);
    }
    for (const PlacementRequest& other : queue.requests) free -= other.told;
    request.allowed = request.allowed ? *request.allowed & free : free;
    WindowChoice choice = choose_window(occupancy, settings, demand, request);
    if (choice.region < 0) {
      occupancy.ask(it.tenant, static_cast<int>(it.cpus.size()));
      occupancy.place(it.tenant, it.region, it.cpus);
      continue;
    }
    for (const int position : it.cpus) owners[position] = -1;
    for (const int position : choice.cpus) owners[position] = it.tenant;
    occupancy.ask(it.tenant, static_cast<int>(choice.cpus.size()));
    queue.instances[it.tenant].settled =
        fmt::format("waits for vCPUs, as best-effort work runs on them: {}", choice.reason);
    occupancy.place(it.tenant, choice.region, std::move(choice.cpus));
  }
}

// An instance whose pin stands on cores of less capacity than others have.
struct Slow {
  int tenant = 0;
  int region = -1;
  std::vector<int> cpus;  // positions that it owns
};

// Places up to `most` of them on cores with more capacity that none owns, and the others where they were.
// `owners` as above. Returns the instances that move.
std::vector<std::string> move_to_faster(const std::vector<Slow>& slow, int most,
                                        const InterferenceSettings& settings, const BestEffortDemand& demand,
                                        std::vector<int>& owners, Queue& queue, Occupancy& occupancy) {
  const Node& node = occupancy.node();
  std::vector<std::string> moved;
  for (const Slow& it : slow) {
    const int kind = node.kind(it.cpus.front());
    model::CpuSet free;
    for (int position = 0; position < node.size(); ++position) {
      if (node.kind(position) < kind && owners[position] < 0) free.insert(node.cpu(position));
    }
    for (const PlacementRequest& other : queue.requests) free -= other.told;
    PlacementRequest request = queue.requests[it.tenant];
    request.allowed = request.allowed ? *request.allowed & free : free;
    WindowChoice choice;
    if (std::ssize(moved) < most && !request.allowed->empty())
      choice = choose_window(occupancy, settings, demand, request);
    if (choice.region < 0) {
      occupancy.place(it.tenant, it.region, it.cpus);
      continue;
    }
    for (const int position : it.cpus) owners[position] = -1;
    for (const int position : choice.cpus) owners[position] = it.tenant;
    Instance& instance = queue.instances[it.tenant];
    instance.settled = fmt::format("moved from {} to cores with more capacity: {}",
                                   node.cpu_set(it.cpus).to_string(), choice.reason);
    moved.push_back(instance.id);
    queue.requests[it.tenant].may_move = false;
    occupancy.place(it.tenant, choice.region, std::move(choice.cpus));
  }
  return moved;
}

// Places the others that ask for whole cores. The searches know nothing of these.
void place_whole_cores(const InterferenceSettings& settings, const BestEffortDemand& demand, Queue& queue,
                       Occupancy& occupancy) {
  for (int i = 0; i < static_cast<int>(queue.instances.size()); ++i) {
    PlacementRequest& request = queue.requests[i];
    if (!request.whole_cores || occupancy.placed(i)) continue;
    WindowChoice choice = choose_window(occupancy, settings, demand, request);
    queue.instances[i].settled = std::move(choice.reason);
    if (choice.region < 0) continue;
    request.vcpus = static_cast<int>(choice.cpus.size());
    occupancy.ask(i, request.vcpus);
    occupancy.place(i, choice.region, std::move(choice.cpus));
  }
}

// What the searches are to place. Whole cores that found no place stay without one.
std::vector<PlacementRequest> to_search(const Queue& queue, const Occupancy& standing) {
  std::vector<PlacementRequest> requests = queue.requests;
  for (int i = 0; i < static_cast<int>(requests.size()); ++i) {
    if (requests[i].whole_cores && !standing.placed(i)) requests[i].allowed = model::CpuSet();
  }
  return requests;
}

// Places the instances whose pin stands, the oldest first: of two that overlap the older keeps its place.
// Then places those whose pin stands except for its size, and those whose admission told a place. Of the
// first, those may move that do not cool down. By the search "optimal" some of these move to faster cores at
// once, and are added to `faster`.
Occupancy keep_standing(const Node& node, const InterferenceSettings& settings,
                        const BestEffortDemand& demand, double now, double repin_cooldown_s,
                        const Waits& waits, Queue& queue, std::vector<std::string>& faster) {
  std::vector<Tenant> tenants;
  for (const PlacementRequest& request : queue.requests) {
    tenants.push_back({.vcpus = request.vcpus,
                       .pressure = request.pressure,
                       .model = request.model,
                       .region = -1,
                       .cpus = {}});
  }
  Occupancy occupancy(node, std::move(tenants));
  std::vector<Resize> resizes;
  std::vector<Disturbed> disturbed;
  std::vector<Slow> slow;
  std::vector<int> owners(static_cast<std::size_t>(node.size()), -1);
  int owned = 0;
  for (int i = 0; i < static_cast<int>(queue.instances.size()); ++i) {
    Instance& instance = queue.instances[i];
    if (instance.workload == nullptr || instance.workload->cpus.empty() || instance.workload->shares)
      continue;
    Fit fit = fit_of(node, settings, instance, i, queue.requests[i].vcpus);
    if (!fit.resize && !fit.standing.stands()) {
      instance.fault = fit.standing.fault;
      continue;
    }
    std::vector<int> cpus = node.positions(instance.workload->cpus);
    const int keeps = fit.resize ? owned_by({*fit.resize}) : static_cast<int>(cpus.size());
    const auto taken = std::find_if(cpus.begin(), cpus.end(), [&](int at) { return owners[at] >= 0; });
    if (taken != cpus.end()) {
      instance.fault =
          fmt::format("vCPU {} belongs to {}", node.cpu(*taken), queue.instances[owners[*taken]].id);
      continue;
    }
    if (node.usable_count() - owned - keeps < demand.min_cpus) {
      instance.fault = fmt::format("it leaves fewer than {} to others (be_min_cpus)",
                                   model::count_text(demand.min_cpus, "vCPU"));
      continue;
    }
    owned += keeps;
    if (queue.requests[i].whole_cores) queue.requests[i].vcpus = keeps;
    for (const int position : cpus) owners[position] = i;
    if (fit.resize) {
      resizes.push_back(std::move(*fit.resize));
    } else if (waits.quieter.count(instance.id) > 0 && keeps == queue.requests[i].vcpus &&
               !queue.requests[i].preferred) {
      disturbed.push_back({.tenant = i, .region = fit.standing.region, .cpus = std::move(cpus)});
    } else {
      occupancy.ask(i, keeps);
      // A late task that is grown stays where it is, and so does an instance near its GPUs.
      PlacementRequest& request = queue.requests[i];
      const bool cools = cools_down(instance.workload->pinned_at, now, repin_cooldown_s);
      request.may_move = !cools && keeps == request.vcpus && !request.preferred && !request.whole_cores;
      if (settings.search == Search::optimal && request.may_move && node.kind(cpus.front()) > 0) {
        slow.push_back({.tenant = i, .region = fit.standing.region, .cpus = std::move(cpus)});
      } else {
        occupancy.place(i, fit.standing.region, std::move(cpus));
      }
    }
  }
  move_disturbed(disturbed, waits, settings, demand, owners, queue, occupancy);
  faster = move_to_faster(slow, settings.max_moves - static_cast<int>(waits.turns.size()), settings, demand,
                          owners, queue, occupancy);
  const auto texts = resize_pins(resizes, queue.requests, settings, demand, occupancy);
  for (std::size_t i = 0; i < resizes.size(); ++i) queue.instances[resizes[i].tenant].settled = texts[i];
  const auto promised = keep_promises(queue.requests, settings, demand, occupancy);
  for (std::size_t i = 0; i < promised.size(); ++i) {
    if (!promised[i].empty()) queue.instances[i].settled = promised[i];
  }
  place_whole_cores(settings, demand, queue, occupancy);
  return occupancy;
}

// Running instances that keep their pin, perhaps with more or fewer vCPUs, and the faults of the other pins.
struct Kept {
  Waits waits;
  Queue queue;
  std::vector<model::WorkloadFinding> unplaceable;
  std::vector<Homeless> homeless;
  std::vector<std::string> faster;
  Occupancy standing;
};

// Those that had their turn and are where they were.
std::set<std::string> turns_in_vain(const Kept& kept) {
  std::set<std::string> in_vain = kept.waits.turns;
  for (int i = 0; i < static_cast<int>(kept.queue.instances.size()); ++i) {
    const Instance& instance = kept.queue.instances[i];
    if (!kept.standing.placed(i) || instance.workload == nullptr) continue;
    if (kept.standing.node().cpu_set(kept.standing.tenant(i).cpus) != instance.workload->cpus)
      in_vain.erase(instance.id);
  }
  return in_vain;
}

std::string pin_reason(const Instance& instance, const std::string& why_there) {
  std::string reason;
  if (!instance.fault.empty()) {
    reason =
        fmt::format("pin {} is no longer valid: {}; ", instance.workload->cpus.to_string(), instance.fault);
  }
  return reason + fmt::format("{}; pressure {:.3g} ({}), model {} k1 {:.3g} k2 {:.3g} ({})", why_there,
                              instance.pressure.value, instance.pressure.source,
                              model::to_string(instance.model.origin), instance.model.model.k1,
                              instance.model.model.k2, instance.model.reason);
}

void propose_for(const Instance& instance, const Node& node, const Tenant& tenant, const std::string& reason,
                 std::vector<Homeless>& homeless, InterferenceProposal& proposal) {
  const bool placed = tenant.region >= 0;
  if (!placed) proposal.findings.unplaceable.push_back({instance.id, reason});
  if (instance.workload == nullptr) return;
  if (!placed) {
    homeless.push_back({instance.workload, reason, instance.fault});
    return;
  }
  const model::CpuSet& present = instance.workload->cpus;
  model::CpuSet cpus = node.cpu_set(tenant.cpus);
  if (cpus == present) return;
  proposal.actions.push_back(
      {.what = model::Set{.workload = instance.id, .value = std::move(cpus)},
       .policy = "interference",
       .decision = {},
       .reason = pin_reason(instance, instance.settled.empty() ? reason : instance.settled)});
}

void unpin_undeclared(const Workloads& workloads, const InterferenceSettings& settings,
                      std::vector<model::Action>& actions) {
  for (const model::Workload* workload : workloads) {
    if (!latency_sensitive(workload->workload_class) || workload->cpus.empty()) continue;
    if ((workload->vcpus || is_shared(*workload, settings)) && !workload->left_alone) continue;
    actions.push_back(
        {.what = model::GiveBack{.workload = workload->id, .attribute = model::Attribute::cpus},
         .policy = "interference",
         .decision = {},
         .reason = fmt::format("pin {} is no longer valid: {}", workload->cpus.to_string(),
                               workload->left_alone.value_or("it declares no vcpus any more"))});
  }
}

void report_scores(const Queue& queue, const Placement& placement, const NodeScore& score,
                   model::InterferenceFindings& findings) {
  const Node& node = placement.occupancy.node();
  findings.score_node = score.node;
  findings.lower_bound = placement.lower_bound;
  findings.gap = placement.gap;
  findings.search_reason = placement.summary;
  for (const int i : placement.moved) findings.moved.push_back(queue.instances[i].id);
  for (int domain = 0; domain < node.domain_count(); ++domain) {
    findings.domains[node.region(domain).id] = score.domains[domain];
  }
  for (int i = 0; i < static_cast<int>(queue.instances.size()); ++i) {
    if (!placement.occupancy.placed(i)) continue;
    const Instance& instance = queue.instances[i];
    findings.instances.emplace(instance.id,
                               model::PlacedInstance{.cpus = node.cpu_set(placement.occupancy.tenant(i).cpus),
                                                     .cpu_sc = score.tenants[i].cpu_sc,
                                                     .cpu_ss = score.tenants[i].cpu_ss,
                                                     .score = score.tenants[i].score,
                                                     .pressure = instance.pressure.value,
                                                     .model = instance.model.origin,
                                                     .model_reason = instance.model.reason});
  }
}

// The homes of services without vCPUs of their own, and the cores that best-effort work has beside them.
std::map<int, model::BestEffortCores> plan_shared(
    const model::Snapshot& snapshot, const InterferenceSettings& settings, const BestEffortDemand& demand,
    const model::CpuSet& off_limits, const std::set<std::string>& wider, const Hold& hold,
    const std::vector<SharedRequest>& requests, const Occupancy& occupancy, InterferenceProposal& proposal) {
  const model::CpuSet reserved =
      settings.reserved_cpus | slower_cpus_to_leave(occupancy, settings.reserved_cpus | off_limits, requests);
  const model::CpuSet withheld = reserved | off_limits;
  auto& homes = proposal.findings.shared;
  homes = choose_homes({.occupancy = occupancy,
                        .withheld = withheld,
                        .off_limits = off_limits,
                        .best_effort_cores = demand.use_cores,
                        .wider = wider,
                        .hold = hold,
                        .between_ticks = settings.between_ticks},
                       requests);
  pin_to_homes(requests, homes, proposal.actions);
  return best_effort_cores(occupancy, demand, use_by_domain(occupancy, withheld, requests, homes), reserved,
                           snapshot.best_effort_cores, snapshot.time, !settings.between_ticks);
}

// By instances that run.
model::CpuSet owned_now(const Queue& queue, const Occupancy& occupancy) {
  model::CpuSet owned;
  for (int i = 0; i < static_cast<int>(queue.instances.size()); ++i) {
    if (queue.instances[i].workload != nullptr && occupancy.placed(i))
      owned |= occupancy.node().cpu_set(occupancy.tenant(i).cpus);
  }
  return owned;
}

bool nothing_is_left_to_services(const model::Snapshot& snapshot) {
  return !snapshot.owned_cpus.empty() &&
         snapshot.topology.usable().is_subset_of(of_any_owner(snapshot.owned_cpus));
}

}  // namespace

InterferenceProposal propose_pins(const OrderedSnapshot& ordered, const InterferenceSettings& settings,
                                  const GrownRequests& grown, const PendingBins& bins,
                                  double repin_cooldown_s) {
  const model::Snapshot& snapshot = ordered.snapshot;
  const Workloads& workloads = ordered.workloads;
  InterferenceProposal proposal;
  proposal.findings.weighting = to_string(settings.weighting);
  proposal.findings.search = to_string(settings.search);

  const Node node = node_to_plan(snapshot, settings);
  const BestEffortDemand demand = best_effort_demand(workloads, settings);
  const Waits asking = find_waits(snapshot, workloads, node, settings, grown, repin_cooldown_s);
  const auto keep = [&](const std::set<std::string>& in_vain) {
    Waits waits = with_turns(asking, in_vain, settings.max_moves);
    waits.grown.insert(grown.begin(), grown.end());
    std::vector<model::WorkloadFinding> unplaceable;
    std::vector<Homeless> homeless;
    Queue queue = make_queue(snapshot, settings, workloads, waits.grown, bins, unplaceable, homeless);
    std::vector<std::string> faster;
    Occupancy standing =
        keep_standing(node, settings, demand, snapshot.time, repin_cooldown_s, waits, queue, faster);
    return Kept{std::move(waits),    std::move(queue),  std::move(unplaceable),
                std::move(homeless), std::move(faster), std::move(standing)};
  };
  // A turn that changes nothing goes to the next one that waits.
  std::set<std::string> in_vain;
  Kept kept = keep(in_vain);
  for (auto more = turns_in_vain(kept); !more.empty(); more = turns_in_vain(kept)) {
    in_vain.merge(more);
    kept = keep(in_vain);
  }
  auto& [waits, queue, unplaceable, homeless, faster, standing] = kept;
  proposal.findings.unplaceable = std::move(unplaceable);
  // Instances that wait come first: all moves of a tick count.
  InterferenceSettings rest = settings;
  rest.max_moves -= static_cast<int>(waits.turns.size() + faster.size());
  std::vector<PlacementRequest> requests = to_search(queue, standing);
  const PlacementProblem problem{.node = node,
                                 .settings = rest,
                                 .best_effort = demand,
                                 .requests = std::move(requests),
                                 .standing = std::move(standing)};
  Placement placement = search_function(settings.search)(problem);
  for (int i = 0; i < static_cast<int>(queue.instances.size()); ++i) {
    if (queue.requests[i].whole_cores && !placement.occupancy.placed(i))
      placement.reasons[i] = std::exchange(queue.instances[i].settled, {});
  }
  for (int i = 0; i < static_cast<int>(queue.instances.size()); ++i) {
    if (queue.instances[i].workload != nullptr && !placement.occupancy.placed(i))
      placement.reasons[i] += reserved_text(node);
  }
  if (nothing_is_left_to_services(snapshot)) {
    for (int i = 0; i < static_cast<int>(queue.instances.size()); ++i) {
      if (!placement.occupancy.placed(i)) placement.reasons[i] = kAllOwned;
    }
  }

  for (int i = 0; i < static_cast<int>(queue.instances.size()); ++i) {
    propose_for(queue.instances[i], node, placement.occupancy.tenant(i), placement.reasons[i], homeless,
                proposal);
  }
  find_warnings(workloads, waits.grown, queue, placement, settings, demand, snapshot.time, proposal.findings);
  const model::CpuSet of_others = open_to_all(snapshot.owned_cpus);
  keep_off_owned(std::move(homeless), node, owned_by_instances(placement.occupancy) | of_others,
                 snapshot.time, proposal);
  const Hold hold{.now = snapshot.time, .cooldown_s = repin_cooldown_s};
  const auto beside_shared = plan_shared(snapshot, settings, demand, of_others | node.reserved(), waits.wider,
                                         hold, queue.shared, placement.occupancy, proposal);
  proposal.findings.absent_reserved = settings.reserved_cpus - snapshot.topology.all();
  proposal.findings.shared_reserved = strictly_reserved(snapshot, settings) - node.reserved();
  unpin_undeclared(workloads, settings, proposal.actions);
  report_scores(queue, placement, evaluate(placement.occupancy, settings.weighting, demand),
                proposal.findings);
  auto& moved = proposal.findings.moved;
  moved.insert(moved.end(), faster.begin(), faster.end());
  std::sort(moved.begin(), moved.end());
  proposal.findings.score_unpinned = score_unpinned(placement.occupancy, settings.weighting, demand);
  proposal.findings.waiting = std::move(waits.findings);
  confine_best_effort(placement.occupancy, demand, workloads, of_others, beside_shared, hold, proposal);
  confine_others(snapshot, settings.others, owned_now(queue, placement.occupancy), hold, proposal);
  propose_priorities(snapshot, settings.best_effort_priority, hold, proposal);
  std::sort(proposal.findings.unplaceable.begin(), proposal.findings.unplaceable.end(),
            [](const auto& a, const auto& b) { return a.workload < b.workload; });
  return proposal;
}

}  // namespace berth::policies
