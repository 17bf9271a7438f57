// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/ledger/log_entry.h"
#include "model/error.h"
#include "os/clock.h"
#include "os/sqlite.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace berth::daemon {

// berth's actions, real and observed, kept in STATE_DIR/decisions.db (SQLite), bounded in age and number.
// Entries have times of the wall clock. The age of an entry of this boot is that by CLOCK_BOOTTIME, whatever
// the wall clock was set to. An entry of an earlier boot has the age that the wall clock says. The first look
// for old ones comes after ten minutes, as the wall clock of a booting host may be wrong until NTP corrects
// it. Logging never stops the daemon: without a usable directory only the newest entries are kept, in memory.
class DecisionLog {
 public:
  static constexpr std::size_t kMaxEntries = 100'000;
  static constexpr std::size_t kMaxAnswer = 10'000;  // keeps an answer far below the bus's message limit
  static constexpr std::size_t kMaxInMemory = 256;

  // `boot_id` is empty where it is not known.
  DecisionLog(const std::filesystem::path& state_dir, double retention_s, os::Clock clock = os::Clock(),
              const std::string& boot_id = {});
  DecisionLog(const DecisionLog&) = delete;
  DecisionLog& operator=(const DecisionLog&) = delete;

  // All entries in one transaction.
  void append(const std::vector<LogEntry>& entries);
  // Newest first; `limit` 0, or above kMaxAnswer, means kMaxAnswer.
  std::vector<LogEntry> newest(std::size_t limit) const;
  // The outcomes of one decision, newest first, at most kMaxInMemory entries.
  std::vector<LogEntry> of_decision(const std::string& decision) const;
  // Takes effect at the next append.
  void set_retention(double retention_s) { retention_s_ = retention_s; }
  // Why entries are not stored on disk; nullopt while they are.
  const std::optional<std::string>& problem() const { return problem_; }

 private:
  model::Result<void> prepare(const std::string& boot_id);
  model::Result<void> store(const std::vector<LogEntry>& entries);
  model::Result<void> prune();

  std::filesystem::path file_;
  double retention_s_;
  os::Clock clock_;
  double pruned_at_;
  std::int64_t boot_ = 0;  // its number in the table of boots; 0: not known
  std::unique_ptr<os::Database> database_;
  std::deque<LogEntry> recent_;  // newest first
  std::optional<std::string> problem_;
};

}  // namespace berth::daemon
