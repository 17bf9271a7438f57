// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "os/clock.h"

#include <filesystem>
#include <optional>

namespace berth::cgroup {

// When a cgroup was made, of `clock`.
struct Creation {
  // The start of the oldest process in it (not in its children; the first 256 are asked). It is a time since
  // the boot, and exact.
  std::optional<double> process;
  // The directory's birth or, as cgroupfs keeps none, change time. It is of the wall clock, so it is off by
  // as much as that was set since. It is never in the future. The kernel makes up a new time after it dropped
  // the inode from its cache, and changes the time when children come and go.
  double directory = 0;

  // A workload's first process mostly lives as long as the workload. So this figure survives a restart of
  // berthd.
  double time() const { return process.value_or(directory); }
};

// `directory` is an open directory.
Creation created_at(int directory, const std::filesystem::path& proc_root, const os::Clock& clock);

}  // namespace berth::cgroup
