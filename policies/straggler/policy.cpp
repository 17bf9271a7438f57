// SPDX-License-Identifier: Apache-2.0
#include "policies/straggler/policy.h"

#include "policies/level.h"
#include "policies/replacements.h"
#include "policies/straggler/decision.h"
#include "policies/straggler/domain.h"
#include "policies/straggler/progress.h"
#include "policies/straggler/redundancy.h"
#include "policies/straggler/returns.h"
#include "policies/straggler/round.h"
#include "policies/straggler/task.h"
#include "policies/victim.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/core.h>

namespace berth::policies {

namespace {

using model::Resource;
using Kind = model::LimitMove::Kind;

// This share of the host stays idle for the next straggler [HUST].
constexpr double kReturnMargin = 0.05;

std::unique_ptr<model::StragglerTask> task_of(const model::Workload& workload, double now,
                                              const StragglerSettings& settings) {
  auto task = judge(workload, now, settings);
  return task ? std::make_unique<model::StragglerTask>(*std::move(task)) : nullptr;
}

std::vector<Member> members_of(const OrderedSnapshot& ordered, const PolicySettings& settings) {
  const model::Snapshot& snapshot = ordered.snapshot;
  const auto held = replacements_to_hold(snapshot, settings.eviction.hold_s);
  std::vector<Member> members;
  const double cores = capacity_of(snapshot, settings.interference, Resource::cpu);
  const double bytes = capacity_of(snapshot, settings.interference, Resource::memory);
  members.reserve(snapshot.workloads.size());
  for (const model::Workload* workload : ordered.workloads) {
    Member& member = members.emplace_back();
    member.workload = workload;
    member.task = task_of(*workload, snapshot.time, settings.straggler);
    member.shares = {share_of(*workload, Resource::cpu, cores), share_of(*workload, Resource::memory, bytes)};
    if (!is_use_current(*workload, snapshot.time)) {
      // It may need all that it has.
      for (Share& share : member.shares) share.max_use = share.last_use = std::nullopt;
    }
    member.held = held.contains(workload->id);
  }
  return members;
}

// A pending workload's request for a resource, and the room made for it.
struct Awaited {
  std::string id;
  double asked = 0;
  double room = 0;
};

std::vector<Awaited> awaited_in(const model::Snapshot& snapshot, Resource resource) {
  const bool cpu = resource == Resource::cpu;
  std::vector<Awaited> list;
  for (const model::PendingWorkload& pending : snapshot.pending) {
    if (pending.workload_class != model::WorkloadClass::latency_sensitive) continue;
    const double asked = cpu ? pending.vcpus.value_or(0) : static_cast<double>(pending.memory_request_bytes);
    const double room = cpu ? pending.room_cpu_cores : static_cast<double>(pending.room_memory_bytes);
    list.push_back({.id = pending.id, .asked = asked, .room = std::min(asked, room)});
  }
  return list;
}

// A lender that got its share back has taken it from the room made, the last request's first.
void lose_room(std::vector<Awaited>& awaited, double recalled) {
  for (auto it = awaited.rbegin(); it != awaited.rend(); ++it) {
    const double lost = std::min(it->room, recalled);
    it->room -= lost;
    recalled -= lost;
  }
}

void gain_room(std::vector<Awaited>& awaited, double left) {
  for (Awaited& it : awaited) {
    const double gained = std::clamp(it.asked - it.room, 0.0, std::max(0.0, left));
    it.room += gained;
    left -= gained;
  }
}

double recalled_amount(const Round& round) {
  double sum = 0;
  for (const model::LimitMove& move : round.out.findings.moves) {
    if (move.kind != Kind::recall) continue;
    sum += round.resource == Resource::cpu ? move.amount.cpu_cores
                                           : static_cast<double>(move.amount.memory_bytes);
  }
  return sum;
}

// Counts the amounts that go back this tick, and the room made, as not idle.
double idle_amount(const Round& round, double room) {
  const std::size_t index = round.index();
  double allocated = room;
  for (const Member& member : round.members) {
    // It has vCPUs that are no part of the capacity.
    if (round.resource == Resource::cpu && member.workload->left_alone) continue;
    allocated += round.changed(member) ? member.counts[index] : member.shares[index].claimed();
  }
  return std::max(0.0, round.capacity - allocated);
}

// A straggler and its lack of one resource.
struct Wish {
  Member* member = nullptr;
  Extension extension;
};

// Stragglers that ask for more now. The earliest deadline comes first and gets the domain's free vCPUs first.
std::vector<Member*> claimants(const Round& round) {
  std::vector<Member*> list;
  for (Member& member : round.members) {
    if (member.straggles() && !round.changed(member) &&
        has_evidence(*member.workload, *member.task, round.now))
      list.push_back(&member);
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const Member* a, const Member* b) { return *a->task->deadline < *b->task->deadline; });
  return list;
}

std::vector<Wish> wishes_of(Round& round, Domains& domains) {
  const bool cpu = round.resource == Resource::cpu;
  std::vector<Wish> wishes;
  for (Member* member : claimants(round)) {
    model::StragglerTask& task = *member->task;
    const Share& share = round.share(*member);
    const double most = cpu ? domains.most(*member->workload) : round.capacity;
    Extension extension = extension_of(share, round.resource, *task.growth, most, round.min_change);
    if (cpu && extension.amount > 0)
      domains.claim(*member->workload, vcpus_for(*share.allocation + extension.amount));
    if (!extension.note.empty()) task.reason += "; " + extension.note;
    add(task.extension, round.resource, extension.amount);
    wishes.push_back({.member = member, .extension = std::move(extension)});
  }
  return wishes;
}

double memory_floor(double use) { return std::max(kLeastMemoryBytes, std::ceil(use * kMemoryHeadroom)); }

// The lowest limit for preempting a best-effort task; nullopt where it is not known.
std::optional<double> preempt_floor(const Round& round, const Share& share) {
  if (round.resource == Resource::cpu) return std::max(round.settings.preempt_floor_cores, kLeastQuotaCores);
  if (!share.last_use) return std::nullopt;
  return memory_floor(*share.last_use);
}

double reclaim_floor(const Round& round, const Share& share) {
  if (round.resource == Resource::cpu) return kLeastQuotaCores;
  return memory_floor(share.max_use.value_or(0));
}

// Why a task that leaves a part unused lends nothing all the same; empty where it lends.
std::string why_it_keeps(const Round& round, const Member& member) {
  if (round.share(member).fixed) {
    return fmt::format("berth cannot change its {}",
                       round.resource == Resource::cpu ? "CPU quota" : "memory.high");
  }
  // Its use comes in phases that the window does not show. Memory that it lacks costs it more than a quota.
  if (round.resource == Resource::memory && member.workload->pressed_at) {
    return fmt::format("it needed its share back {:.0f} s ago, and lends no memory again",
                       round.now - *member.workload->pressed_at);
  }
  // A lender that wanted its share back keeps it for a while. Its use over the window need not show why. A
  // task that works in short bursts would lend and get back in turns.
  if (!is_over(member.workload->pressed_at, round.now, round.settings.restore_hold_s)) {
    return fmt::format("it needed its share back {:.1f} s ago, and lends nothing for {:.4g} s (restore_hold)",
                       round.now - *member.workload->pressed_at, round.settings.restore_hold_s);
  }
  return {};
}

// The amount that a best-effort task can lend. Notes it where it is not 0, and the reason where it lends none
// of it.
double reclaimable_of(Round& round, const Member& member) {
  auto found = redundancy_of(round.share(member), round.resource, round.settings.expected_utilisation);
  if (!found) return 0;
  model::StragglerFindings& findings = round.out.findings;
  const std::string& id = member.workload->id;
  if (found->reclaimable > 0) {
    if (std::string reason = why_it_keeps(round, member); !reason.empty()) {
      found->reclaimable = 0;
      findings.keeping[id] = std::move(reason);
    }
  }
  model::RedundantTask& task = findings.redundant[id];
  if (round.resource == Resource::cpu) {
    task.cpu =
        model::RedundantCpu{.utilisation = found->utilisation, .reclaimable_cores = found->reclaimable};
  } else {
    task.memory = model::RedundantMemory{.utilisation = found->utilisation,
                                         .reclaimable_bytes = static_cast<std::uint64_t>(found->reclaimable)};
  }
  return found->reclaimable;
}

// Notes which best-effort tasks are redundant. If anything is `needed`, lists the sources with their amounts.
std::vector<Source> sources_of(Round& round, bool needed, std::vector<Member*>& whose) {
  std::vector<Source> sources;
  for (Member& member : round.members) {
    // A task that gets its share back this tick lends nothing.
    if (member.latency_sensitive() || round.changed(member) || member.held) continue;
    const Share& share = round.share(member);
    const double reclaimable = reclaimable_of(round, member);
    if (share.fixed || !needed) continue;
    Source source{.id = member.workload->id,
                  .priority = member.workload->priority,
                  .use = share.mean_use.value_or(0),
                  .reclaimable = reclaimable,
                  .reclaim_most = 0,
                  .preempt_most = 0};
    const double present = share.counted();
    if (source.reclaimable > 0) {
      source.reclaim_most = std::clamp(present - reclaim_floor(round, share), 0.0, source.reclaimable);
    }
    if (const auto floor = preempt_floor(round, share)) source.preempt_most = std::max(0.0, present - *floor);
    sources.push_back(source);
    whose.push_back(&member);
  }
  return sources;
}

void take(Round& round, const Division& division, double idle, const std::vector<Source>& sources,
          const std::vector<Member*>& whose) {
  const std::string need = fmt::format("{} needed, {} idle", round.text(division.needed), round.text(idle));
  for (const Taken& taken : division.taken) {
    const Source& source = sources[taken.source];
    Member& member = *whose[taken.source];
    const Share& share = round.share(member);
    const double limit = share.counted() - taken.amount;
    std::string reason = fmt::format("{} {} of {}: ", taken.preempted ? "gives up" : "lends",
                                     round.text(taken.amount), round.text(share.counted()));
    if (taken.preempted) {
      reason += fmt::format("{}, and what others lend is not enough; priority {}, uses {}", need,
                            source.priority, round.text(source.use));
    } else {
      reason += fmt::format("{}; it uses {} at most, {:.3g} of what it holds (expected_utilisation {:.3g})",
                            need, round.text(share.max_use.value_or(0)),
                            share.max_use.value_or(0) / share.counted(), round.settings.expected_utilisation);
    }
    round.note(taken.preempted ? Kind::preempt : Kind::reclaim, member, taken.amount, reason);
    round.set(member, limit, reason);
  }
}

void grant(Round& round, const std::vector<Wish>& wishes, const std::vector<double>& grants) {
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    const Extension& extension = wishes[i].extension;
    const double granted = grants[i];
    Member& member = *wishes[i].member;
    model::StragglerTask& task = *member.task;
    const Share& share = round.share(member);
    add(task.granted, round.resource, granted);
    if (extension.amount > kNothing) {
      task.reason += fmt::format("; it gets {} of {:.3g} times its {}: {} more",
                                 granted < extension.amount ? "a part" : "all", *task.growth,
                                 round.text(*share.allocation), round.text(granted));
    }
    if (granted > kNothing && share.limit) round.set(member, *share.limit + granted, task.reason);
  }
}

// Lists the lack of every straggler that this host does not meet.
void relocate(const Round& round, const std::vector<Wish>& wishes, const std::vector<double>& grants,
              std::map<std::string, model::Resources>& lacks) {
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    const double missing = wishes[i].extension.wish - grants[i];
    const double least = round.resource == Resource::cpu ? kNothing : 1.0;
    if (missing >= least) add(lacks[wishes[i].member->workload->id], round.resource, missing);
  }
}

void explain_waiting(std::vector<Member>& members, double now) {
  for (Member& member : members) {
    if (member.straggles() && !has_evidence(*member.workload, *member.task, now))
      member.task->reason += "; it got more or moved since, and berth waits for two reports after that";
  }
}

bool keeps_nothing(const model::RedundantTask& task) {
  return (!task.cpu || task.cpu->reclaimable_cores <= 0) &&
         (!task.memory || task.memory->reclaimable_bytes == 0);
}

// Gives back in the same tick the amount that is idle beyond all needs and the margin. Where none is needed
// for long enough (`quiet`), it gives back a step at least.
void give_back_rest(Round& round, double idle, bool quiet) {
  const double spare = idle - kReturnMargin * round.capacity;
  const double hold_s = round.settings.restore_hold_s;
  // Without a known capacity, a share of it has no meaning.
  const double step = round.capacity > 0 ? round.settings.restore_step * round.capacity
                                         : std::numeric_limits<double>::infinity();
  if (quiet && step >= spare) {
    restore(round, step, fmt::format("no straggler for {:.4g} s (restore_hold)", hold_s));
  } else if (spare >= round.min_change * round.capacity && spare > kNothing) {
    restore(round, spare,
            fmt::format("{} is idle beyond all extensions and {:.0f} % of the host", round.text(spare),
                        100 * kReturnMargin));
  }
}

using Lacks = std::map<std::string, model::Resources>;

void decide_resource(Round& round, std::vector<Awaited> awaited, bool may_restore, Domains& domains,
                     Lacks& lacks) {
  return_at_once(round);
  end_growth(round);
  lose_room(awaited, recalled_amount(round));
  double asked = 0;
  double room = 0;
  for (const Awaited& it : awaited) {
    asked += it.asked;
    room += it.room;
  }
  const std::vector<Wish> wishes = wishes_of(round, domains);
  std::vector<Claim> claims;
  claims.reserve(wishes.size());
  double extensions = 0;
  for (const Wish& wish : wishes) {
    extensions += wish.extension.amount;
    claims.push_back({.id = wish.member->workload->id,
                      .deadline = *wish.member->task->deadline,
                      .extension = wish.extension.amount,
                      .least = wish.extension.least,
                      .whole = round.share(*wish.member).whole});
  }
  std::vector<Member*> whose;
  const std::vector<Source> sources = sources_of(round, extensions + (asked - room) > 0, whose);
  model::StragglerFindings& findings = round.out.findings;
  const double idle = idle_amount(round, room);
  const Division division = divide(idle, asked - room, claims, sources);
  add(findings.idle, round.resource, idle);
  add(findings.needed, round.resource, division.needed + room);
  take(round, division, idle, sources, whose);
  grant(round, wishes, division.grants);
  relocate(round, wishes, division.grants, lacks);
  gain_room(awaited, division.left);
  for (const Awaited& it : awaited) add(findings.room[it.id], round.resource, it.room);
  // Room counts as needed until the workload that it was made for is there.
  give_back_rest(round, idle - division.needed, may_restore && division.needed + room <= 0);
}

void report_tasks(const std::vector<Member>& members, double now, double hold_s,
                  const InterferenceSettings& settings, std::map<std::string, model::StragglerTask>& tasks) {
  for (const Member& member : members) {
    if (!member.task) continue;
    const model::Workload& workload = *member.workload;
    const Share& cpu = member.shares[0];
    model::StragglerTask task = *member.task;
    task.allocation_cores = cpu.allocation;
    if (const auto& bytes = member.shares[1].allocation)
      task.allocation_bytes = static_cast<std::uint64_t>(*bytes);
    const bool ends = growth_ends(workload, member.task.get(), now, hold_s);
    if (isolation_of(workload, settings) == model::Isolation::vcpus)
      task.vcpus = vcpus_while_grown(workload, cpu, task.granted.cpu_cores, ends);
    tasks.emplace(workload.id, std::move(task));
  }
}

}  // namespace

StragglerProposal propose_help(const OrderedSnapshot& ordered, const PolicySettings& settings) {
  const model::Snapshot& snapshot = ordered.snapshot;
  StragglerProposal out;
  const StragglerSettings& own = settings.straggler;
  std::vector<Member> members = members_of(ordered, settings);
  const bool straggles =
      std::any_of(members.begin(), members.end(), [](const Member& member) { return member.straggles(); });
  const bool may_restore =
      !straggles && is_over(snapshot.straggler_seen_at, snapshot.time, own.restore_hold_s);
  explain_waiting(members, snapshot.time);
  Domains domains(snapshot, settings.interference);
  Lacks lacks;
  for (const Resource resource : {Resource::cpu, Resource::memory}) {
    Round round{.resource = resource,
                .capacity = capacity_of(snapshot, settings.interference, resource),
                .now = snapshot.time,
                .min_change = settings.safety.min_change,
                .settings = own,
                .members = members,
                .out = out};
    decide_resource(round, awaited_in(snapshot, resource), may_restore, domains, lacks);
  }
  std::erase_if(out.findings.redundant, [](const auto& entry) { return keeps_nothing(entry.second); });
  for (auto& [id, resources] : lacks) out.findings.relocate.push_back({.workload = id, .lacks = resources});
  report_tasks(members, snapshot.time, own.restore_hold_s, settings.interference, out.findings.tasks);
  return out;
}

std::map<std::string, int> grown_requests(const model::StragglerFindings& findings) {
  std::map<std::string, int> requests;
  for (const auto& [id, task] : findings.tasks)
    if (task.vcpus) requests.emplace(id, *task.vcpus);
  return requests;
}

}  // namespace berth::policies
