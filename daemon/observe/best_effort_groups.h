// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/discovery.h"
#include "cgroup/sampler.h"
#include "cgroup/value.h"
#include "daemon/ledger/held.h"
#include "model/snapshot.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace berth::daemon {

// The groups of best-effort work (docs/decisions/priority.md), from tick to tick.
class BestEffortGroups {
 public:
  struct Group {
    cgroup::FoundWorkload target;  // as if it were a workload
    bool is_workload = false;
    std::optional<cgroup::Value> priority = {};  // as it was read; nullopt: not yet
  };
  using Groups = std::map<std::string, Group>;  // by path
  // By workload: whether it counts as best-effort work that berth manages, where that does not follow from
  // its identity.
  using Exceptions = std::map<std::string, bool>;

  const Groups& all() const { return groups_; }
  // Finds the groups again where the tree or `exceptions` changed.
  void follow(cgroup::Discovery& discovery, Exceptions exceptions);
  // The same with the exceptions as they were.
  void follow(cgroup::Discovery& discovery);
  // Of users' groups that are no workloads, so many are read at once, in turn.
  static constexpr std::size_t kMostUsersGroups = 256;
  // Reads the priority of each group. `readings`: those of workloads.
  void read(const cgroup::Sampler::Readings& readings, cgroup::Discovery& discovery);
  // As a snapshot shows them.
  std::vector<model::BestEffortGroup> shown(const HeldValues& held, const RefusedLimits& refused) const;

 private:
  static void read_one(const std::string& path, Group& group, cgroup::Discovery& discovery);

  Groups groups_;
  std::string last_of_users_;  // that was read
  Exceptions exceptions_;
  std::optional<std::uint64_t> version_;  // of the tree, for groups_
};

}  // namespace berth::daemon
