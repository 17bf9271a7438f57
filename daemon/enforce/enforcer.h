// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/discovery.h"
#include "cgroup/writer.h"
#include "config/config.h"
#include "daemon/ledger/enforcer_log.h"
#include "daemon/ledger/held.h"
#include "daemon/ledger/log_entry.h"
#include "daemon/observe/observer.h"
#include "model/plan.h"
#include "model/snapshot.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace berth::daemon {

// Whether a user could keep the workload from being managed, by writes to its control files. Work that root
// made latency-sensitive is not kept from anything by that.
inline bool is_users_best_effort(const cgroup::FoundWorkload& target) {
  return target.identity.workload_class == model::WorkloadClass::best_effort &&
         !model::may_favour_itself(target.ground, model::Word::write);
}

// Carries plans out while berth enforces. Keeps the pins and limits that berth holds, failures to be retried,
// and workloads that berth leaves alone. Every call returns entries for the log. A tick calls follow(),
// check(), apply(), in this order.
class Enforcer {
 public:
  using Found = std::map<std::string, cgroup::FoundWorkload>;
  using Groups = BestEffortGroups::Groups;
  using Others = OtherGroups::Groups;

  static constexpr double kRemembered_s = 600;

  // The part of a tick's decisions that a plan has.
  enum class Extent {
    whole,
    pins,  // policies::decide_places()
  };

  // `writer` outlives the enforcer. `read_again` is called for each workload whose settings the next reading
  // must not take from memory.
  Enforcer(cgroup::Writer& writer, std::function<void(const std::string&)> read_again)
      : writer_(writer), read_again_(std::move(read_again)) {}

  const Holdings& holdings() const { return holdings_; }
  const HeldValues& pins() const { return holdings_.of(model::Attribute::cpus); }
  const LeftAloneWorkloads& left_alone() const { return left_alone_; }
  const RefusedLimits& refused() const { return refused_; }
  // True where the action would have no effect: the workload is left alone, or the host refused it such a
  // limit. The refusal was logged at the attempt. A pin that a user's own group refuses has its effect at the
  // user's outermost group.
  bool refuses(const model::Action& action) const;

  // Releases workloads that vanished or whose path another cgroup took over, and follows units that
  // restarted. Call it before the tick's readings, so that these show the remaining values.
  std::vector<LogEntry> follow(const Found& found, double now);

  // Finds values that another program changed since berth wrote them, and reacts as `on_foreign` says.
  // `readings` are this tick's.
  std::vector<LogEntry> check(const Observer::Readings& readings, const Found& found, const Groups& groups,
                              const Others& others, config::ForeignWriter on_foreign, double now);

  // Gives back the limits and the priority of a workload that another program's vCPUs exempt: no plan has
  // them any more. Pins and memory nodes go by the plan. Call it before the plan is made.
  std::vector<LogEntry> let_go(const std::string& id, double now, const std::string& reason);

  // Carries the plan out, in its order. A transient error is tried again whenever the plan has the action
  // again. So is an action that was not begun within `budget`. After any other error of a pin, the workload
  // is left alone; after one of a limit, that limit is left alone. Best-effort work in a user's part of the
  // tree (model::may_favour_itself()) is never left alone: its pin goes to the user's outermost group, whose
  // control files are root's. That group has the vCPUs of all pins in it.
  //
  // vCPUs are not handed out while a latency-sensitive workload, whose move failed, still holds them. A limit
  // that returns to its original is put back, so that no trace of it is left. First of all, in a
  // part of `budget`, former groups get back what they had: of other work the vCPUs, so that a workload in
  // them may get any, and of best-effort work the priority. Changes whose outcome is unknown are put back if
  // a whole plan does not have them.
  std::vector<LogEntry> apply(const model::Plan& plan, const model::Snapshot& snapshot, const Found& found,
                              const Groups& groups, const Others& others, std::chrono::milliseconds budget,
                              Extent extent = Extent::whole);

  // Puts back what an earlier berthd changed and could not restore, as soon as that succeeds.
  void take_over(const std::vector<cgroup::UndoRecord>& records);

  // Tries again actions that berth gave up after an error, or after a foreign write.
  void retry_failed();
  void retry_foreign();

 private:
  using Key = std::pair<std::string, model::Attribute>;  // workload id and attribute
  struct Batch;

  // enforcer.cpp: values held and released.
  void release_forgotten(const model::Plan& plan, std::vector<LogEntry>& entries);
  // Begins none after `deadline`: a user can make thousands at once.
  void release_former_groups(const Groups& groups, std::chrono::steady_clock::time_point deadline, double now,
                             std::vector<LogEntry>& entries);
  // The same of other work, and of its vCPUs. Those with something of `found` or `others` in them do not
  // wait.
  void release_former_others(const Found& found, const Others& others,
                             std::chrono::steady_clock::time_point deadline, double now,
                             std::vector<LogEntry>& entries);
  // Whether the vCPUs of this id are those of a group of other work.
  bool is_other(const std::string& id) const { return others_.contains(id); }
  bool withheld_by_other(const std::string& id, const model::CpuSet& cpus) const;
  bool has_kept(const cgroup::FoundWorkload& target, const cgroup::Value& value) const;
  void settle(std::vector<LogEntry>& entries, double now);
  void release(const std::string& id, model::Attribute attribute, double now, const std::string& reason,
               std::vector<LogEntry>& entries);
  void leave_alone(const std::string& id, LeftAlone why, double now, std::vector<LogEntry>& entries);
  void fail(const cgroup::FoundWorkload& target, model::Attribute attribute, const model::Error& error,
            LogEntry entry, std::vector<LogEntry>& entries);

  // enforcer_ground.cpp: work that cannot be confined at its own group.
  void cannot_hold(const cgroup::FoundWorkload& target, model::Attribute attribute, double now,
                   const std::string& why, bool foreign, std::vector<LogEntry>& entries);
  void pin_at_ground(const cgroup::FoundWorkload& target, const model::CpuSet& cpus, LogEntry entry,
                     std::vector<LogEntry>& entries);
  // Has new groups of users that did not let others be confined confined at their outermost group at once.
  void remember_offences(const Found& found, double now);
  void confine_grounds(const Found& found, double now, std::vector<LogEntry>& entries);
  bool confine_ground(cgroup::FoundWorkload& ground, const model::CpuSet& cpus, double now,
                      std::vector<LogEntry>& entries);

  // enforcer_foreign.cpp: values that another program changed.
  void take_up_again(const Observer::Readings& readings, double now, std::vector<LogEntry>& entries);
  bool take_up(const cgroup::FoundWorkload& group, const cgroup::Value& current, double now);
  void judge_value(const cgroup::FoundWorkload& target, const cgroup::Value& current,
                   config::ForeignWriter on_foreign, double now, std::vector<LogEntry>& entries);
  void found_foreign(const cgroup::FoundWorkload& target, model::Attribute attribute,
                     config::ForeignWriter on_foreign, LogEntry entry, std::vector<LogEntry>& entries);
  void write_again(const cgroup::FoundWorkload& target, model::Attribute attribute, LogEntry entry,
                   std::vector<LogEntry>& entries);

  // enforcer_apply.cpp: a plan carried out.
  void pin(const cgroup::FoundWorkload& target, const model::CpuSet& cpus, LogEntry entry, Batch& batch);
  void limit(const cgroup::FoundWorkload& target, const model::Action& action, model::Attribute attribute,
             Batch& batch);
  static bool is_late(const Batch& batch);
  void flush(Batch& batch);
  void take_result(const cgroup::Request& request, const cgroup::SetResult& result, LogEntry entry,
                   Batch& batch);
  void give_back(const cgroup::FoundWorkload& target, model::Attribute attribute, LogEntry entry,
                 Batch& batch);

  cgroup::Writer& writer_;
  std::function<void(const std::string&)> read_again_;
  Holdings holdings_;
  LeftAloneWorkloads left_alone_;
  RefusedLimits refused_;
  std::map<Key, std::uint32_t> attempts_;  // failed ones since the last success
  std::set<std::string> others_;           // groups of other work with vCPUs that are held or refused
  // Best-effort workloads whose own group refuses pins, by id: the outermost group of their user.
  std::map<std::string, std::string> confined_at_;
  std::map<std::string, cgroup::FoundWorkload> grounds_;  // by path: those that have pins
  // Writes of a user that kept pins from being held in its groups. Its next group may do the same, so this
  // outlives them for kRemembered_s.
  struct Offence {
    std::uint32_t writes = 0;  // that berth found and wrote over
    bool given_up = false;     // its new groups are confined at the outermost one at once
    double last = 0;           // epoch seconds
  };
  std::map<std::string, Offence> offences_;  // by the user's outermost group
  bool settle_ = false;                      // systemd may have to read its units again
  std::optional<double> settled_at_;         // epoch seconds, when it last had to
};

}  // namespace berth::daemon
