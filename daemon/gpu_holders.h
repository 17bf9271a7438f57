// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/snapshot.h"
#include "topology/gpu_inventory.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace berth::daemon {

// GPUs of a workload that was let in: each is its own although it has not begun to use it, for so long.
struct GpuPromise {
  std::string workload;
  std::uint64_t cgroup_id = 0;  // of the run that was let in
  std::vector<std::string> gpus;
  bool exclusive = true;
  double until = 0;  // epoch seconds
};

// Which workload uses which GPU, by the cgroups of the processes that do.
class GpuHolders {
 public:
  using RunOf = std::function<std::uint64_t(const std::string& workload)>;

  explicit GpuHolders(std::filesystem::path proc_root) : proc_root_(std::move(proc_root)) {}

  // Finds the cgroups of the processes anew where these may be others.
  void follow(const topology::GpuInventory& inventory);
  void keep(GpuPromise promise);
  // Puts the GPUs of the last follow() into the snapshot, and into its workloads those that they use: in a
  // workload runs what is in its cgroup or below. One that is alone on a GPU is its holder; where several, or
  // others beside it, use a GPU, or nobody can tell, or it was let in to share, it has none. Processes of no
  // workload are counted. As long as a promise holds, what of it nobody uses counts as used by its workload.
  // `run_of` gives the cgroup id of a workload.
  void join(model::Snapshot& snapshot, const RunOf& run_of);

 private:
  std::filesystem::path proc_root_;
  std::optional<std::uint64_t> reading_;
  std::vector<topology::KnownGpu> gpus_;
  std::map<std::string, std::vector<std::string>> cgroups_;  // by GPU, one a process, without leading slash
  std::vector<GpuPromise> promises_;
};

}  // namespace berth::daemon
