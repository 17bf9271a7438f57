// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/discovery.h"
#include "cgroup/writer.h"
#include "config/config.h"
#include "daemon/log_entry.h"
#include "daemon/observer.h"
#include "daemon/pin.h"
#include "model/plan.h"
#include "model/snapshot.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace berth::daemon {

// Carries plans out while berth enforces, and knows what it holds: pins, failures to be retried, workloads it
// leaves alone. Every call returns what happened, for the log. A tick calls follow(), check(), apply(), in
// this order.
class Enforcer {
 public:
  using Found = std::map<std::string, cgroup::FoundWorkload>;

  // `writer` outlives the enforcer. `read_again` is told each workload whose settings the next readings must
  // not take from memory.
  Enforcer(cgroup::Writer& writer, std::function<void(const std::string&)> read_again)
      : writer_(writer), read_again_(std::move(read_again)) {}

  const Pins& pins() const { return pins_; }
  const UnmanagedWorkloads& unmanaged() const { return unmanaged_; }

  // Lets go of workloads that vanished or whose path another cgroup took over, and follows units that
  // restarted. Before the tick's readings, so that these show what is left of their pins.
  std::vector<LogEntry> follow(const Found& found, double now);

  // Looks for values that somebody else changed since berth wrote them, and does what `on_foreign` says.
  // `readings` are this tick's.
  std::vector<LogEntry> check(const Observer::Readings& readings, const Found& found,
                              config::ForeignWriter on_foreign, double now);

  // Carries the plan out, in its order. A transient error is tried again whenever the plan comes up again,
  // and so is what was not begun within `budget`; any other error makes the workload unmanaged. No vCPUs are
  // handed out while a latency-sensitive workload, whose move failed, still holds them.
  std::vector<LogEntry> apply(const model::Plan& plan, const model::Snapshot& snapshot, const Found& found,
                              std::chrono::milliseconds budget);

  // Makes workloads managed again that an error, or a foreign writer, has made unmanaged.
  void retry_failed();
  void retry_foreign();

 private:
  struct Batch;
  void flush(Batch& batch);
  void unpin(const std::string& id, LogEntry entry, Batch& batch);
  void fail(const cgroup::FoundWorkload& target, const model::Error& error, LogEntry entry,
            std::vector<LogEntry>& entries);
  void found_foreign(const cgroup::FoundWorkload& target, const std::string& value,
                     config::ForeignWriter on_foreign, LogEntry entry, std::vector<LogEntry>& entries);
  void write_again(const cgroup::FoundWorkload& target, LogEntry entry, std::vector<LogEntry>& entries);
  void settle(std::vector<LogEntry>& entries, double now);

  cgroup::Writer& writer_;
  std::function<void(const std::string&)> read_again_;
  Pins pins_;
  UnmanagedWorkloads unmanaged_;
  std::map<std::string, std::uint32_t> attempts_;  // failed ones since the last success, by workload
  bool settle_ = false;                            // systemd may have to read its units again
};

// Entries of what a restore did, found and missed.
std::vector<LogEntry> entries_of(const cgroup::RestoreReport& report, double now, const char* mode,
                                 const std::string& reason);

}  // namespace berth::daemon
