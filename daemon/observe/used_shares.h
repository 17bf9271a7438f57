// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"
#include "model/plan.h"
#include "model/snapshot.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace berth::daemon {

// The largest shares of the requests in use over the last day. With them, overselling knows the tides that
// its window of samples is too short for (docs/algorithms.md, overselling). Kept in
// STATE_DIR/used_shares.json. The file is about the node and no cgroup, so that it survives restarts and
// boots.
class UsedShares {
 public:
  static constexpr double kSpan_s = 300;   // the time of one entry
  static constexpr double kDay_s = 86400;  // how long it counts
  static constexpr double kMinute_s = 60;  // CPU use is averaged over this time

  // Reads an earlier daemon's file, of the last day before `now`. A file that cannot be read counts as none,
  // and `warning` has the reason.
  UsedShares(const std::filesystem::path& state_dir, double now, std::optional<std::string>& warning);

  // Adds a tick's findings. True where a new entry began: then the earlier ones are worth saving.
  bool take(const model::Plan& plan);
  // Oldest first, 290 at most.
  const std::vector<model::UsedShare>& all() const { return entries_; }

  // Replaces the file at once. Error io.
  model::Result<void> save() const;

 private:
  bool close_minute();
  void forget_old(double now);

  std::filesystem::path file_;
  std::vector<model::UsedShare> entries_;
  // Of the minute that began at minute_.
  double minute_ = 0;
  double cpu_sum_ = 0;
  int readings_ = 0;
  double memory_most_ = 0;
};

}  // namespace berth::daemon
