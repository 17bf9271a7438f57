// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/discovery.h"
#include "cgroup/writer.h"
#include "config/config.h"
#include "daemon/enforcer_log.h"
#include "daemon/held.h"
#include "daemon/log_entry.h"
#include "daemon/observer.h"
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

// Carries plans out while berth enforces, and knows what it holds: pins and limits, failures to be retried,
// workloads it leaves alone. Every call returns what happened, for the log. A tick calls follow(), check(),
// apply(), in this order.
class Enforcer {
 public:
  using Found = std::map<std::string, cgroup::FoundWorkload>;

  // `writer` outlives the enforcer. `read_again` is told each workload whose settings the next readings must
  // not take from memory.
  Enforcer(cgroup::Writer& writer, std::function<void(const std::string&)> read_again)
      : writer_(writer), read_again_(std::move(read_again)) {}

  const Holdings& holdings() const { return holdings_; }
  const HeldValues& pins() const { return holdings_.cpus; }
  const UnmanagedWorkloads& unmanaged() const { return unmanaged_; }
  const RefusedLimits& refused() const { return refused_; }
  // True where nothing comes of it: the workload is unmanaged, or the host does not let it have such a limit,
  // which was said when it was tried.
  bool refuses(const model::Action& action) const;

  // Lets go of workloads that vanished or whose path another cgroup took over, and follows units that
  // restarted. Before the tick's readings, so that these show what is left of what was held.
  std::vector<LogEntry> follow(const Found& found, double now);

  // Looks for values that somebody else changed since berth wrote them, and does what `on_foreign` says.
  // `readings` are this tick's.
  std::vector<LogEntry> check(const Observer::Readings& readings, const Found& found,
                              config::ForeignWriter on_foreign, double now);

  // Carries the plan out, in its order. A transient error is tried again whenever the plan comes up again,
  // and so is what was not begun within `budget`. Any other error makes the workload unmanaged where it was
  // of a pin; of a limit it is remembered, and that limit left alone. No vCPUs are handed out while a
  // latency-sensitive workload, whose move failed, still holds them. A limit that is to be what it was before
  // berth is put back, so that nothing of it is left.
  std::vector<LogEntry> apply(const model::Plan& plan, const model::Snapshot& snapshot, const Found& found,
                              std::chrono::milliseconds budget);

  // Tries again what an error has made berth leave alone, or a foreign writer.
  void retry_failed();
  void retry_foreign();

 private:
  using Key = std::pair<std::string, cgroup::Attribute>;  // workload id and what of it
  struct Batch;

  // enforcer.cpp: what is held, and what is let go of.
  void release_forgotten(const model::Plan& plan, std::vector<LogEntry>& entries);
  void settle(std::vector<LogEntry>& entries, double now);
  void release(const std::string& id, cgroup::Attribute attribute, double now, const std::string& reason,
               std::vector<LogEntry>& entries);
  void leave_alone(const std::string& id, Unmanaged why, double now, std::vector<LogEntry>& entries);
  void fail(const cgroup::FoundWorkload& target, cgroup::Attribute attribute, const model::Error& error,
            LogEntry entry, std::vector<LogEntry>& entries);

  // enforcer_foreign.cpp: what somebody else changed.
  void take_up_again(const Observer::Readings& readings, double now, std::vector<LogEntry>& entries);
  void found_foreign(const cgroup::FoundWorkload& target, cgroup::Attribute attribute,
                     config::ForeignWriter on_foreign, LogEntry entry, std::vector<LogEntry>& entries);
  void write_again(const cgroup::FoundWorkload& target, cgroup::Attribute attribute, LogEntry entry,
                   std::vector<LogEntry>& entries);

  // enforcer_apply.cpp: a plan carried out.
  void pin(const cgroup::FoundWorkload& target, const model::PinAction& action, LogEntry entry, Batch& batch);
  void limit(const cgroup::FoundWorkload& target, const model::Action& action, cgroup::Attribute attribute,
             Batch& batch);
  void flush(Batch& batch);
  void take_result(const cgroup::Request& request, const cgroup::SetResult& result, LogEntry entry,
                   Batch& batch);
  void give_back(const cgroup::FoundWorkload& target, cgroup::Attribute attribute, LogEntry entry,
                 Batch& batch);

  cgroup::Writer& writer_;
  std::function<void(const std::string&)> read_again_;
  Holdings holdings_;
  UnmanagedWorkloads unmanaged_;
  RefusedLimits refused_;
  std::map<Key, std::uint32_t> attempts_;  // failed ones since the last success
  bool settle_ = false;                    // systemd may have to read its units again
};

}  // namespace berth::daemon
