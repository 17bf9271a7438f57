// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/discovery.h"
#include "cgroup/leaf.h"
#include "cgroup/scope_maker.h"
#include "daemon/ledger/held.h"
#include "daemon/ledger/log_entry.h"
#include "model/snapshot.h"
#include "os/worker.h"
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
// it can be evicted by itself. It also takes leaves back (docs/leaves.md).
//
// A leaf is a transient scope beside a unit, or a directory beside a cgroup where no systemd runs. One leaf
// at most is made a tick, and a failed attempt is repeated after a minute at the earliest. The list of leaves
// is not stored beyond the daemon's life: their names are enough.
class Leaves {
 public:
  // The limit for one workload: more processes are hardly a Worker's executors, as any process can name
  // itself one.
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

  // The host at this tick. `snapshot` has the classes of workloads, and the workloads left alone.
  struct Scene {
    const spark::Observation& seen;
    const std::map<std::string, cgroup::FoundWorkload>& found;
    const model::Snapshot& snapshot;
    const Holdings& holdings;
  };
  // Continues the work under way. Puts back leaves whose workload is not to be evicted any more. Makes the
  // next leaf. `now`: epoch seconds.
  std::vector<LogEntry> tick(const Scene& scene, double now);
  // Whether processes were moved since the last call.
  bool take_moved() { return std::exchange(moved_, false); }
  // By workload: why an executor of it has no leaf, in words.
  const std::map<std::string, std::string>& problems() const { return problems_; }
  // Puts all processes back to their original cgroups. Waits for a scope that is being made, half a second at
  // most. If the scope comes later, call it again (is_under_way). When berthd ends, systemd runs
  // `berthd --restore` after it, which puts back such a scope.
  std::vector<cgroup::PutBack> put_back();
  bool is_under_way() const { return pending_.has_value(); }

 private:
  using ProcessId = std::pair<pid_t, std::uint64_t>;

  // The input for making a leaf.
  struct Wanted {
    ProcessId process;
    std::string executor;   // "executor 0 of app-1 (pid 7)"
    std::string origin;     // path of the cgroup that it lives in
    std::uint64_t run = 0;  // that cgroup's id
    std::string leaf;
    std::string reason;  // the others in its cgroup
    int weight = 100;
  };
  // A scope that systemd was asked to make.
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
    std::uint64_t run = 0;  // id of the origin's cgroup; 0 where that was gone
    bool found = false;     // as a workload, since it was made
    Tried back;             // the attempt to put it back
  };

  // The settings of an origin that an executor outside of it would escape.
  struct Bound {
    double look_again_at = 0;          // monotonic seconds
    std::optional<std::string> words;  // nullopt where there are none
  };

  void forget_gone(const Scene& scene, double now, std::vector<LogEntry>& entries);
  void go_on(double now, std::vector<LogEntry>& entries);
  void end_with_former_runs(const Scene& scene, double now, std::vector<LogEntry>& entries);
  void look_for_bounds(const Scene& scene);
  void give_up(const Scene& scene, double now, std::vector<LogEntry>& entries);
  // Returns false once the leaf is gone.
  bool bring_back(const std::string& leaf, Known& known, const std::string& reason, double now,
                  std::vector<LogEntry>& entries);
  void make_next(const Scene& scene, double now, std::vector<LogEntry>& entries);
  std::optional<std::string> obstacle(const cgroup::FoundWorkload& target) const;
  model::Result<cgroup::UnitTraits> traits_of(const cgroup::FoundWorkload& target, const Holdings& holdings);
  // Also keeps their bound for give_up().
  model::Result<cgroup::UnitTraits> ask_traits(const cgroup::FoundWorkload& target, const Holdings& holdings);
  std::optional<std::string> indispensable(const cgroup::FoundWorkload& target, const Wanted& wanted,
                                           pid_t main_pid) const;
  void make(const Scene& scene, const cgroup::FoundWorkload& target, const Wanted& wanted, double now,
            std::vector<LogEntry>& entries);
  model::Result<void> make_directory(const cgroup::FoundWorkload& target, const Wanted& wanted);
  model::Result<void> make_scope(const cgroup::FoundWorkload& target, const Wanted& wanted,
                                 const cgroup::UnitTraits& traits);
  // Number of processes that were moved; fewer where some ended meanwhile.
  model::Result<std::size_t> move_family(const cgroup::Cgroup& origin, const cgroup::Cgroup& leaf,
                                         ProcessId process);
  // The executor is in its scope: moves its descendants too, or puts it back where that fails.
  model::Result<void> finish(const Wanted& wanted);
  void remember(const Wanted& wanted);
  void pause_after(const model::Error& error);
  bool is_paused() const { return options_.monotonic() < paused_until_; }
  void fail(const Wanted& wanted, Tried& tried, const std::string& problem, double now,
            std::vector<LogEntry>& entries);
  void say(const Wanted& wanted, const std::string& problem);
  LogEntry entry_of(const Wanted& wanted, double now) const;

  Options options_;
  os::Attempts looks_;  // at processes, which may hold them up
  std::optional<Pending> pending_;
  bool asked_ = false;       // systemd was asked in this tick
  double paused_until_ = 0;  // monotonic seconds: systemd did not answer
  std::map<ProcessId, Tried> tried_;
  std::map<std::uint64_t, Tried> refused_;  // by the origin's cgroup id: its executors get no leaf
  std::map<std::uint64_t, Bound> bounds_;   // by the origin's cgroup id
  std::map<std::string, Known> known_;      // leaves
  std::map<std::string, std::string> problems_;
  bool moved_ = false;
};

}  // namespace berth::daemon
