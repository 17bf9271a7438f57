// SPDX-License-Identifier: Apache-2.0
#include "daemon/observe/gpu_holders.h"

#include "daemon/ledger/held.h"
#include "os/ancestors.h"
#include "os/proc_files.h"

#include <algorithm>
#include <set>
#include <utility>

namespace berth::daemon {

namespace {

// The workload that the group at `path` is, or is in; null where there is none. At most one of a group's
// ancestors is a workload.
model::Workload* workload_around(model::Snapshot& snapshot, const std::string& path) {
  return os::find_around(path, [&](const std::string& id) { return find_workload(snapshot, id); });
}

}  // namespace

void GpuHolders::follow(const topology::GpuInventory& inventory) {
  gpus_ = inventory.gpus();
  if (reading_ == inventory.reading()) return;
  reading_ = inventory.reading();
  cgroups_.clear();
  for (const auto& known : gpus_) {
    for (const pid_t pid : known.pids) {
      // One that has ended meanwhile uses nothing any more.
      if (auto path = os::cgroup_of(proc_root_ / std::to_string(pid)))
        cgroups_[known.gpu.id].push_back(*std::move(path));
    }
  }
}

void GpuHolders::keep(GpuPromise promise) {
  if (!promise.gpus.empty()) promises_.push_back(std::move(promise));
}

void GpuHolders::join(model::Snapshot& snapshot, const RunOf& run_of) {
  struct Users {
    std::set<std::string> workloads;
    int others = 0;
    bool shares = false;  // a lone user would let others share it
  };
  std::map<std::string, Users> users;  // by GPU
  for (const auto& known : gpus_) {
    const auto cgroups = cgroups_.find(known.gpu.id);
    if (known.pids.empty() || cgroups == cgroups_.end()) continue;
    for (const std::string& path : cgroups->second) {
      if (const auto* workload = workload_around(snapshot, path)) {
        users[known.gpu.id].workloads.insert(workload->id);
      } else {
        ++users[known.gpu.id].others;
      }
    }
  }
  // A workload that shares does so for as long as it runs.
  std::erase_if(promises_, [&](const GpuPromise& promise) {
    return (promise.exclusive && snapshot.time >= promise.until) ||
           run_of(promise.workload) != promise.cgroup_id;
  });
  for (const GpuPromise& promise : promises_) {
    if (find_workload(snapshot, promise.workload) == nullptr) continue;
    for (const std::string& gpu : promise.gpus) {
      Users& of = users[gpu];
      if (of.others > 0) continue;
      if (of.workloads.empty() && snapshot.time < promise.until) of.workloads.insert(promise.workload);
      of.shares |= !promise.exclusive && of.workloads == std::set{promise.workload};
    }
  }

  std::vector<model::Gpu> gpus;
  gpus.reserve(gpus_.size());
  for (const auto& known : gpus_) {
    model::Gpu gpu = known.gpu;
    const Users& of = users[gpu.id];
    for (const std::string& id : of.workloads) find_workload(snapshot, id)->gpus.push_back(gpu.id);
    if (known.all_pids || of.others > 0) gpu.other_processes = of.others;
    if (known.all_pids && of.others == 0 && of.workloads.size() == 1 && !of.shares)
      gpu.holder = *of.workloads.begin();
    gpus.push_back(std::move(gpu));
  }
  // This cannot fail: ids are the keys of a map, figures were checked when they were read, and links are
  // between GPUs of one reading.
  (void)snapshot.topology.set_gpus(std::move(gpus));
}

}  // namespace berth::daemon
