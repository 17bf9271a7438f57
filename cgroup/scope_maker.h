// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/attribute.h"
#include "model/error.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include <sys/types.h>

namespace berth::cgroup {

// Ends systemd's units in systemd's own way.
class UnitStopper {
 public:
  virtual ~UnitStopper() = default;

  // Asks systemd to stop the unit, and does not wait for the end. A unit stopped on request stays stopped
  // whatever its Restart= says, and stays enabled. It stops this unit only: units that require it go on.
  // A unit can restart at any time. So the run is stopped by its InvocationID. `is_same_run` is asked after
  // that id was read.
  //
  // Error refused where other units are bound to it and would end with it, or where systemd refuses
  // (RefuseManualStop=). Error gone where there is no such unit, or the run is over; transient where no
  // answer came in time.
  virtual model::Result<void> stop_unit(const std::string& unit,
                                        const std::function<bool()>& is_same_run) = 0;
};

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
