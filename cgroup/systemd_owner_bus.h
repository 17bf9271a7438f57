// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/scope_maker.h"
#include "cgroup/value.h"
#include "model/attribute.h"
#include "model/cpu_set.h"
#include "model/error.h"
#include "os/worker.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace berth::cgroup {

// Converts values of the kernel's control files to systemd's properties and back
// (systemd.resource-control(5), src/core/dbus-cgroup.c).

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
// The first of a quota is the quota, the second its period. None: systemd does not know the attribute, and
// writes nothing to its control file.
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

// berth's calls to systemd's manager, on the system bus. Error gone where the unit does not exist. Error
// transient where no answer came in time or the connection broke. The next call connects again.
//
// A thread of its own makes the calls, one at a time. If an answer takes longer than the patience, the call
// may still be carried out later. Until it has ended, every other one fails at once.
class SystemdBus {
 public:
  // `timeout` is for the answer to each call but reload(), `patience` for the caller.
  SystemdBus(std::chrono::milliseconds timeout, std::chrono::milliseconds patience);
  ~SystemdBus();

  // Waits for every answer from now on.
  void be_patient();
  // Error where systemd cannot be asked.
  model::Result<void> greet();
  // Whether a call that was given up goes on.
  bool is_busy() const { return worker_.is_busy(); }

  model::Result<UnitSetting> read(const std::string& unit, Attribute attribute);
  // Writes a setting that lasts until the next boot at most (runtime = true).
  model::Result<void> write(const std::string& unit, Attribute attribute, const UnitSetting& setting);
  // False where systemd knows no such unit.
  model::Result<bool> is_loaded(const std::string& unit);
  model::Result<bool> needs_reload(const std::string& unit);
  model::Result<void> reload();
  // The id of the unit's present run, or of its last one; empty where there was none.
  model::Result<std::vector<std::uint8_t>> invocation(const std::string& unit);
  // Queues a stop job for the unit of this run alone (GetUnitByInvocationID; Unit.Stop, mode
  // "ignore-requirements"). Error gone where the run is over: systemd itself looks.
  model::Result<void> stop_run(const std::vector<std::uint8_t>& invocation);
  // Running units that systemd itself ends when this one ends (BoundBy=).
  model::Result<std::vector<std::string>> running_bound_units(const std::string& unit);
  // The next three calls wait a second for each answer.
  //
  // Whether the process belongs to that unit for systemd, whose PID namespace may be another one.
  model::Result<bool> is_process_of(pid_t pid, const std::string& unit);
  // Queues a start job for a transient scope (StartTransientUnit, mode "fail"). See ScopeMaker.
  model::Result<void> start_scope(const Scope& scope);
  // See ScopeMaker.
  model::Result<UnitTraits> traits(const std::string& unit, const std::set<Attribute>& held);

 private:
  struct Connection;
  template <typename Call>
  auto ask(const std::string& what, Call call);

  std::shared_ptr<Connection> connection_;
  os::Worker worker_;
  std::chrono::milliseconds patience_;
};

}  // namespace berth::cgroup
