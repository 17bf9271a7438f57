// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"
#include "model/memory_series.h"
#include "model/snapshot.h"
#include "os/clock.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace berth::daemon {

// The readings and durations that the forecast of the services' memory needs.
struct PastDemand {
  std::vector<model::MemoryReading> readings;  // oldest first
  std::vector<double> durations_s;             // of evictions, oldest first
};

// The readings, over a restart of the daemon. STATE_DIR/demand.json is written when it stops and read once
// when it starts. After a crash, the forecast begins anew with the samples of the workloads. Times in the
// file are seconds since the boot (os/clock.h), so another boot voids the readings. The durations of
// evictions outlive a boot. `boot_id` is empty where it is not known; then no readings are kept. Error io.
model::Result<void> save_demand(const std::filesystem::path& state_dir, const std::string& boot_id,
                                const os::Clock& clock, const model::Snapshot& snapshot);
// Readings of the last ten minutes. Removes the file. A file that cannot be read counts as none, and
// `warning` has the reason.
PastDemand take_demand(const std::filesystem::path& state_dir, const std::string& boot_id,
                       const os::Clock& clock, std::optional<std::string>& warning);

}  // namespace berth::daemon
