// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/cpu_set.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace berth::daemon {

// The vCPUs that berth gave a workload.
struct Pin {
  std::uint64_t cgroup_id = 0;  // of the run of the workload that was pinned
  model::CpuSet cpus;
  model::CpuSet original;        // cpuset.cpus before berth; empty: unset
  double pinned_at = 0;          // epoch seconds of the last change of `cpus`
  int ticks_foreign = 0;         // for how many ticks the value has been somebody else's
  std::uint32_t reasserted = 0;  // how often it was written again since
};

using Pins = std::map<std::string, Pin>;  // by workload id

// A workload that berth leaves alone although a rule names it.
struct Unmanaged {
  enum class Cause { error, foreign_writer, alarm };
  std::uint64_t cgroup_id = 0;
  Cause cause = Cause::error;
  std::string reason;
  std::optional<Pin> pin;  // alarm: taken up again should the value come back
};

using UnmanagedWorkloads = std::map<std::string, Unmanaged>;  // by workload id

}  // namespace berth::daemon
