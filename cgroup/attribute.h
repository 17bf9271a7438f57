// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/cgroup.h"
#include "model/error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace berth::cgroup {

// The attributes of a cgroup that berth changes.
enum class Attribute { cpus, cpu_quota, memory_high };

// The control file: "cpuset.cpus", "cpu.max", "memory.high"; also the name in log and journal.
const char* control_file(Attribute attribute);
// The controller that must be enabled for the file to exist: "cpuset", "cpu", "memory".
const char* controller(Attribute attribute);
// The attribute of a control file's name; nullopt for any other text.
std::optional<Attribute> attribute_of(std::string_view control_file);

// Values are kept as the control file's text in canonical form: a cpulist ("" unset), "max PERIOD" or "QUOTA
// PERIOD" in microseconds, "max" or bytes.

// The value of a group that never had the attribute set: "", "max 100000", "max".
const char* unset_value(Attribute attribute);

// Canonical form of a value from the kernel or a caller. memory.high is rounded down to whole pages, as the
// kernel does itself. Error invalid_input where the kernel would not take it either (Linux,
// admin-guide/cgroup-v2).
model::Result<std::string> canonical_value(Attribute attribute, std::string_view text);

// cpu.max in microseconds. The defaults are the values of a group that never had it set.
struct CpuMax {
  std::optional<std::uint64_t> quota_us;  // nullopt: no limit
  std::uint64_t period_us = 100'000;

  friend bool operator==(const CpuMax&, const CpuMax&) = default;
};
// Parses the file's text; error invalid_input as canonical_value().
model::Result<CpuMax> parse_cpu_max(std::string_view text);

// cpu.max for a quota in cores (nullopt: none) per `period_us`, at least the kernel's minimum of 1 ms. The
// kernel's default period is for a group without a period of its own.
std::string cpu_quota_value(std::optional<double> cores, std::uint64_t period_us = CpuMax().period_us);
// memory.high for a limit in bytes (nullopt: none).
std::string memory_high_value(std::optional<std::uint64_t> bytes);

// cpu.max in cores; nullopt for "max", for a quota no host reaches (above model::kMaxQuotaCores), and for
// anything malformed.
std::optional<double> cores_of(std::string_view cpu_max);

// The attribute's canonical value right now; the unset value where the group lacks the controller. Error gone
// where the group is gone.
model::Result<std::string> read_attribute(const Cgroup& cgroup, Attribute attribute);

// The holder of an attribute: the group, and the systemd unit whose main group it is.
struct Target {
  const Cgroup* cgroup = nullptr;  // null where the unit has no group now
  std::string unit;                // empty where there is no unit
};

// An attribute as it was before berth first changed it.
struct Original {
  std::string value;  // of the control file
  std::string note;   // the owner's other data for putting it back, in its own format
};

// The way to change an attribute: systemd for its units, the kernel's file for the rest.
class Owner {
 public:
  virtual ~Owner() = default;
  // "systemd" or "direct".
  virtual const char* name() const = 0;
  // The nearest value to the canonical `value` that the owner can hold over time.
  virtual std::string attainable(Attribute attribute, const std::string& value) const = 0;
  // The value before berth. Call it before the first set().
  virtual model::Result<Original> original(const Target& target, Attribute attribute) = 0;
  // Canonical value in force. Error gone where neither group nor unit exists.
  virtual model::Result<std::string> current(const Target& target, Attribute attribute) = 0;
  // Makes the attribute the canonical `value` and reads it back. Error transient where the outcome is unknown
  // (no answer in time). Any other error: the value is not in force, or not all of the vCPUs were granted.
  virtual model::Result<void> set(const Target& target, Attribute attribute, const std::string& value) = 0;
  // Puts `original` back and removes every trace that set() left elsewhere (drop-ins). Returns the value now
  // in force. It differs from the original only where the kernel does not let the original be put back.
  virtual model::Result<std::string> reset(const Target& target, Attribute attribute,
                                           const Original& original) = 0;
  // Removes the traces of `written` and leaves the value in force alone. That value is the original, or
  // another program wrote it.
  virtual model::Result<void> relinquish(const Target& target, Attribute attribute, const Original& original,
                                         const std::string& written) = 0;
  // True where the owner itself made `current` of `written` and the original when it read its configuration
  // again. No other program wrote it, but it is not the value that berth wrote.
  virtual model::Result<bool> merged(const Target& target, Attribute attribute, const Original& original,
                                     const std::string& written, const std::string& current) = 0;
  // Ends a batch of resets: does the work that is cheaper once than for each.
  virtual model::Result<void> settle() = 0;
};

}  // namespace berth::cgroup
