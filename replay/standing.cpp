// SPDX-License-Identifier: Apache-2.0
#include "replay/standing.h"

#include "policies/after.h"
#include "policies/victim.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>
#include <variant>

namespace berth::replay {

Standing::Standing(const model::Snapshot& recorded)
    : remembered_(model::standing_in(recorded)), eviction_ended_at_(recorded.eviction_ended_at) {
  // An eviction that the recorded berth had begun goes on in the recording.
  for (const model::Workload& workload : recorded.workloads) {
    if (workload.evicted_at)
      endings_[workload.id] = {workload.created, std::numeric_limits<double>::infinity()};
  }
}

// An evicted run that the recording has no more has ended then, or earlier by its eviction.
void Standing::forget_ended_runs(const model::Snapshot& recorded) {
  std::erase_if(endings_, [&](const auto& item) {
    const model::Workload* workload = find_workload(recorded, item.first);
    const bool lives = workload != nullptr && workload->created == item.second.created;
    if (!lives) note_eviction_end(std::min(recorded.time, item.second.gone_at));
    return !lives;
  });
}

void Standing::note_eviction_end(double at) {
  if (!eviction_ended_at_ || at > *eviction_ended_at_) eviction_ended_at_ = at;
}

void Standing::remove_gone(model::Snapshot& seen) {
  std::set<std::string> gone;
  for (const auto& [id, ending] : endings_) {
    const model::Workload* workload = seen.time >= ending.gone_at ? find_workload(seen, id) : nullptr;
    if (workload == nullptr) continue;
    gone.insert(id);
    seen.memory.available_bytes =
        std::min(seen.memory.total_bytes, seen.memory.available_bytes + policies::memory_in_use(*workload));
    note_eviction_end(ending.gone_at);
  }
  if (gone.empty()) return;
  std::erase_if(seen.workloads, [&](const model::Workload& workload) { return gone.contains(workload.id); });
  auto gpus = seen.topology.gpus();
  for (model::Gpu& gpu : gpus) {
    if (gpu.holder && gone.contains(*gpu.holder)) gpu.holder.reset();
  }
  if (gpus != seen.topology.gpus()) (void)seen.topology.set_gpus(std::move(gpus));  // they were legal before
}

void Standing::put_on(const model::Snapshot& recorded, model::Snapshot& seen) {
  forget_ended_runs(recorded);
  seen = recorded;
  model::take_off(seen);
  model::put_on(remembered_, seen);
  remove_gone(seen);
  seen.eviction_ended_at = eviction_ended_at_;
  if (!room_known_) return;
  for (model::PendingWorkload& pending : seen.pending) {
    const auto room = room_.find(pending.id);
    pending.room_cpu_cores = room != room_.end() ? room->second.cpu_cores : 0;
    pending.room_memory_bytes = room != room_.end() ? room->second.memory_bytes : 0;
  }
}

void Standing::take(const model::Plan& plan, const model::Snapshot& seen,
                    const policies::PolicySettings& settings) {
  for (const model::Action& action : plan.actions) {
    const auto* eviction = std::get_if<model::Evict>(&action.what);
    const model::Workload* workload = eviction != nullptr ? find_workload(seen, eviction->workload) : nullptr;
    if (workload != nullptr && !workload->evicted_at)
      endings_[workload->id] = {workload->created, plan.time + eviction->grace_s};
  }
  remembered_ = policies::after(std::move(remembered_), seen, plan, policies::assumed(plan), settings);
  if (!plan.findings.straggler) return;
  room_ = plan.findings.straggler->room;
  room_known_ = true;
}

}  // namespace berth::replay
