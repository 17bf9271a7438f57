// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/workload_settings.h"
#include "model/error.h"
#include "model/workload.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace berth::daemon {

// Overrides by workload, each for one run: when the cgroup is gone, so is the override. Kept in
// RUNTIME_DIR/overrides.json, so that a restart of the daemon does not forget them.
class Overrides {
 public:
  // Reads an earlier daemon's file. A file that cannot be read counts as none, and `warning` has the reason.
  Overrides(const std::filesystem::path& runtime_dir, std::optional<std::string>& warning);

  // Adds `settings` to the override of the run `cgroup_id` of `workload`, and takes back those whose value is
  // empty. All or nothing; error invalid_input names the key. If the file cannot be written, that is an error
  // too (io, permission), but the override is in force.
  model::Result<void> set(const std::string& workload, std::uint64_t cgroup_id,
                          const std::map<std::string, std::string>& settings);
  // Forgets the run of `workload`, unless it is that of `living_cgroup_id`.
  void forget(const std::string& workload, std::uint64_t living_cgroup_id = 0);
  // Drops the runs for which `lives` (workload, cgroup id) is false.
  void keep_if(const std::function<bool(const std::string&, std::uint64_t)>& lives);

  bool empty() const { return runs_.empty(); }
  void apply(model::Workload& workload, std::uint64_t cgroup_id) const;
  // Applies the settings of the run `cgroup_id` of `origin` to its leaf `workload`. vCPUs are left out: the
  // whole requests them.
  void apply_to_leaf(model::Workload& workload, const std::string& origin, std::uint64_t cgroup_id) const;
  // The keys that are set for that run, ascending.
  std::vector<std::string> keys(const std::string& workload, std::uint64_t cgroup_id) const;

 private:
  struct Run {
    std::uint64_t cgroup_id = 0;
    std::map<std::string, std::string> settings;  // as they were given
    config::WorkloadSettings parsed;
  };
  model::Result<void> save() const;
  void apply_of(const std::string& id, std::uint64_t cgroup_id, model::Workload& workload) const;

  std::filesystem::path file_;
  std::map<std::string, Run> runs_;
};

}  // namespace berth::daemon
