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

// How much of what was asked for was in use over the last day, for overselling to know the tides that its
// window of samples is too short for (docs/algorithms.md, overselling). Kept in STATE_DIR/used_shares.json:
// it speaks of the node and of no cgroup, so that it outlives restarts and boots.
class UsedShares {
 public:
  static constexpr double kSpan_s = 300;   // what one entry stands for
  static constexpr double kDay_s = 86400;  // how long it counts
  static constexpr double kMinute_s = 60;  // CPU use is averaged over so long

  // Reads what an earlier daemon left, of the last day by `now`; a file that cannot be read is as good as
  // none, and `warning` says so.
  UsedShares(const std::filesystem::path& state_dir, double now, std::optional<std::string>& warning);

  // Adds what a tick found. True where an entry was begun, so that what was before is worth writing down.
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
