// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/cgroup.h"
#include "cgroup/hierarchy.h"
#include "cgroup/recognise.h"
#include "model/error.h"
#include "model/workload.h"
#include "model/workload_rule.h"

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace berth::cgroup {

// A cgroup that a rule, a mark or its QoS class makes a workload, and that holds processes: an empty one is
// none, so that a service that stopped frees its vCPUs though its cgroup stays.
// What a workload is by its rule and by the kernel, as in model::Workload; it is kept for each of thousands
// of workloads, of which that also says how they fare.
struct Identity {
  std::string id;
  std::string service;
  model::WorkloadClass workload_class = model::WorkloadClass::best_effort;
  // Those not given by a rule are those of the first cpu.max quota seen, rounded up: later quotas may be
  // berth's own.
  std::optional<int> vcpus;
  std::uint64_t memory_request_bytes = 0;
  int priority = 0;
  bool evictable = false;
  // Epoch seconds: the directory's time, or the start of its oldest process where that is earlier: cgroupfs
  // forgets a directory's time under memory pressure.
  double created = 0;
  std::optional<double> deadline;  // epoch seconds

  friend bool operator==(const Identity&, const Identity&) = default;
};

struct FoundWorkload {
  std::shared_ptr<Cgroup> cgroup;
  Kind kind = Kind::other;
  Identity identity;
  std::string matched_by;     // rule origin, "user.berth.class", "kubepods QoS"
  std::string systemd_unit;   // the unit whose main cgroup this is; empty where none
  std::string progress_file;  // as its rule has it, specifiers and all; empty where none
  std::string leaf_of;        // the cgroup that berth took its processes out of (cgroup/leaf.h); mostly empty

  friend bool operator==(const FoundWorkload&, const FoundWorkload&) = default;
};

// Keeps the set of workloads up to date from inotify on the tree, without rescanning it. Who decides what a
// cgroup is, in this order: the mark user.berth.class where its owner may set it (cgroup/rules.h), the first
// rule that matches, the pod's QoS class (guaranteed with a whole number of CPUs: latency-sensitive;
// best-effort: best-effort). A group whose path cannot be an id (model::is_name) is left out with all below
// it. Of nested matches the outermost is the workload. A cgroup is known by its inode:
// one that takes over a path is another one.
//
// Where the kernel has no more watches to give, and after its event queue overflowed, the tree is walked
// again: the latter once, the former every 10 s or less often in a big tree, by process(), which fd() then
// asks for.
class Discovery {
 public:
  // Walks the tree once; raises the soft limit of open files, a quarter of which bounds the number of
  // workloads. Error where the root cannot be opened, inotify is not to be had, or a rule's glob is invalid.
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
  // For who learns by another way that a cgroup was made or removed at `path` (below the root): the next
  // process() reports what is found there. Nothing happens where it is known already.
  void look_at(std::string_view path);
  // Takes in all pending events; never blocks. The first call reports what start() found.
  Changes process();
  // Replaces the rules and judges every cgroup again. A rule whose glob is invalid is left out, with a
  // warning.
  Changes set_rules(std::vector<model::WorkloadRule> rules);

  // By workload id.
  const std::map<std::string, FoundWorkload>& workloads() const;

 private:
  struct State;
  explicit Discovery(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace berth::cgroup
