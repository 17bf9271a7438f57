// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/discovery.h"
#include "cgroup/value.h"
#include "daemon/ledger/held.h"
#include "daemon/observe/allowed_cpus.h"
#include "model/owned_cpus.h"
#include "model/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace berth::daemon {

// The groups of work beside all workloads (docs/decisions/pinning.md, other work), from tick to tick.
class OtherGroups {
 public:
  struct Group {
    cgroup::FoundWorkload target;            // as if it were a workload
    std::string left_alone;                  // why it must not be confined; empty: it may be
    double since = 0;                        // epoch seconds; 0 for those of the first search
    std::optional<cgroup::Value> cpus = {};  // cpuset.cpus, as it was read; nullopt: not known
  };
  using Groups = std::map<std::string, Group>;  // by path

  explicit OtherGroups(std::filesystem::path proc_root) : proc_root_(std::move(proc_root)) {}

  // So many groups are confined.
  static constexpr std::size_t kMost = 2048;

  const Groups& all() const { return groups_; }
  // The number of groups beyond kMost.
  std::size_t more() const { return more_; }
  // Finds the groups again where the tree or `owned` changed. There are none unless they are `wanted`.
  void follow(cgroup::Discovery& discovery, const std::vector<model::OwnedCpus>& owned, bool wanted,
              double now);
  // The same with both as they were.
  void follow(cgroup::Discovery& discovery, double now);
  // Reads the vCPUs of each group.
  void read();
  // Whether one of them has a pin.
  bool holds_any(const HeldValues& pins) const;
  // As a snapshot shows them. A service unit is shown once it is kYoung_s old: most of those that appear
  // under a running berthd end at once, and systemd would read its units again after each.
  static constexpr double kYoung_s = 2;
  std::vector<model::OtherGroup> shown(const HeldValues& pins, const RefusedLimits& refused,
                                       AllowedCpus& allowed, const model::CpuSet& online, double now) const;

 private:
  std::optional<std::string> why_spared(const std::string& path) const;
  static void read_one(Group& group);

  std::filesystem::path proc_root_;
  Groups groups_;
  std::size_t more_ = 0;
  std::map<std::string, model::OwnedHow> owners_;  // by path
  std::optional<std::string> own_path_;            // of this process
  std::optional<std::uint64_t> version_;           // of the tree, for groups_
  bool wanted_ = false;
  bool searched_ = false;  // since they are wanted
};

}  // namespace berth::daemon
