// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/attribute.h"
#include "model/error.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

namespace berth::cgroup {

// A transient scope (systemd.scope(5)).
struct Scope {
  std::string unit;  // "berth-executor-7-100.scope"
  std::string description;
  std::string slice;
  std::string part_of;  // the unit whose stop stops it too; it never starts that, nor ends it
  pid_t pid = 0;        // who lives in it from the start
  int weight = 100;     // CPUWeight= and IOWeight=
  std::uint64_t timeout_stop_us = 0;
};

// What a unit is to its processes.
struct UnitTraits {
  // A setting that a process would leave behind in another unit: "x.service has MemoryMax= set"; nullopt
  // where there is none.
  std::optional<std::string> bound;
  pid_t main_pid = 0;                 // 0: it has none
  std::uint64_t timeout_stop_us = 0;  // TimeoutStopUSec=
};

// Has systemd make scopes of processes that run.
class ScopeMaker {
 public:
  virtual ~ScopeMaker() = default;

  // Begins it, and does not wait: where the process is then tells whether it was done. Error transient where
  // no answer came in time, and it may be done yet; refused where there is a unit of that name.
  virtual model::Result<void> start_scope(const Scope& scope) = 0;
  // Settings of `held` are berth's, and bind nobody.
  virtual model::Result<UnitTraits> traits(const std::string& unit, const std::set<Attribute>& held) = 0;
  // PartOf= of a unit.
  virtual model::Result<std::vector<std::string>> part_of(const std::string& unit) = 0;
};

}  // namespace berth::cgroup
