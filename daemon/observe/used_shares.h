// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"
#include "model/plan.h"
#include "model/snapshot.h"
#include "os/background_save.h"
#include "os/clock.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace berth::daemon {

// The largest shares of the requests in use over the last day. With them, overselling knows the tides that
// its window of samples is too short for (docs/decisions/overselling.md). Kept in
// STATE_DIR/used_shares.json. The file is about the host and no cgroup, so that it survives restarts and
// boots.
//
// Times in the file are of the wall clock. A daemon of the same boot knows by how much the wall clock was set
// since. Entries of an earlier boot keep their times of the wall clock: they count by what it shows at
// present, as it may be wrong until NTP corrects it. They go a day after the start, and no earlier.
class UsedShares {
 public:
  static constexpr double kSpan_s = 300;   // the time of one entry
  static constexpr double kDay_s = 86400;  // how long it counts
  static constexpr double kMinute_s = 60;  // CPU use is averaged over this time

  // Reads an earlier daemon's file, of the last day. A file that cannot be read counts as none, and `warning`
  // has the reason. `boot_id` is empty where it is not known.
  UsedShares(const std::filesystem::path& state_dir, os::Clock clock, std::string boot_id,
             std::optional<std::string>& warning);

  // Adds a tick's findings. True where a new entry began: then the earlier ones are worth saving.
  bool take(const model::Plan& plan);
  // Oldest first, of the last day: 290 at most.
  const std::vector<model::UsedShare>& all() const { return all_; }

  // Replaces the file at once, and waits until it is on the disk: the figures of a day survive power loss.
  // Error io.
  model::Result<void> save();
  // The same on a thread of its own, as the disk may take seconds. Returns what became of the save before.
  // Does nothing while that one still goes on.
  model::Result<void> save_in_background();

 private:
  std::string document() const;
  bool close_minute();
  // Forgets what is old, and makes all_ anew.
  void gather(double now);

  os::BackgroundSave file_;
  os::Clock clock_;
  std::string boot_id_;
  double began_;
  std::vector<model::UsedShare> before_;   // of earlier boots, in times of the wall clock
  std::vector<model::UsedShare> entries_;  // of this boot
  std::vector<model::UsedShare> all_;
  // Of the minute that began at minute_.
  double minute_ = 0;
  double cpu_sum_ = 0;
  int readings_ = 0;
  double memory_most_ = 0;
};

}  // namespace berth::daemon
