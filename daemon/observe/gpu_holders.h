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

// GPUs of an admitted workload: they are its own for so long, also before it uses them.
struct GpuPromise {
  std::string workload;
  std::uint64_t cgroup_id = 0;  // of the run that was let in
  std::vector<std::string> gpus;
  bool exclusive = true;
  double until = 0;  // epoch seconds
};

// Finds the workloads that use each GPU, by the cgroups of its processes.
class GpuHolders {
 public:
  using RunOf = std::function<std::uint64_t(const std::string& workload)>;

  explicit GpuHolders(std::filesystem::path proc_root) : proc_root_(std::move(proc_root)) {}

  // Reads the cgroups of the processes again where these may have changed.
  void follow(const topology::GpuInventory& inventory);
  void keep(GpuPromise promise);
  // Puts the GPUs of the last follow() into the snapshot, and into each workload the GPUs that its processes
  // use. A process belongs to the workload whose cgroup is its own or above it.
  //
  // A workload that is alone on a GPU is its holder. There is no holder where several workloads or other
  // processes use it, or where not all processes can be seen. Nor is there one where the workload was
  // admitted to share. Processes without a workload are counted. While a promise holds, an unused GPU of it
  // counts as used by its workload. `run_of` gives the cgroup id of a workload.
  void join(model::Snapshot& snapshot, const RunOf& run_of);

  bool has_gpus() const { return !gpus_.empty(); }

 private:
  std::filesystem::path proc_root_;
  std::optional<std::uint64_t> reading_;
  std::vector<topology::KnownGpu> gpus_;
  std::map<std::string, std::vector<std::string>> cgroups_;  // by GPU, one a process, without leading slash
  std::vector<GpuPromise> promises_;
};

}  // namespace berth::daemon
