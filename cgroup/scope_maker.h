// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/attribute.h"
#include "cgroup/unit_stopper.h"
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
  pid_t pid = 0;     // who lives in it from the start
  std::optional<int> cpu_weight;  // CPUWeight=
  std::optional<int> io_weight;   // IOWeight=
  std::uint64_t tasks_max = 0;
  std::uint64_t timeout_stop_us = 0;
};

// What a unit is to its processes.
struct UnitTraits {
  // A setting that a process would leave behind in another unit: "x.service has MemoryMax= set"; nullopt
  // where there is none.
  std::optional<std::string> bound;
  pid_t main_pid = 0;                 // 0: it has none
  std::uint64_t tasks_max = 0;        // TasksMax=; the largest number: unlimited
  std::uint64_t timeout_stop_us = 0;  // TimeoutStopUSec=
};

// Has systemd make scopes of processes that run.
class ScopeMaker : public UnitStopper {
 public:
  // Begins it, and does not wait: where the process is then tells whether it was done. Error transient where
  // no answer came in time, and it may be done yet; unavailable where it was not even asked, as it does not
  // answer; refused where there is a unit of that name; io where to systemd the process is of another unit
  // than `stopped_with`, as processes have other numbers there.
  virtual model::Result<void> start_scope(const Scope& scope) = 0;
  // Settings of `held` are berth's, and bind nobody.
  virtual model::Result<UnitTraits> traits(const std::string& unit, const std::set<Attribute>& held) = 0;
};

}  // namespace berth::cgroup
