// SPDX-License-Identifier: Apache-2.0
// vCPUs that other programs gave to their own work: cpuset partitions, exclusive CPUs of kubelet, containers
// that a runtime pinned (docs/decisions/pinning.md, vCPUs of others).
#pragma once

#include "cgroup/cgroup.h"
#include "cgroup/kubelet_state.h"
#include "cgroup/recognise.h"
#include "model/cpu_set.h"
#include "model/owned_cpus.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::cgroup {

// The cpuset of one cgroup that only root can write to. Files that are missing or empty give empty sets.
struct CpusetGroup {
  std::string path;                        // below the v2 root
  bool container = false;                  // has_cpuset_of_runtime(), and not berth's own business
  std::optional<PodQos> qos = {};          // of a container in a pod
  model::CpuSet cpus = {};                 // cpuset.cpus, as it was before berth
  model::CpuSet exclusive = {};            // cpuset.cpus.exclusive
  model::CpuSet exclusive_effective = {};  // cpuset.cpus.exclusive.effective
  model::CpuSet effective = {};            // cpuset.cpus.effective
  bool partition = false;                  // cpuset.cpus.partition is "root" or "isolated", and valid
  std::optional<double> quota_cores = {};  // cpu.max; nullopt without a limit
};

// Whether the text of cpuset.cpus.partition is that of a valid partition root. "root invalid (...)" is not.
bool is_valid_partition(std::string_view text);
// The vCPUs of valid partitions that lie beside the group. The kernel ends a partition (since Linux 6.1; it
// refuses the write before) once another cpuset beside it lists one of these. `online`: of the host.
model::CpuSet partitions_beside(const Cgroup& cgroup, const model::CpuSet& online);

// The owners of the `online` vCPUs. `isolated`: those that the kernel isolates. A vCPU of nested
// partitions belongs to the innermost. Of containers in pods only those own vCPUs that have them alone by
// `kubelet`. Where that is not known, they go by kubelet's marks: the pod is guaranteed, no other container
// of a pod may use one of them, and a quota, where there is one, is their number. Ascending by owner. Pure.
std::vector<model::OwnedCpus> owned_cpus(const std::vector<CpusetGroup>& groups,
                                         const model::CpuSet& isolated, const model::CpuSet& online,
                                         const std::optional<ExclusiveOfKubelet>& kubelet = std::nullopt);

// The trees that read_owned_cpus() reads. Its caller knows the trusted groups and the pins of berth.
struct CpusetSources {
  std::filesystem::path cgroup_root;
  std::filesystem::path sys_root;
  model::CpuSet online;
  // As Discovery::trusted_groups().
  std::function<std::vector<std::string>(bool containers)> trusted;
  // cpuset.cpus before berth pinned the cgroup of this path and id; nullopt where berth did not.
  std::function<std::optional<model::CpuSet>(const std::string& path, std::uint64_t id)> original;
  // Whether berth manages the job of Slurm as best-effort work, so that Slurm's cpuset is none of another
  // program's. Empty: it manages none.
  std::function<bool(const std::string& path)> managed = {};
  std::filesystem::path kubelet_cpus = {};  // cgroup::Hierarchy::kubelet_cpus
};

// Reads them. All groups are read only where the root lacks an online vCPU, or isolates one: without that
// there is no partition. A group that vanishes meanwhile is left out.
std::vector<model::OwnedCpus> read_owned_cpus(const CpusetSources& sources);

}  // namespace berth::cgroup
