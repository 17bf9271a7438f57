// SPDX-License-Identifier: Apache-2.0
#include "daemon/messenger.h"

#include "daemon/ledger/action_log.h"
#include "os/clock.h"
#include "os/log.h"

#include <utility>

namespace berth::daemon {

Messenger::Messenger(const Setup& setup, const Observer& observer) : setup_(setup), observer_(observer) {
  open_log();
  if (const auto& problem = log_->problem()) os::log_warning("{}", *problem);
}

void Messenger::open_log() {
  log_ = std::make_unique<DecisionLog>(setup_.options.state_dir, setup_.settings.log_retention_s,
                                       setup_.clock, setup_.boot_id);
}

void Messenger::follow_settings() {
  log_->set_retention(setup_.settings.log_retention_s);
  if (log_->problem() && !log_->is_waiting()) open_log();
}

void Messenger::publish(std::vector<LogEntry> entries, const StragglersNews& news) {
  bus_.tell(write(std::move(entries)), news);
}

void Messenger::record(std::vector<LogEntry> entries) { write(std::move(entries)); }

// The user that may make workloads there; nullopt for root, and for what is no workload's.
std::optional<uid_t> Messenger::user_of(const std::string& workload) const {
  if (workload.empty()) return std::nullopt;
  const auto found = observer_.found().find(workload);
  if (found != observer_.found().end()) return found->second.ground.user;
  const auto group = observer_.groups().find(workload);
  if (group != observer_.groups().end()) return group->second.target.ground.user;
  const auto other = observer_.others().find(workload);
  return other == observer_.others().end() ? JournalShares::kUnknown : other->second.target.ground.user;
}

bool Messenger::may_announce(const std::string& workload) {
  return journal_shares_.take(user_of(workload), os::monotonic_s());
}

// Returns them as they were written.
std::vector<LogEntry> Messenger::write(std::vector<LogEntry> entries) {
  const double ahead_s = setup_.clock.wall_ahead_s();
  std::vector<LogEntry> stored;
  for (LogEntry& entry : entries) {
    entry.time += ahead_s;
    if (entry.kind == kAdmit || may_announce(entry.workload)) announce(entry);
    ++decisions_[{entry.kind, entry.result}];
    // berth ends workloads at its own pace, and asks of admission come from root.
    entry.user = entry.kind == kAdmit ? std::nullopt : user_of(entry.workload);
    if (entry.kind == "evict" || log_shares_.take(entry.user, os::monotonic_s())) stored.push_back(entry);
  }
  const bool stored_before = !log_->problem();
  log_->append(stored);
  if (stored_before && log_->problem()) os::log_warning("{}", *log_->problem());
  bus_.decided(entries);
  return entries;
}

}  // namespace berth::daemon
