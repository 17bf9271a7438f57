// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace berth::cgroup {

// When a cgroup came to be, epoch seconds: its directory's birth or, as cgroupfs keeps none, change time; or
// the start of the oldest process in it (not in its children; the first 256 are asked) where that is earlier.
// cgroupfs makes the time up anew whenever the kernel dropped the inode from its cache, and moves it when
// children come and go; a workload's first process mostly lives as long as it, so that the figure survives a
// restart of whoever asks. `directory` is an open directory.
double created_at(int directory, const std::filesystem::path& proc_root);

}  // namespace berth::cgroup
