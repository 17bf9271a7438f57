// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/unit_stopper.h"
#include "model/attribute.h"
#include "model/error.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include <sys/types.h>

namespace berth::cgroup {

// A transient scope (systemd.scope(5)).
struct Scope {
  std::string unit;
  std::string description;
  std::string slice;
  std::string
      stopped_with;  // the unit that its process lives in, whose stop stops it too (StopPropagatedFrom=)
  pid_t pid = 0;     // the process that lives in it from the start
  std::optional<int> cpu_weight;  // CPUWeight=
  std::optional<int> io_weight;   // IOWeight=
  std::uint64_t tasks_max = 0;
  std::uint64_t timeout_stop_us = 0;
};

// The properties of a unit that matter to its processes.
struct UnitTraits {
  // A setting that a process would lose in another unit: "x.service has MemoryMax= set"; nullopt where there
  // is none.
  std::optional<std::string> bound;
  pid_t main_pid = 0;                 // 0: it has none
  std::uint64_t tasks_max = 0;        // TasksMax=; the largest number: unlimited
  std::uint64_t timeout_stop_us = 0;  // TimeoutStopUSec=
};

// Lets systemd make scopes of running processes.
class ScopeMaker : public UnitStopper {
 public:
  // Starts the job and does not wait; the process's cgroup later tells the outcome.
  // Error transient: no answer came in time, and systemd may still do it. Error unavailable: the first
  // question got no answer, and nothing was begun. Error refused: there is a unit of that name. Error io: for
  // systemd the process is not of `stopped_with`, as in another PID namespace.
  virtual model::Result<void> start_scope(const Scope& scope) = 0;
  // Settings in `held` are berth's own and do not count as a bound.
  virtual model::Result<UnitTraits> traits(const std::string& unit,
                                           const std::set<model::Attribute>& held) = 0;
};

}  // namespace berth::cgroup
