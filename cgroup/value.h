// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/cgroup.h"
#include "model/attribute.h"
#include "model/cpu_set.h"
#include "model/error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace berth::cgroup {

using model::Attribute;
using model::kAttributes;

// cpu.max in microseconds. The defaults are the values of a group that never had it set.
struct CpuMax {
  // The least quota, in microseconds: kernel/sched/core.c, min_cfs_quota_period.
  static constexpr std::uint64_t kMinQuotaUs = 1'000;

  std::optional<std::uint64_t> quota_us;  // nullopt: no limit
  std::uint64_t period_us = 100'000;

  friend bool operator==(const CpuMax&, const CpuMax&) = default;
};

// Here of whole pages, as the kernel keeps it.
using model::CpuBurst;
using model::MemoryHigh;
using model::MemoryNodes;

// cpu.idle, and the cpu.weight that belongs to it. An idle group runs only while no sibling wants the vCPU.
//
// The two files are one attribute, because the kernel ties them (kernel/sched/fair.c, Linux 5.15 and later).
// sched_group_set_idle() gives an idle group the weight 3 of 1024, and 1024 to one that is idle no more,
// whatever it had before. sched_group_set_shares() refuses to change the weight of an idle group (EINVAL).
struct CpuIdle {
  // The cpu.weight that the kernel gives to a new group, and to one that stops being idle.
  static constexpr std::uint64_t kDefaultWeight = 100;
  static constexpr std::uint64_t kLeastWeight = 1;

  bool idle = false;
  std::uint64_t weight = kDefaultWeight;  // cpu.weight, 1 to 10000; kDefaultWeight while it is idle

  friend bool operator==(const CpuIdle&, const CpuIdle&) = default;
};

// The value of an attribute: vCPUs (an empty set: none are set), a quota, a limit of memory, NUMA nodes, idle
// priority, or a burst. The alternatives stand in the order of Attribute.
using Value = std::variant<model::CpuSet, CpuMax, MemoryHigh, MemoryNodes, CpuIdle, CpuBurst>;

Attribute attribute_of(const Value& value);
// The control file's text in canonical form: a cpulist or a list of nodes ("" for none), "max PERIOD" or
// "QUOTA PERIOD" in microseconds, "max" or bytes, microseconds of a burst. For idle priority it is "1", "0"
// or "0 WEIGHT": "0" is what the kernel makes of a write of 0, so the weight follows where it is another one
// than that.
std::string to_text(const Value& value);
// The value of a text from the kernel or a caller. Error invalid_input where the kernel would not take it
// either (Linux, admin-guide/cgroup-v2).
model::Result<Value> parse_value(Attribute attribute, std::string_view text);
model::Result<CpuMax> parse_cpu_max(std::string_view text);

// The value of a plan as the kernel keeps it. A quota keeps the period of `original`, the attribute's value
// before berth (nullopt: not known).
Value value_of(const model::AttributeValue& planned, const std::optional<Value>& original);
// The value of a group that never had the attribute set.
Value unset_value(Attribute attribute);
// A quota in cores (nullopt: none) per `period_us`, at least the kernel's minimum of 1 ms. The kernel's
// default period is for a group without a period of its own.
CpuMax cpu_max(std::optional<double> cores, std::uint64_t period_us = CpuMax().period_us);
// A limit in bytes (nullopt: none), rounded down to whole pages, as the kernel does itself.
MemoryHigh memory_high(std::optional<std::uint64_t> bytes);

// In cores; nullopt without a quota, and for one that no host reaches (above model::kMaxQuotaCores).
std::optional<double> cores_of(const CpuMax& limit);
// Whether 0 alone was written to cpu.idle after `written`. The kernel has dropped the former weight then, and
// `current` has its default.
bool has_lost_weight(const Value& written, const Value& current);

// nullopt without a limit, and for one that no host reaches (above model::kMaxBytes).
std::optional<std::uint64_t> bytes_of(const MemoryHigh& limit);

// The attribute's value right now; the unset value where the group lacks the controller. Error gone where the
// group is gone.
model::Result<Value> read_value(const Cgroup& cgroup, Attribute attribute);

}  // namespace berth::cgroup
