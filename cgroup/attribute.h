// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cgroup/cgroup.h"
#include "model/error.h"

namespace berth::cgroup {

// What berth changes of a cgroup.
enum class Attribute { cpus, cpu_quota, memory_high };

// The control file: "cpuset.cpus", "cpu.max", "memory.high"; also the name in log and journal.
const char* control_file(Attribute attribute);

// Values are kept as the control file's text in canonical form: a cpulist ("" unset), "max PERIOD" or "QUOTA PERIOD"
// in microseconds, "max" or bytes.

// Somebody through whom an attribute is changed: systemd for its units, the kernel's file for the rest.
class Owner {
 public:
  virtual ~Owner() = default;
  // "systemd" or "direct".
  virtual const char* name() const = 0;
  // Makes the attribute `value`. `original` is what it was before berth first changed it.
  virtual model::Result<void> set(const Cgroup& cgroup, Attribute attribute, const std::string& value) = 0;
  // Puts `original` back and removes every trace that set() left elsewhere (drop-ins).
  virtual model::Result<void> reset(const Cgroup& cgroup, Attribute attribute, const std::string& original) = 0;
};

}  // namespace berth::cgroup
