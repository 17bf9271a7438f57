// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/ledger/log_entry.h"
#include "daemon/ledger/log_filter.h"
#include "model/error.h"
#include "os/clock.h"
#include "os/worker.h"

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
//
// A thread of its own writes and reads the file, as a disk can take seconds or hang. The caller waits for it
// kPatience at most, and once. Entries then wait in memory, and the file gets them when the disk answers.
class DecisionLog {
 public:
  static constexpr os::Worker::Patience kPatience{500};
  static constexpr std::size_t kMaxWaiting = 10'000;  // entries; older ones are lost
  static constexpr std::size_t kMaxEntries = 100'000;
  // Of these: about workloads of one user, and of all users together. So no user pushes out what concerns
  // others.
  static constexpr std::size_t kMaxOfUser = 5'000;
  static constexpr std::size_t kMaxOfUsers = 50'000;
  static constexpr std::size_t kMaxAnswer = 10'000;  // keeps an answer far below the bus's message limit
  static constexpr std::size_t kMaxInMemory = 256;

  // `boot_id` is empty where it is not known.
  DecisionLog(const std::filesystem::path& state_dir, double retention_s, os::Clock clock = os::Clock(),
              const std::string& boot_id = {});
  // Waits a few seconds for what is still to be written.
  ~DecisionLog();
  DecisionLog(const DecisionLog&) = delete;
  DecisionLog& operator=(const DecisionLog&) = delete;

  // All entries in one transaction.
  void append(const std::vector<LogEntry>& entries);
  // Writes entries that wait, where the disk answers again. Call it in each tick.
  void go_on() { write(kPatience); }
  // Newest first; `limit` 0, or above kMaxAnswer, means kMaxAnswer.
  std::vector<LogEntry> newest(std::size_t limit) const { return find({}, limit); }
  // The newest of those that the filter accepts, likewise.
  std::vector<LogEntry> find(const LogFilter& filter, std::size_t limit) const;
  // The outcomes of one decision, newest first, at most kMaxInMemory entries.
  std::vector<LogEntry> of_decision(const std::string& decision) const;
  // Takes effect at the next append.
  void set_retention(double retention_s) { retention_s_ = retention_s; }
  // Why entries are not stored on disk; nullopt while they are.
  const std::optional<std::string>& problem() const { return problem_; }
  // Whether the disk has not answered yet.
  bool is_waiting() const { return worker_.is_busy(); }

 private:
  class Store;

  void write(os::Worker::Patience patience);
  void took_too_long();
  // The answer of the file; nullopt where it does not come, or there is no file.
  std::optional<std::vector<LogEntry>> ask(const std::string& decision, const LogFilter& filter,
                                           std::size_t limit) const;

  std::filesystem::path file_;
  double retention_s_;
  os::Clock clock_;
  std::shared_ptr<Store> store_;  // the thread's, while a job runs
  mutable os::Worker worker_;
  std::vector<LogEntry> waiting_;  // oldest first
  bool late_ = false;              // a job was given up, and its outcome is not known
  std::deque<LogEntry> recent_;    // newest first
  std::optional<std::string> problem_;
};

}  // namespace berth::daemon
