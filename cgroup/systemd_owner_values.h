// SPDX-License-Identifier: Apache-2.0
// Converts values of the kernel's control files to systemd's properties and back
// (systemd.resource-control(5), src/core/dbus-cgroup.c).
#pragma once

#include "cgroup/value.h"
#include "model/cpu_set.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace berth::cgroup {

// "No limit" of a number property.
inline constexpr std::uint64_t kInfinity = UINT64_MAX;

// CPUWeight=idle on the bus (CGROUP_WEIGHT_IDLE in src/basic/cgroup-util.h; systemd 252 and later). systemd
// then writes cpu.idle alone. Of another weight it writes 0 to cpu.idle, and then cpu.weight
// (cgroup_context_apply in src/core/cgroup.c).
inline constexpr std::uint64_t kIdleWeight = 0;

// A unit's configuration; its members as the bus properties of the same name.
struct UnitSetting {
  model::CpuSet allowed_cpus;                     // AllowedCPUs
  std::uint64_t quota_us_per_second = kInfinity;  // CPUQuotaPerSecUSec
  std::uint64_t quota_period_us = kInfinity;      // CPUQuotaPeriodUSec; infinity is the default, 100 ms
  std::uint64_t memory_high_bytes = kInfinity;    // MemoryHigh
  model::CpuSet allowed_nodes = {};               // AllowedMemoryNodes
  std::uint64_t cpu_weight = kInfinity;           // CPUWeight; infinity is unset, kIdleWeight is "idle"

  friend bool operator==(const UnitSetting&, const UnitSetting&) = default;
};

// A property of an attribute.
struct UnitProperty {
  using Number = std::uint64_t UnitSetting::*;
  using List = model::CpuSet UnitSetting::*;

  const char* name;  // on the bus
  const char* key;   // in a drop-in
  std::variant<List, Number> member;
};
// The first of a quota is the quota, the second its period.
std::span<const UnitProperty> properties_of(Attribute attribute);

// Only the members of the value's attribute are set.
UnitSetting setting_of(const Value& value);
// Only the members of `attribute` are looked at.
Value value_of(Attribute attribute, const UnitSetting& setting);

// One line, without loss. parse_setting() returns nullopt for a text that setting_text() did not make.
std::string setting_text(Attribute attribute, const UnitSetting& setting);
std::optional<UnitSetting> parse_setting(Attribute attribute, std::string_view text);

// AllowedCPUs and AllowedMemoryNodes on the bus: bit N of byte N/8.
std::vector<std::uint8_t> cpu_bytes(const model::CpuSet& cpus);
model::CpuSet cpus_of_bytes(const std::vector<std::uint8_t>& bytes);

// The drop-ins that a change of the attribute leaves in UNIT.d ("50-AllowedCPUs.conf").
std::vector<std::string> drop_in_names(Attribute attribute);
// True where a drop-in's text sets the attribute to what `setting` says (a quota to the whole percent).
bool drop_in_holds(Attribute attribute, std::string_view text, const UnitSetting& setting);

// The nearest quota of whole percents of a CPU.
CpuMax whole_percents(const CpuMax& limit);

}  // namespace berth::cgroup
