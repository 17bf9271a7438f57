// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/cpu_set.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace berth::model {

// The attributes of a cgroup that berth changes.
enum class Attribute { cpus, cpu_quota, memory_high, memory_nodes, cpu_idle, cpu_burst };

// All, in the order of giving them back to a workload.
inline constexpr std::array kAttributes{Attribute::cpus,        Attribute::memory_nodes, Attribute::cpu_quota,
                                        Attribute::memory_high, Attribute::cpu_burst,    Attribute::cpu_idle};

// In the order of the enumeration, for arrays by attribute.
constexpr std::size_t index_of(Attribute attribute) { return static_cast<std::size_t>(attribute); }

// A workload of a snapshot has these in a map (Workload::others), and the first ones in members of their own.
// The priority is no workload's, but a group's (BestEffortGroup). vCPUs are set for both (OtherGroup).
constexpr bool is_other(Attribute attribute) { return attribute > Attribute::cpu_idle; }

// The names of an attribute: a row of the table in attribute.cpp.
struct AttributeRow {
  Attribute attribute;
  const char* control_file;  // also its name in log and journal
  const char* controller;    // that must be enabled for the file to exist
  const char* since;         // the version of Linux that brought the file; nullptr: each that berth supports
  const char* set;           // the kind of an action that sets it
  const char* give_back;     // and of one that gives back the value from before berth
  const char* member;        // the value's name in such an action, and in a snapshot if it is_other()
  const char* name;          // for people: "CPU quota"
  const char* unit;          // of the number in its control file, for people
  const char* before;        // the value that is given back, for people
  bool asked;                // it is read only while a policy may change it, or berth holds it
  bool takes;                // a workload for which berth sets it has less than without
};

const AttributeRow& row_of(Attribute attribute);
inline const char* control_file(Attribute attribute) { return row_of(attribute).control_file; }
inline const char* controller(Attribute attribute) { return row_of(attribute).controller; }
inline bool is_asked(Attribute attribute) { return row_of(attribute).asked; }
// The attribute of a control file's name; nullopt for any other text.
std::optional<Attribute> attribute_of(std::string_view control_file);

// cpu.max; CPUQuota= of a unit.
struct CpuQuota {
  std::optional<double> cores;  // nullopt: no limit
  friend bool operator==(const CpuQuota&, const CpuQuota&) = default;
};
// memory.high; MemoryHigh= of a unit.
struct MemoryHigh {
  std::optional<std::uint64_t> bytes;  // nullopt: no limit
  friend bool operator==(const MemoryHigh&, const MemoryHigh&) = default;
};
// cpuset.mems, numbers of NUMA nodes; AllowedMemoryNodes= of a unit. Empty: none are set.
struct MemoryNodes {
  CpuSet nodes;
  friend bool operator==(const MemoryNodes&, const MemoryNodes&) = default;
};
// A priority below the usual one, of a group among its siblings (docs/decisions/priority.md).
enum class LowPriority {
  idle,    // cpu.idle; CPUWeight=idle of a unit. It runs only while no sibling wants the vCPU
  weight,  // cpu.weight; CPUWeight=1. It has the least share that the kernel gives
};
const char* to_string(LowPriority priority);  // "idle", "weight"

// cpu.max.burst: CPU time that a workload may save of its quota, and use beyond it in a later period. The
// kernel takes none above the quota, and no quota below it (tg_set_cfs_bandwidth() in kernel/sched/core.c).
struct CpuBurst {
  std::uint64_t us = 0;
  friend bool operator==(const CpuBurst&, const CpuBurst&) = default;
};

// The value that a plan gives to an attribute. A CpuSet is cpuset.cpus (AllowedCPUs= of a unit): the tasks
// run on exactly these vCPUs. The alternatives stand in the order of Attribute.
using AttributeValue = std::variant<CpuSet, CpuQuota, MemoryHigh, MemoryNodes, LowPriority, CpuBurst>;

// The value as the kernel keeps it: a quota in microseconds of its default period of 100 ms and at least 1 ms
// (kernel/sched/core.c, min_cfs_quota_period), memory in pages of 4096 bytes.
AttributeValue as_kept(AttributeValue value);

// The value in the fewest words: in the id of a decision, and so the same for ever.
std::string plain_text(const AttributeValue& value);
// For people, of a value that berth sets: "vCPUs 0-1", "1.50 cores", "idle priority", "the least CPU weight".
std::string words(const AttributeValue& value);

inline Attribute attribute_of(const AttributeValue& value) { return static_cast<Attribute>(value.index()); }

}  // namespace berth::model
