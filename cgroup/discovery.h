// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/cgroup.h"
#include "cgroup/hierarchy.h"
#include "cgroup/recognise.h"
#include "model/error.h"
#include "model/ground.h"
#include "model/workload.h"
#include "model/workload_rule.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace berth::cgroup {

// The properties of a workload that its rule and the kernel give, as in model::Workload. They are kept for
// each of thousands of workloads. model::Workload also has the readings, and is larger.
struct Identity {
  std::string id;
  std::string service;
  model::WorkloadClass workload_class = model::WorkloadClass::best_effort;
  // From the rule; else from the first cpu.max quota seen, rounded up. Later quotas may be berth's own.
  std::optional<int> vcpus;
  std::optional<model::Isolation> isolation = {};
  std::uint64_t memory_request_bytes = 0;
  int priority = 0;
  bool evictable = false;
  bool force = false;
  // Epoch seconds: the directory's time, or the start of its oldest process where that is earlier. cgroupfs
  // forgets a directory's time under memory pressure.
  double created = 0;
  std::optional<double> deadline;  // epoch seconds
  std::optional<std::uint32_t> user = {};

  friend bool operator==(const Identity&, const Identity&) = default;
};

// A cgroup that a rule, a mark or its QoS class makes a workload, and that holds processes. An empty cgroup
// is no workload. So a stopped service frees its vCPUs though its cgroup stays.
struct FoundWorkload {
  std::shared_ptr<Cgroup> cgroup;
  Kind kind = Kind::other;
  Identity identity;
  std::string matched_by;     // rule origin, "user.berth.class", "kubepods QoS"
  std::string systemd_unit;   // the unit whose main cgroup this is; empty where none
  std::string progress_file;  // as in its rule, specifiers not expanded; empty where none
  std::string leaf_of;        // the cgroup that berth took its processes out of (cgroup/leaf.h); mostly empty
  model::Ground ground = {};
  std::string confined_at = {};  // the outermost group of the ground's user; empty where it has none
  bool kept_by_rule = false;     // its rule says `evictable = false`

  // The beginning of its id that root named: all of it, or the user's outermost group.
  const std::string& named_by_root() const {
    return model::may_favour_itself(ground, model::Word::name) ? identity.id : confined_at;
  }
  // Whether the command lines of its processes may spare it. Any user can write one, so root must have chosen
  // its programs, or its rule must say so.
  bool command_lines_count() const {
    return kept_by_rule || (!ground.user && !runs_programs_of_others(identity.id));
  }

  friend bool operator==(const FoundWorkload&, const FoundWorkload&) = default;
};

// A rule that applies to no cgroup at present.
struct UnusedRule {
  std::string origin;  // as in model::WorkloadRule
  std::string match;
  bool overtaken = false;  // it matches cgroups, but an earlier rule matches each of them, and applies
  bool inner = false;      // it matches only parts of containers, and their scopes are the workloads

  friend bool operator==(const UnusedRule&, const UnusedRule&) = default;
};

// A group beside all workloads, as Discovery::other_groups() finds it.
struct OtherGroup {
  FoundWorkload target;    // as if it were a workload
  std::string left_alone;  // why it must not be confined; empty: it may be

  friend bool operator==(const OtherGroup&, const OtherGroup&) = default;
};

// Keeps the set of workloads up to date from inotify on the tree, without rescanning it. Three things decide
// the class of a cgroup, in this order. First the mark user.berth.class, where the owner of the cgroup may
// set it (cgroup/rules.h). Then the first rule that matches. Then the pod's QoS class: guaranteed with a
// whole number of CPUs is latency-sensitive, best-effort is best-effort.
//
// A group whose path cannot be an id (model::is_name) is left out with all below it. Of nested matches the
// outermost is the workload. A cgroup is known by its inode: a new one at the same path is another one.
//
// In two cases process() walks the tree again, and fd() asks for it: after an overflow of the event queue,
// and for as long as there are too few inotify watches. It walks every 10 s at most, or less often in a big
// tree.
class Discovery {
 public:
  // Walks the tree once. Raises the soft limit of open files; half of it bounds the number of workloads.
  // Error where the root cannot be opened, inotify is missing, or a rule's glob is invalid.
  static model::Result<std::unique_ptr<Discovery>> start(const Hierarchy& hierarchy,
                                                         std::vector<model::WorkloadRule> rules);
  ~Discovery();

  // Readable when process() has work; for the event loop.
  int fd() const;

  // Each list ascending and without duplicates.
  struct Changes {
    std::vector<std::string> appeared;  // workload ids
    // Removed, or empty of processes, or no workload any more: then the cgroup is still there, with what
    // berth wrote to it. An id that is in `appeared` too vanished first: its path is another cgroup's now.
    std::vector<std::string> vanished;
    std::vector<std::string> changed;  // the same cgroup, another identity: look at workloads() again
    std::vector<std::string>
        warnings;  // each said once: two rules match, a mark not honoured, watches ran out
    bool empty() const { return appeared.empty() && vanished.empty() && changed.empty() && warnings.empty(); }
  };
  // For a caller that learns by another way that a cgroup was made or removed at `path` (below the root). The
  // next process() reports the change found there. Does nothing where the change is known already.
  void look_at(std::string_view path);
  // Takes in all pending events; never blocks. The first call reports the findings of start().
  Changes process();
  // Replaces the rules and judges every cgroup again. A rule whose glob is invalid is left out, with a
  // warning.
  Changes set_rules(std::vector<model::WorkloadRule> rules);

  // By workload id.
  const std::map<std::string, FoundWorkload>& workloads() const;
  // Ascending: the cgroups that only root, or the owner of the whole tree, can write to, and all of whose
  // ancestors are such. Also a container (has_cpuset_of_runtime()) whose directory a runtime gave to the
  // container's user: its name and its cpuset.cpus are still root's. `containers`: containers alone. Walks
  // all that is known of the tree.
  std::vector<std::string> trusted_groups(bool containers) const;
  // The outermost groups of users with more cgroups than `most_of_user`, by their ids. Of the other users,
  // too, of those with the most first, until the rest has `most_of_users` cgroups or fewer.
  std::vector<std::uint64_t> crowds(std::size_t most_of_user, std::size_t most_of_users) const;
  // In the order of the rules. An empty cgroup counts too, also one that is no workload.
  std::vector<UnusedRule> unused_rules() const;
  // By path: the highest cgroups that have nothing but best-effort work below them, each as a best-effort
  // workload would be. Such a group is a workload, or a cgroup without processes of its own whose children
  // with processes are all such groups. The root is none. `counts`: whether the workload of this id is
  // best-effort work that berth manages. Reads and watches some files of cgroups that no rule matches.
  std::map<std::string, FoundWorkload> best_effort_groups(
      const std::function<bool(const std::string& id)>& counts);
  // About a cgroup that root made and named.
  struct AboutOthers {
    // Why it must not be confined; nullopt: it may be.
    std::function<std::optional<std::string>(const std::string& path)> spared;
    // The same of one whose parts may be.
    std::function<std::optional<std::string>(const std::string& path)> limited;
    // That of this process, which is never confined.
    std::string own = {};
    // Whether it is listed without processes as well.
    std::function<bool(const std::string& path, std::uint64_t id)> held;
  };
  // By path, `most` at most: the highest cgroups with processes in which there is neither a workload, nor a
  // cgroup that is ignored or spared. Those that are spared themselves are there too. Without a rule about
  // pods, all groups of Kubernetes are spared.
  // Best-effort workloads in a user's part of the tree do not count, as their user could keep the rest of
  // that part from being confined by them. Only a cgroup that root made and named is one, so of such a part
  // its outermost group alone. Reads and watches one file of each. `more`: the number of those left out.
  std::map<std::string, OtherGroup> other_groups(const AboutOthers& about, std::size_t most,
                                                 std::size_t& more);
  // Another number whenever the result of the two may have changed.
  std::uint64_t groups_version() const;
  // Processes were found in a cgroup that was thought to have none.
  void look_at_processes(std::string_view path);
  // Looks for processes that came to cgroups in groups, or above work, and for those that left: the kernel
  // does not tell of these. A few cgroups at each call, in turn.
  void look_at_processes();
  // Of a cgroup that is no workload by class "ignored" or as a pod of the system: its path, and why. Nullopt
  // for all others, and for a part of a workload. `name`: as model::names().
  std::optional<std::string> why_ignored(std::string_view name) const;

 private:
  struct State;
  explicit Discovery(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace berth::cgroup
