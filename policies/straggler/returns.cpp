// SPDX-License-Identifier: Apache-2.0
#include "policies/straggler/returns.h"

#include "model/count_text.h"
#include "model/json.h"
#include "policies/straggler/redundancy.h"
#include "policies/straggler/restore.h"
#include "policies/straggler/task.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/core.h>

namespace berth::policies {

namespace {

using Kind = model::LimitMove::Kind;

void put_back(Round& round, Member& member, Kind kind, const std::string& why) {
  const Share& share = round.share(member);
  if (share.limit == share.original) return;
  const std::string reason = fmt::format("{}; back to {} from {}", why, round.limit_text(share.original),
                                         round.limit_text(share.limit));
  round.note(kind, member, distance_from_original(share, round.capacity), reason);
  round.set(member, share.original, reason);
}

// Another policy holds its CPU quota: the straggler policy must not give it back yet.
bool is_held_elsewhere(const Round& round, const Member& member) {
  return member.held && round.resource == model::Resource::cpu;
}

// Why a task's growth ends.
std::string end_of_growth(const Member& member, double hold_s) {
  if (!member.task) return "it is no task with progress and deadline any more";
  if (!member.workload->deadline) return "it has no deadline any more";
  if (member.task->samples.empty()) return "it reports no progress any more";
  if (member.task->samples.back().fraction >= 1) return "it is done";
  return fmt::format("it has not straggled for {:.4g} s (restore_hold)", hold_s);
}

}  // namespace

void return_at_once(Round& round) {
  for (Member& member : round.members) {
    const Share& share = round.share(member);
    if (!share.held) continue;
    if (member.latency_sensitive() != is_growth(share.held)) {
      put_back(
          round, member, is_growth(share.held) ? Kind::release : Kind::restore,
          fmt::format("its limit was {} while it had the other class", model::to_string(share.held->cause)));
    } else if (!is_held_elsewhere(round, member) && presses(*member.workload, share, round.resource)) {
      const double throttled =
          round.resource == model::Resource::cpu ? member.workload->cpu_throttled.value_or(0) : 0.0;
      put_back(round, member, Kind::recall,
               fmt::format("it needs back what it lent: it uses {} of {}, throttled for {:.0f} % of the time",
                           round.text(share.last_use.value_or(0)), round.limit_text(share.limit),
                           throttled * 100));
    }
  }
}

void end_growth(Round& round) {
  for (Member& member : round.members) {
    if (!member.latency_sensitive() || round.changed(member)) continue;
    const Share& share = round.share(member);
    const model::Workload& workload = *member.workload;
    // A workload that never was a task has only a larger pin: it gets its size without a message.
    const bool was_task = member.task || workload.straggled_at;
    const bool owns_more = was_task && round.resource == model::Resource::cpu && !share.limit &&
                           workload.vcpus && static_cast<int>(workload.cpus.size()) > *workload.vcpus;
    if (!is_growth(share.held) && !owns_more) continue;
    if (!growth_ends(workload, member.task.get(), round.now, round.settings.restore_hold_s)) continue;
    const std::string why = end_of_growth(member, round.settings.restore_hold_s);
    if (is_growth(share.held)) {
      put_back(round, member, Kind::release, why);
    } else {
      round.note(Kind::release, member, static_cast<double>(workload.cpus.size()) - *workload.vcpus,
                 fmt::format("{}; back to {} from {}", why, model::count_text(*workload.vcpus, "vCPU"),
                             workload.cpus.size()));
    }
  }
}

void restore(Round& round, double most, const std::string& why) {
  std::vector<Lowered> lowered;
  std::vector<Member*> whose;
  for (Member& member : round.members) {
    const Share& share = round.share(member);
    if (member.latency_sensitive() || round.changed(member) || !share.held || !share.limit) continue;
    if (share.limit == share.original || is_held_elsewhere(round, member)) continue;
    lowered.push_back(
        {.id = member.workload->id, .limit = *share.limit, .original = share.original, .held = *share.held});
    whose.push_back(&member);
  }
  for (const GivenBack& given : give_back(lowered, most, round.capacity)) {
    Member& member = *whose[given.index];
    const Lowered& it = lowered[given.index];
    std::string reason = why + ": ";
    if (given.amount > kNothing) {
      reason += fmt::format("{1} of what was {0} goes back; the limit is {2} of {3}",
                            model::to_string(it.held.cause), round.text(given.amount),
                            round.limit_text(given.limit), round.limit_text(it.original));
    } else {
      // Both limits are beyond the host's size.
      reason += fmt::format("its limit, which was {}, goes back to {}", model::to_string(it.held.cause),
                            round.limit_text(given.limit));
    }
    round.note(Kind::restore, member, given.amount, reason);
    round.set(member, given.limit, reason);
  }
}

}  // namespace berth::policies
