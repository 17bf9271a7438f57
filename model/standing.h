// SPDX-License-Identifier: Apache-2.0
// A snapshot has the figures that were read of the host. A standing has berth's memory of its own earlier
// plans.
#pragma once

#include "model/attribute.h"
#include "model/oversell.h"
#include "model/snapshot.h"
#include "model/workload.h"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace berth::model {

// The name of a run: the id of its cgroup. A recorded workload has none, so there it is the time at which the
// run began, in epoch seconds.
struct RunId {
  std::uint64_t cgroup_id = 0;
  double created = 0;

  friend bool operator==(const RunId&, const RunId&) = default;
};
RunId run_of(const Workload& workload);

// An attribute of a workload that nothing was written to, as the plans so far would have set it.
struct HeldAttribute {
  AttributeValue value;  // as the kernel would keep it
  HeldLimit held;        // the cause is that of a limit

  friend bool operator==(const HeldAttribute&, const HeldAttribute&) = default;
};

// The memory of policies about one run. Times are epoch seconds.
struct RunMemory {
  RunId run;
  // In observe mode and in a replay, because the host shows nothing of the plans there. While berth enforces,
  // its undo journal has the held attributes, and the host shows the evictions.
  std::map<Attribute, HeldAttribute> held;
  std::optional<double> evicted_at;    // its eviction would have begun at this time
  std::optional<double> straggled_at;  // the last tick that found it a straggler
  std::optional<double> relocated_at;  // the last tick that found that it should run elsewhere
  std::optional<double> pressed_at;    // the last tick at which it wanted back its loan
  CpuSet home = {};                    // as in Workload

  friend bool operator==(const RunMemory&, const RunMemory&) = default;
};

// The utilisation of the host in one tick, as RecentUse has it.
struct TickUse {
  double time = 0;  // epoch seconds
  double cpu = 0;
  double memory = 0;
  double load1 = 0;

  friend bool operator==(const TickUse&, const TickUse&) = default;
};

// A plain value. policies/after.h computes the next one.
struct Standing {
  std::map<std::string, RunMemory> runs;  // by workload id; runs that policies found something of
  // By id of a best-effort group: its priority, as RunMemory::held.
  std::map<std::string, HeldAttribute> groups;
  std::map<std::string, HeldAttribute> others;  // by id of an other group: its vCPUs, likewise
  std::optional<double> straggler_seen_at;      // epoch seconds of the last tick that found any straggler
  // Ids of services without vCPUs of their own by the last plan: their pins are shared.
  std::set<std::string> sharing;
  std::map<int, BestEffortCores> best_effort_cores;  // by domain id
  // By Spark application: epoch seconds when the last eviction of one of its executors or drivers began, for
  // lack of memory. It stays until the lack is over.
  std::map<std::string, double> spark_evicted;
  std::optional<double> memory_short_at;  // epoch seconds: when memory was last short
  Advertised advertised;                  // as schedulers know it
  std::deque<TickUse> recent;             // of the last kRecent_s, oldest first

  friend bool operator==(const Standing&, const Standing&) = default;
};

// The time of Snapshot::recent_use, in seconds.
inline constexpr double kRecent_s = 300;

// The memory of the berth that recorded the snapshot, as far as the snapshot shows it.
Standing standing_in(const Snapshot& recorded);

// Fills in the members of the snapshot that policies read as memory, all of them: advertised,
// straggler_seen_at, spark_evicted, best_effort_cores, and of each workload straggled_at, pressed_at and
// home. Attributes that a run or a group would hold cover those of the snapshot; so take_off() comes before
// the next put_on(). Workloads ascend by id.
void put_on(const Standing& standing, Snapshot& snapshot);
// Takes off workloads and groups what berth holds, or would: they are as their owners have them.
void take_off(Snapshot& snapshot);
// The limits that the workload's owner set, as far as the snapshot shows them.
OriginalLimits limits_of_owner(const Workload& workload);
// nullptr where the run of this workload would not hold the attribute.
const HeldAttribute* find_held(const Standing& standing, const Workload& workload, Attribute attribute);

// Means over the ticks of the kRecent_s before `now`, epoch seconds; nullopt if there is none.
std::optional<RecentUse> recent_use(const Standing& standing, double now);

// After a change of the mode, the evictions of the other mode no longer count.
void forget_evictions(Standing& standing);
// When berth begins to enforce: it held nothing in observe mode.
void forget_held(Standing& standing);

}  // namespace berth::model
