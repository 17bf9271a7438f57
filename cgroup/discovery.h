// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cgroup/cgroup.h"
#include "cgroup/hierarchy.h"
#include "model/error.h"
#include "model/workload_rule.h"

namespace berth::cgroup {

// What a cgroup is, judged by its path and attributes.
enum class Kind { systemd_service, systemd_scope, podman, docker, cri, other };
const char* to_string(Kind kind);

// A cgroup that a rule, a mark or its QoS class makes a workload.
struct FoundWorkload {
  std::shared_ptr<Cgroup> cgroup;
  Kind kind = Kind::other;
  model::Workload identity;    // id, service, class, vcpus, memory, priority, evictable, created, deadline; no samples
  std::string matched_by;      // rule origin, "user.berth.class", "kubepods QoS"
  std::string systemd_unit;    // the unit whose main cgroup this is; empty where none
};

// Keeps the set of workloads up to date from inotify on the tree, without rescanning it.
class Discovery {
 public:
  static model::Result<std::unique_ptr<Discovery>> start(const Hierarchy& hierarchy,
                                                         std::vector<model::WorkloadRule> rules);
  ~Discovery();

  // Readable when process() has work; for the event loop.
  int fd() const;

  struct Changes {
    std::vector<std::string> appeared;  // workload ids
    std::vector<std::string> vanished;
    std::vector<std::string> warnings;  // each said once: two rules match, a mark not honoured, watches ran out
    bool empty() const { return appeared.empty() && vanished.empty() && warnings.empty(); }
  };
  // Takes in all pending events; never blocks.
  Changes process();
  // Replaces the rules and judges every cgroup again.
  Changes set_rules(std::vector<model::WorkloadRule> rules);

  // By workload id.
  const std::map<std::string, FoundWorkload>& workloads() const;

 private:
  struct State;
  explicit Discovery(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace berth::cgroup
