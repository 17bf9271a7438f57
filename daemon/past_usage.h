// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"
#include "model/snapshot.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace berth::daemon {

// The samples of one run of a workload, as a former daemon left them.
struct PastUsage {
  std::uint64_t cgroup_id = 0;
  std::vector<model::UsageSample> usage;  // oldest first
};

// The window of samples, over a restart of the daemon: STATE_DIR/usage.json is written when it stops and read
// once when it starts. Cgroup ids are this boot's, so it is void after another one.
using RunOf = std::function<std::uint64_t(const std::string& workload)>;
// Up to half of 16 MiB, ascending by id: who comes after that begins anew. Error io.
model::Result<void> save_usage(const std::filesystem::path& state_dir, const std::string& boot_id,
                               const model::Snapshot& snapshot, const RunOf& run_of);
// By workload id, samples of the last ten minutes by `now`; takes the file away. A file that cannot be read
// is as good as none, and `warning` says so; so is one of another boot, without a word.
std::map<std::string, PastUsage> take_usage(const std::filesystem::path& state_dir,
                                            const std::string& boot_id, double now,
                                            std::optional<std::string>& warning);

}  // namespace berth::daemon
