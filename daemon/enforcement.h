// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/discovery.h"
#include "cgroup/host_lock.h"
#include "cgroup/restore.h"
#include "cgroup/writer.h"
#include "daemon/enforce/actuators.h"
#include "daemon/enforce/enforcer.h"
#include "daemon/enforce/eviction_timer.h"
#include "daemon/enforce/evictor.h"
#include "daemon/enforce/leaves.h"
#include "daemon/interrupts.h"
#include "daemon/ledger/held.h"
#include "daemon/ledger/log_entry.h"
#include "daemon/ledger/overrides.h"
#include "daemon/observe/observer.h"
#include "daemon/senses.h"
#include "daemon/setup.h"
#include "model/capability.h"
#include "model/error.h"
#include "model/plan.h"
#include "model/standing.h"
#include "policies/after.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <systemd/sd-event.h>

namespace berth::daemon {

// The mode, and all that may change the host. While enforcing, it carries plans out and can take everything
// back.
class Enforcement {
 public:
  // Takes entries of changes that no step of a tick made.
  using Publish = std::function<void(std::vector<LogEntry>)>;
  // How long the loop may restore at once. begin_tick() does the rest.
  static constexpr std::chrono::milliseconds kRestoreBudget{2000};

  // `host_lock`: nullopt where it cannot be had now. `setup` and `senses` outlive this object.
  Enforcement(const Setup& setup, Senses& senses, std::optional<cgroup::HostLock> host_lock, Publish publish);

  // Opens the undo journal, and puts back everything that an earlier berthd left behind. Does nothing where
  // it is open. Error refused where another berthd has the lock of this host or the journal.
  model::Result<void> open();
  // Begins to enforce. Error unavailable where the host does not let berth do that.
  model::Result<void> begin();
  // Ends evictions, puts everything back, and observes from now on. Writes for as long as `budget`;
  // begin_tick() does the rest then.
  cgroup::RestoreReport end(const std::string& reason, std::chrono::milliseconds budget);
  // Takes over settings that were read again, and tries again to do what failed.
  void follow_settings();
  // Takes over foreign_writer alone.
  void follow_foreign_writer();
  // Each change waits for systemd's answer from now on, as no tick follows.
  void be_patient();

  bool enforces() const { return enforcer_.has_value(); }
  const char* mode() const { return enforces() ? "enforce" : "observe"; }
  // Why the host could not be enforced on now; nullopt where it could.
  std::optional<std::string> problem() const;
  const std::optional<std::string>& journal_problem() const { return journal_problem_; }
  std::size_t undo_records() const { return actuators_ ? actuators_->journal().size() : 0; }
  // nullopt where there is no undo journal.
  std::optional<model::Capability> systemd() const;
  EvictionCounts eviction_counts() const { return evictor_.counts(); }
  std::vector<double> take_eviction_durations() { return evictor_.take_durations(); }
  // Values that really are held; none while observing. Likewise the workloads that are left alone.
  const Holdings& holdings() const;
  const LeftAloneWorkloads& left_alone() const;
  // nullopt where interrupts stay where they are.
  std::optional<InterruptsReport> interrupts() const;

  // Beside the readings, a snapshot for the plan has these.
  SnapshotInputs inputs(const Overrides& overrides, const model::Standing& standing) const;

  // The steps of a tick, in this order. `now`: epoch seconds. Those with entries return what they did.
  // Without "observing", a step is of enforcing alone.
  void begin_tick();  // puts back what end() left; also observing
  std::vector<LogEntry> follow(double now);
  std::vector<LogEntry> check(double now);
  std::vector<LogEntry> advance(double now);
  std::vector<LogEntry> let_go_of_spared(double now);
  void drop_refused(model::Plan& plan);  // takes actions out of it that would have no effect
  // Adds the workloads whose eviction began to `outcomes`.
  std::vector<LogEntry> evict(const model::Plan& plan, double now, policies::Outcomes& outcomes);
  std::vector<LogEntry> apply(const model::Plan& plan, Enforcer::Extent extent = Enforcer::Extent::whole);
  // Keeps interrupts off the vCPUs that the plan gives to instances.
  std::vector<LogEntry> move_interrupts(const model::Plan& plan, double now);
  std::vector<LogEntry> divide(double now);
  void end_tick();  // puts back leaves that came too late; also observing

  // Begins an eviction by hand; returns its decision. Error refused, with the reason; gone.
  model::Result<std::string> evict_by_hand(const cgroup::FoundWorkload& target, const Overrides& overrides);
  // The workload must not be evicted any more.
  std::vector<LogEntry> let_go(const std::string& id, const std::string& reason);
  // Evictions go on between ticks, from here on.
  void watch_evictions(sd_event* event);
  // Call it before the event loop ends.
  void detach() { eviction_timer_.detach(); }

 private:
  model::Result<void> take_host_lock();
  void put_back_left_behind();
  cgroup::RestoreReport restore_all(std::chrono::milliseconds budget);
  // Whether executors are to have cgroups of their own.
  bool makes_leaves() const { return setup_.settings.spark_watch && setup_.settings.spark_leaf; }
  bool moves_interrupts() const;
  void put_back_leaves(const std::string& reason);
  std::vector<cgroup::PutBack> take_leaves();
  void advance_between_ticks();

  const Setup& setup_;
  Senses& senses_;
  Observer& observer_;
  Publish publish_;
  std::optional<cgroup::HostLock> host_lock_;  // held as long as the host may be changed
  std::unique_ptr<Actuators> actuators_;       // null: journal_problem_ says why
  std::optional<std::string> journal_problem_;
  std::optional<Enforcer> enforcer_;      // while enforcing
  std::optional<Interrupts> interrupts_;  // likewise
  Evictor evictor_;                       // evicts nothing while observing
  EvictionTimer eviction_timer_;
  Leaves leaves_;
  std::uint64_t followed_ = 0;  // the generation of workloads whose holdings were looked at
};

}  // namespace berth::daemon
