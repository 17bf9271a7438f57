// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/value.h"
#include "model/attribute.h"
#include "model/cpu_set.h"
#include "model/plan.h"
#include "model/snapshot.h"
#include "model/workload.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace berth::daemon {

// One attribute of one workload as berth set it.
struct Held {
  std::uint64_t cgroup_id = 0;  // of the run of the workload that was changed
  cgroup::Value value;
  cgroup::Value original;                               // before berth; of the same attribute
  model::HeldCause cause = model::HeldCause::extended;  // of a limit
  double since = 0;                                     // epoch seconds of the first change
  double changed_at = 0;                                // and of the last
  bool stood = false;                                   // a tick found the value as it was written
  int ticks_foreign = 0;         // number of ticks with a value that berth did not write
  std::uint32_t reasserted = 0;  // number of times it was written again since
  // The outermost group of the workload's user, which has the pin for it; empty: its own group has it.
  std::string at = {};

  // Of a pin.
  const model::CpuSet& cpus() const { return std::get<model::CpuSet>(value); }
  const model::CpuSet& original_cpus() const { return std::get<model::CpuSet>(original); }
  // Of a bond of memory.
  const model::CpuSet& nodes() const { return std::get<model::MemoryNodes>(value).nodes; }
};

using HeldValues = std::map<std::string, Held>;  // by workload id

// All values that berth holds, by attribute.
class Holdings {
 public:
  using Values = std::array<HeldValues, model::kAttributes.size()>;

  HeldValues& of(model::Attribute attribute) { return values_.at(index_of(attribute)); }
  const HeldValues& of(model::Attribute attribute) const { return values_.at(index_of(attribute)); }

  // In the order of Attribute.
  const Values& all() const { return values_; }

 private:
  Values values_;
};

// nullptr where berth holds no such attribute of the workload.
const Held* find_held(const HeldValues& values, const std::string& workload);

Held make_held(std::uint64_t cgroup_id, cgroup::Value value, cgroup::Value original, double now);

// The value that an action asks for; nullopt where it takes a value back (or changes none). A quota keeps the
// period of `original`, the attribute's value before berth (nullopt: not known). A value equal to the
// original is taken back.
std::optional<cgroup::Value> wanted_value(const model::Action& action,
                                          const std::optional<cgroup::Value>& original);

// As model::held_cause(); `before`: the limit as it was held, null if it was not.
model::HeldCause cause_of(const model::Plan& plan, const model::Snapshot& snapshot,
                          const std::string& workload, model::Attribute attribute, const Held* before);

// A workload's limits after a plan was carried out. They equal `original` where berth does not hold them.
struct Limits {
  std::optional<double> cpu_quota_cores;
  std::optional<std::uint64_t> memory_high_bytes;
  model::OriginalLimits original;
  std::optional<model::HeldCause> cpu_cause;
  std::optional<model::HeldCause> memory_cause;
};
// `seen` is the workload in the plan's snapshot, `holdings` are the values held after it.
Limits limits_of(const model::Workload& seen, const Holdings& holdings);

// Number of limits held, by cause.
struct HeldCounts {
  std::size_t extended = 0;
  std::size_t lent = 0;
  std::size_t preempted = 0;
  std::size_t lifted = 0;
};
HeldCounts count_held(const Holdings& holdings);

// A workload that berth leaves alone although a rule names it.
struct LeftAlone {
  enum class Cause { error, foreign_writer, alarm };
  std::uint64_t cgroup_id = 0;
  Cause cause = Cause::error;
  std::string reason;
  // alarm: taken up again should the value come back
  model::Attribute attribute = model::Attribute::cpus;
  std::optional<Held> held;
};

// Limits that the host does not let berth change: workload id and attribute, with the cgroup of the attempt.
using RefusedLimits = std::map<std::pair<std::string, model::Attribute>, std::uint64_t>;

using LeftAloneWorkloads = std::map<std::string, LeftAlone>;  // by workload id

}  // namespace berth::daemon
