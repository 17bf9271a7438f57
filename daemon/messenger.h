// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/ledger/decision_log.h"
#include "daemon/ledger/journal_shares.h"
#include "daemon/ledger/log_entry.h"
#include "daemon/ledger/straggler_news.h"
#include "daemon/observe/observer.h"
#include "daemon/serve/bus_link.h"
#include "daemon/setup.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace berth::daemon {

// Tells what berthd did: in the journal, in the decision log and on the bus. Entries come with times of
// berthd's clock. People read them, so they leave with times of the wall clock.
class Messenger {
 public:
  // Logs why the decision log is in memory only. Both arguments outlive the messenger.
  Messenger(const Setup& setup, const Observer& observer);

  // Journal, decision log, and the bus, which also hears of the changes of the host since the last call.
  void publish(std::vector<LogEntry> entries, const StragglersNews& news = {});
  // Journal and decision log alone, and the signal Decided.
  void record(std::vector<LogEntry> entries);

  // Whether the journal may have another message about a workload: those of one user have a limit. A message
  // about none is berth's own.
  bool may_announce(const std::string& workload);

  BusLink& bus() { return bus_; }
  const BusLink& bus() const { return bus_; }
  DecisionLog& log() { return *log_; }
  const DecisionLog& log() const { return *log_; }
  // Of all entries since berthd started.
  const DecisionCounts& decisions() const { return decisions_; }
  // Takes over settings that were read again, and opens a decision log anew that had failed.
  void follow_settings();

 private:
  void open_log();
  std::optional<uid_t> user_of(const std::string& workload) const;
  std::vector<LogEntry> write(std::vector<LogEntry> entries);

  const Setup& setup_;
  const Observer& observer_;
  std::unique_ptr<DecisionLog> log_;
  JournalShares journal_shares_;
  JournalShares log_shares_{"entries for the decision log"};
  DecisionCounts decisions_;
  BusLink bus_;
};

}  // namespace berth::daemon
