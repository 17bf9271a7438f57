// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"
#include "model/snapshot.h"
#include "os/clock.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace berth::daemon {

// The samples of one run of a workload from a former daemon.
struct PastUsage {
  std::uint64_t cgroup_id = 0;
  std::vector<model::UsageSample> usage;  // oldest first
};

// The window of samples, over a restart of the daemon. STATE_DIR/usage.json is written when it stops and read
// once when it starts. Cgroup ids are this boot's, so another boot voids the file. Times in it are seconds
// since the boot, because each daemon's clock has another constant (os/clock.h).
using RunOf = std::function<std::uint64_t(const std::string& workload)>;
// Writes up to half of 16 MiB, ascending by id: workloads after that begin anew. Error io.
model::Result<void> save_usage(const std::filesystem::path& state_dir, const std::string& boot_id,
                               const os::Clock& clock, const model::Snapshot& snapshot, const RunOf& run_of);
// By workload id, samples of the last ten minutes. Removes the file. A file that cannot be read
// counts as none, and `warning` has the reason. A file of another boot counts as none, without a warning.
std::map<std::string, PastUsage> take_usage(const std::filesystem::path& state_dir,
                                            const std::string& boot_id, const os::Clock& clock,
                                            std::optional<std::string>& warning);

}  // namespace berth::daemon
