// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/cgroup.h"
#include "cgroup/discovery.h"
#include "cgroup/processes.h"
#include "cgroup/scope_maker.h"
#include "daemon/ledger/eviction_marks.h"
#include "daemon/ledger/log_entry.h"
#include "model/error.h"
#include "model/plan.h"
#include "model/workload.h"
#include "os/worker.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace berth::daemon {

// Since berthd started.
struct EvictionCounts {
  std::uint64_t decommission = 0;  // how often each step was taken
  std::uint64_t terminate = 0;
  std::uint64_t kill = 0;
  std::uint64_t ended = 0;  // victims that are gone
  std::size_t under_way = 0;
};

// Ends workloads, step by step; after each step the workload has time to end by itself
// (docs/ending-a-workload.md). The steps are: decommission (SIGPWR, once, to a Spark executor that handles
// it), terminate (systemd stops its own unit; anything else gets SIGTERM), kill (cgroup.kill).
//
// Of a container of a Kubernetes pod the whole pod ends, as its containers live and die together. The first
// step then is decommission, too: the eviction is published, and berth-kube asks the Eviction API for the
// pod. The later steps reach the rest of the pod, in the pod's own cgroup.
//
// No call blocks: due_s() tells when advance() has work. Processes are held by pidfd and cgroup directory, so
// that a successor is never hit. Nothing depends on berthd: a step that was taken goes on without it, and no
// further step follows.
class Evictor {
 public:
  static constexpr double kComesBack_s = 60;
  // How long a workload is spared whose processes cannot be looked at. They may be slow for lack of memory,
  // so this is short.
  static constexpr double kLooksAgain_s = 10;

  struct Options {
    std::filesystem::path proc_root = "/proc";
    std::function<cgroup::UnitStopper*()> units;  // nullptr where systemd cannot be asked
    // Whether systemd runs this host. Then a unit that it cannot be asked to stop is left, as systemd would
    // start it anew. On other hosts a cgroup that looks like a unit gets signals, like any other.
    bool systemd_runs = false;
    std::function<double()> monotonic;  // seconds
  };
  explicit Evictor(Options options) : options_(std::move(options)) {}

  using Found = std::map<std::string, cgroup::FoundWorkload>;

  // Why this workload is not evicted. It is latency-sensitive, spared, a slice or berth itself; or it has the
  // init process; or it is being evicted already. Returns nullopt where it can be evicted. `target` is the
  // whole that ends: its cgroup is a container's or, if it is one of a pod, the pod's.
  std::optional<std::string> refusal(const cgroup::FoundWorkload& target,
                                     const model::Workload& workload) const;

  // Takes the first step of `action`, an evict action with its decision, at epoch `now`. Returns the entries
  // of the step. Errors, without an entry: refused, gone, or transient where other processes share the cgroup
  // just now, or where the processes cannot be looked at. The latter spares the workload for kLooksAgain_s.
  // `found`: all workloads of the host, for the other containers of its pod. They are marked as being
  // evicted, too; refused where one of them is latency-sensitive.
  model::Result<std::vector<LogEntry>> begin(const cgroup::FoundWorkload& target,
                                             const model::Workload& workload, const model::Action& action,
                                             double now, const Found& found = {});
  // Takes the steps that are due, and notices which victims have ended.
  std::vector<LogEntry> advance(double now);
  // Seconds until the next call of advance(); nullopt while no workload is being evicted.
  std::optional<double> due_s() const;
  // Takes no further steps; a victim that was asked to end may still do so.
  std::vector<LogEntry> abandon(double now, const std::string& reason);

  const EvictionMarks& marks() const { return marks_; }
  // Takes no further step against a workload that must not be evicted any more.
  std::vector<LogEntry> let_go(const std::string& id, double now, const std::string& reason);
  // Marks this run as one that cannot be evicted, for later snapshots.
  void spare(const cgroup::FoundWorkload& target);
  // Forgets runs that are over. Spares a run that began within kComesBack_s of its predecessor's end: the
  // next victim is another one.
  void forget_departed(const std::map<std::string, cgroup::FoundWorkload>& found);
  // Lets evictions that failed be tried again.
  void retry_failed();
  EvictionCounts counts() const;
  // Of the evictions that ended since the last call: seconds from the first step to the end.
  std::vector<double> take_durations() { return std::exchange(durations_s_, {}); }

 private:
  struct Victim {
    std::shared_ptr<cgroup::Cgroup> cgroup;
    std::string unit;
    std::string confined_at;  // the outermost group of its user; empty for root's
    bool executor = false;
    bool pod = false;    // the cgroup is a pod's
    bool asked = false;  // berth-kube had the time of one step to have the pod evicted
    // The workloads that end with it, itself among them, and the ids of their cgroups.
    std::vector<std::pair<std::string, std::uint64_t>> members;
    model::Action action;
    model::EvictionStep next = model::EvictionStep::decommission;  // the step that is due at next_at
    double grace_s = 0;
    // Monotonic seconds.
    double began_at = 0;
    double next_at = 0;
    std::optional<double> killed_at = std::nullopt;
    std::uint32_t failures = 0;
    std::optional<LogEntry> unanswered = std::nullopt;  // systemd may still stop the unit
    cgroup::Processes last;                             // as of the last look
    cgroup::Processes moved = {};                       // those of earlier looks that have left it since
    cgroup::EmptyWatch watch;
    std::string invocation;                 // of a unit's run
    bool of_a_user = false;                 // a user that is not root owns the group
    std::optional<pid_t> decommissionable;  // an executor that handles SIGPWR
    bool over = false;

    const model::Evict& eviction() const { return std::get<model::Evict>(action.what); }
  };

  // A look at the processes of a workload right before its eviction.
  struct Look {
    std::optional<std::string> shared;      // spark::shared_now()
    std::optional<pid_t> decommissionable;  // see Victim
  };
  std::optional<Look> look_at(const cgroup::FoundWorkload& target, const cgroup::Processes& processes);
  static model::Result<cgroup::FoundWorkload> whole_of(const cgroup::FoundWorkload& target,
                                                       const Found& found);
  void mark(const Victim& victim, std::optional<double> evicted_at);
  void unmark(const Victim& victim);
  void ask_for_the_pod(Victim& victim, double now, std::vector<LogEntry>& entries);
  void spare_for_a_while(const cgroup::FoundWorkload& target);

  void spare_those_that_came_back(const std::map<std::string, cgroup::FoundWorkload>& found);
  static bool is_same_run(const Victim& victim, const cgroup::Processes& now);
  static bool is_same_run(const Victim& victim);
  LogEntry entry_of(const Victim& victim, double now, std::string step) const;
  bool has_ended(Victim& victim, double now, std::vector<LogEntry>& entries);
  void kill_moved(Victim& victim, double now, std::vector<LogEntry>& entries);
  void end(Victim& victim, LogEntry entry, std::vector<LogEntry>& entries);
  void take(Victim& victim, double now, std::vector<LogEntry>& entries);
  void wait_for_next(Victim& victim, model::EvictionStep next);
  bool decommission(Victim& victim, double now, std::vector<LogEntry>& entries);
  void terminate(Victim& victim, double now, std::vector<LogEntry>& entries);
  std::shared_ptr<cgroup::Cgroup> group_to_kill(const Victim& victim) const;
  void kill(Victim& victim, double now, std::vector<LogEntry>& entries);
  void give_up(Victim& victim, LogEntry entry, std::string error, std::vector<LogEntry>& entries);

  Options options_;
  std::map<std::string, Victim> victims_;
  // A victim that has ended, or whose cgroup has another run; also one that could not be looked at.
  struct Ended {
    double until = 0;              // monotonic seconds: a run is spared until then
    std::uint64_t spared_run = 0;  // the cgroup id of a run that came back, or that took over
  };
  // By workload. Without victims that an operator chose and that ended; another run may have followed them.
  std::map<std::string, Ended> ended_;
  EvictionMarks marks_;
  EvictionCounts counts_;
  std::vector<double> durations_s_;
  os::Attempts looks_;
};

}  // namespace berth::daemon
