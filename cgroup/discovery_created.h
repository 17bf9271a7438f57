// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace berth::cgroup {

// The time a cgroup was made, epoch seconds. It is the directory's birth or, as cgroupfs keeps none, change
// time. It is the start of the oldest process in it where that is earlier (not in its children; the first 256
// are asked).
//
// cgroupfs makes up a new time after the kernel dropped the inode from its cache, and changes it when
// children come and go. A workload's first process mostly lives as long as the workload. So the figure
// survives a restart of berthd.
//
// `directory` is an open directory.
double created_at(int directory, const std::filesystem::path& proc_root);

}  // namespace berth::cgroup
