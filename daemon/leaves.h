// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/discovery.h"
#include "cgroup/leaf.h"
#include "cgroup/scope_maker.h"
#include "daemon/held.h"
#include "daemon/log_entry.h"
#include "model/snapshot.h"
#include "spark/collector.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace berth::daemon {

// Gives each executor that shares its best-effort workload with others a cgroup of its own, a leaf, so that
// it can be evicted by itself; and takes that back (docs/architecture.md, a leaf for each executor). A leaf
// is a transient scope beside a unit, or a directory beside a cgroup where no systemd runs. At most one is
// made a tick, and nothing is tried again before a minute is over. Which leaves there are is not remembered
// beyond the daemon's life: their names say so.
class Leaves {
 public:
  // Of one workload: the executors of a Worker, and not whatever calls itself one.
  static constexpr std::size_t kMost = 32;

  struct Options {
    std::filesystem::path cgroup_root;
    std::filesystem::path proc_root = "/proc";
    std::function<cgroup::ScopeMaker*()> scopes;  // nullptr where systemd cannot be asked
    // Whether systemd runs this host: then cgroups are its own to make.
    bool systemd_runs = false;
    std::function<double()> monotonic;  // seconds
    cgroup::LeafHands hands;
  };
  explicit Leaves(Options options) : options_(std::move(options)) {}

  // The host as of this tick. `snapshot` tells of which class workloads are, and who is left alone.
  struct Scene {
    const spark::Observation& seen;
    const std::map<std::string, cgroup::FoundWorkload>& found;
    const model::Snapshot& snapshot;
    const Holdings& holdings;
  };
  // Goes on with what is under way; gives leaves up that nobody is to be evicted of any more; makes the next
  // one. `now`: epoch seconds.
  std::vector<LogEntry> tick(const Scene& scene, double now);
  // Whether processes were moved since the last call.
  bool take_moved() { return std::exchange(moved_, false); }
  // By workload: why an executor of it has no leaf, in words.
  const std::map<std::string, std::string>& problems() const { return problems_; }
  // Puts all processes back where they were. Waits for a scope that is being made, at most half a second. For
  // one that comes later it is to be called again (is_under_way); when berthd ends, systemd runs
  // `berthd --restore` after it, which sees to that.
  std::vector<cgroup::PutBack> put_back();
  bool is_under_way() const { return pending_.has_value(); }

 private:
  using ProcessId = std::pair<pid_t, std::uint64_t>;

  // What a leaf is made for.
  struct Wanted {
    ProcessId process;
    std::string executor;   // "executor 0 of app-1 (pid 7)"
    std::string origin;     // path of the cgroup that it lives in
    std::uint64_t run = 0;  // that cgroup's id
    std::string leaf;
    std::string reason;  // whom it shares its cgroup with
    int weight = 100;
  };
  // A scope that systemd was asked for.
  struct Pending {
    Wanted wanted;
    double until = 0;      // monotonic seconds
    bool awaited = false;  // by put_back()
  };
  struct Tried {
    double again_at = 0;  // monotonic seconds
    std::string problem;
  };
  struct Known {
    std::string origin;
    std::uint64_t run = 0;  // id of the origin's cgroup; 0 where that was not there
    bool found = false;     // as a workload, since it was made
    Tried back;             // its putting back
  };

  void forget_gone(const Scene& scene, double now, std::vector<LogEntry>& entries);
  void go_on(double now, std::vector<LogEntry>& entries);
  void end_with_former_runs(const Scene& scene, double now, std::vector<LogEntry>& entries);
  void give_up(const Scene& scene, double now, std::vector<LogEntry>& entries);
  // False where there is no such leaf any more.
  bool bring_back(const std::string& leaf, Known& known, const std::string& reason, double now,
                  std::vector<LogEntry>& entries);
  void make_next(const Scene& scene, double now, std::vector<LogEntry>& entries);
  std::optional<std::string> obstacle(const cgroup::FoundWorkload& target) const;
  model::Result<cgroup::UnitTraits> traits_of(const cgroup::FoundWorkload& target, const Holdings& holdings);
  std::optional<std::string> indispensable(const cgroup::FoundWorkload& target, const Wanted& wanted,
                                           pid_t main_pid) const;
  void make(const Scene& scene, const cgroup::FoundWorkload& target, const Wanted& wanted, double now,
            std::vector<LogEntry>& entries);
  model::Result<void> make_directory(const cgroup::FoundWorkload& target, const Wanted& wanted);
  model::Result<void> make_scope(const cgroup::FoundWorkload& target, const Wanted& wanted,
                                 const cgroup::UnitTraits& traits);
  // How many processes were moved; fewer where some ended meanwhile.
  model::Result<std::size_t> move_family(const cgroup::Cgroup& origin, const cgroup::Cgroup& leaf,
                                         ProcessId process);
  // The executor is in its scope: fetches whom it has started, or takes it back where that cannot be.
  model::Result<void> finish(const Wanted& wanted);
  void remember(const Wanted& wanted);
  void pause_after(const model::Error& error);
  bool is_paused() const { return options_.monotonic() < paused_until_; }
  void fail(const Wanted& wanted, Tried& tried, const std::string& problem, double now,
            std::vector<LogEntry>& entries);
  void say(const Wanted& wanted, const std::string& problem);
  LogEntry entry_of(const Wanted& wanted, double now) const;

  Options options_;
  std::optional<Pending> pending_;
  bool asked_ = false;       // systemd, in this tick
  double paused_until_ = 0;  // monotonic seconds: systemd did not answer
  std::map<ProcessId, Tried> tried_;
  std::map<std::uint64_t, Tried> refused_;  // by the origin's cgroup id: none of its executors can
  std::map<std::string, Known> known_;      // leaves
  std::map<std::string, std::string> problems_;
  bool moved_ = false;
};

}  // namespace berth::daemon
