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

  OtherGroups(std::filesystem::path cgroup_root, std::filesystem::path proc_root)
      : cgroup_root_(std::move(cgroup_root)), proc_root_(std::move(proc_root)) {}

  struct Circumstances {
    const std::vector<model::OwnedCpus>& owned;
    const HeldValues& pins;
    const model::CpuSet& online;
    bool wanted = false;  // without that there are no groups
    double time = 0;      // epoch seconds
  };

  // So many groups are confined.
  static constexpr std::size_t kMost = 2048;

  const Groups& all() const { return groups_; }
  // The number of groups beyond kMost.
  std::size_t more() const { return more_; }
  // Finds the groups again where the tree or `owned` changed, and every kSearchAgain_s.
  static constexpr double kSearchAgain_s = 10;
  void follow(cgroup::Discovery& discovery, const Circumstances& now);
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
  std::optional<std::string> why_limited(const std::string& path, const HeldValues& pins) const;
  void search(cgroup::Discovery& discovery, const Circumstances& now);
  static void read_one(Group& group);

  std::filesystem::path cgroup_root_;
  std::filesystem::path proc_root_;
  Groups groups_;
  std::size_t more_ = 0;
  std::map<std::string, model::OwnedHow> owners_;  // by path
  std::optional<std::string> own_path_;            // of this process
  model::CpuSet open_;                             // online, and no partition's
  std::optional<std::uint64_t> version_;           // of the tree, for groups_
  std::optional<double> searched_at_;              // since they are wanted; epoch seconds
};

}  // namespace berth::daemon
