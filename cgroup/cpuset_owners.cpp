// SPDX-License-Identifier: Apache-2.0
#include "cgroup/cpuset_owners.h"

#include "cgroup/value.h"
#include "model/path.h"
#include "model/text.h"
#include "os/directory.h"
#include "os/proc_files.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <map>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>

namespace berth::cgroup {

namespace {

using model::CpuSet;
using model::OwnedCpus;
using model::OwnedHow;

// Far above a list of kMaxCpu vCPUs, each alone.
constexpr std::size_t kMostBytes = 65536;

CpuSet cpus_in(const Cgroup& group, const char* file) {
  std::array<char, 4096> buffer;
  const auto seen = group.peek(file, buffer);
  if (!seen) return {};
  if (seen->size() < buffer.size()) return CpuSet::parse(*seen).value_or(CpuSet());
  return CpuSet::parse(group.read(file).value_or("")).value_or(CpuSet());
}

// The list in a file of the kernel; empty where there is none.
CpuSet cpus_in(const std::filesystem::path& file) {
  return CpuSet::parse(os::read_start(file, kMostBytes)).value_or(CpuSet());
}

// Whether only root can write the file. A runtime may give the directory of a container to the container's
// root, but not this file. Missing files are nobody's.
bool is_roots(int directory, const char* file, int tree) {
  struct stat of_file {};
  struct stat of_tree {};
  if (fstatat(directory, file, &of_file, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT;
  if (fstat(tree, &of_tree) != 0) return false;
  return (of_file.st_uid == 0 || of_file.st_uid == of_tree.st_uid) &&
         (of_file.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool is_pod_container(const CpusetGroup& group) { return group.container && group.qos.has_value(); }

// A set of all vCPUs restricts nothing. `open`: online, and no partition's, as write_value() gives them back.
bool is_pinned(const CpusetGroup& group, const CpuSet& open) {
  return group.container && !(group.cpus & open).empty() && !open.is_subset_of(group.cpus);
}

// vCPUs that more than one container of a pod may use: those of the shared pool.
CpuSet shared_by_pods(const std::vector<CpusetGroup>& groups) {
  CpuSet seen;
  CpuSet shared;
  for (const CpusetGroup& group : groups) {
    if (!is_pod_container(group)) continue;
    shared |= seen & group.cpus;
    seen |= group.cpus;
  }
  return shared;
}

bool is_exclusive_of_kubelet(const CpusetGroup& group, const CpuSet& shared,
                             const std::optional<ExclusiveOfKubelet>& kubelet) {
  if (kubelet) {
    const auto pod = kubelet->find(pod_uid(group.path));
    return pod != kubelet->end() &&
           std::find(pod->second.begin(), pod->second.end(), group.cpus) != pod->second.end();
  }
  if (group.qos != PodQos::guaranteed || group.cpus.intersects(shared)) return false;
  return !group.quota_cores || *group.quota_cores == static_cast<double>(group.cpus.size());
}

CpuSet cpus_of_partition(const CpusetGroup& group) {
  if (!group.exclusive_effective.empty()) return group.exclusive_effective;
  // Kernels before 6.7 have no such file, and there all vCPUs of a partition root are its own.
  return group.cpus.empty() ? group.effective : group.cpus;
}

}  // namespace

bool is_valid_partition(std::string_view text) {
  text = model::trimmed_end(text, "\n");
  return text == "root" || text == "isolated";
}

CpuSet partitions_beside(const Cgroup& cgroup, const CpuSet& online) {
  // Far above the number of units in a slice.
  constexpr std::size_t kMostBeside = 4096;
  const std::string parent(model::parent_path(cgroup.path()));
  const auto root = Cgroup::open(cgroup.root(), "");
  const auto above = Cgroup::open(cgroup.root(), parent);
  if (!root || !above) return {};
  // The root lacks the vCPUs of all partitions. So most hosts need no look at what users made.
  const CpuSet effective = cpus_in(**root, "cpuset.cpus.effective");
  if (effective.empty() || online.is_subset_of(effective)) return {};
  CpuSet taken;
  const auto names = os::subdirectories((*above)->fd(), kMostBeside);
  for (const std::string& name : names.value_or(std::vector<std::string>())) {
    std::string path = parent;
    if (!path.empty()) path += '/';
    path += name;
    if (path == cgroup.path()) continue;
    const auto beside = Cgroup::open(cgroup.root(), path);
    if (!beside) continue;
    std::array<char, 256> buffer;
    if (!is_valid_partition((*beside)->peek("cpuset.cpus.partition", buffer).value_or(""))) continue;
    const CpuSet exclusive = cpus_in(**beside, "cpuset.cpus.exclusive");
    taken |= exclusive.empty() ? cpus_in(**beside, "cpuset.cpus") : exclusive;
  }
  return taken;
}

std::vector<OwnedCpus> owned_cpus(const std::vector<CpusetGroup>& groups, const CpuSet& isolated,
                                  const CpuSet& online, const std::optional<ExclusiveOfKubelet>& kubelet) {
  std::map<std::string, OwnedCpus> owners;
  const CpuSet shared = shared_by_pods(groups);
  CpuSet open = online;
  for (const CpusetGroup& group : groups) {
    if (group.partition) open -= cpus_of_partition(group);
  }
  for (const CpusetGroup& group : groups) {
    OwnedCpus owned{.owner = group.path, .cpus = {}, .how = OwnedHow::partition};
    if (group.partition) {
      owned.cpus = cpus_of_partition(group);
    } else if (!group.exclusive.empty()) {
      owned.how = OwnedHow::exclusive;
      owned.cpus = group.exclusive_effective.empty() ? group.exclusive : group.exclusive_effective;
    } else if (is_pinned(group, open)) {
      owned.how = group.qos ? OwnedHow::kubelet : OwnedHow::runtime;
      if (!group.qos || is_exclusive_of_kubelet(group, shared, kubelet)) owned.cpus = group.cpus;
    }
    owned.cpus &= online;
    if (!owned.cpus.empty()) owners.emplace(group.path, std::move(owned));
  }
  // The vCPUs of an inner owner are no longer those of the groups that it lies in.
  CpuSet all;
  std::map<std::string, CpuSet> inner;
  for (const auto& [path, owned] : owners) {
    all |= owned.cpus;
    for (std::size_t end = path.rfind('/'); end != std::string::npos && end > 0;
         end = path.rfind('/', end - 1))
      inner[path.substr(0, end)] |= owned.cpus;
  }
  std::vector<OwnedCpus> result;
  if (const CpuSet left = (isolated & online) - all; !left.empty())
    result.push_back({.owner = {}, .cpus = left, .how = OwnedHow::isolated});
  for (auto& [path, owned] : owners) {
    if (const auto below = inner.find(path); below != inner.end()) owned.cpus -= below->second;
    if (!owned.cpus.empty()) result.push_back(std::move(owned));
  }
  return result;
}

std::vector<OwnedCpus> read_owned_cpus(const CpusetSources& sources) {
  const auto root = Cgroup::open(sources.cgroup_root, "");
  if (!root) return {};
  const CpuSet isolated =
      cpus_in(sources.sys_root / "devices/system/cpu/isolated") | cpus_in(**root, "cpuset.cpus.isolated");
  const CpuSet effective = cpus_in(**root, "cpuset.cpus.effective");
  const bool partitions =
      (!effective.empty() && !sources.online.is_subset_of(effective)) || isolated.intersects(sources.online);
  std::vector<CpusetGroup> groups;
  for (const std::string& path : sources.trusted(!partitions)) {
    const auto cgroup = Cgroup::open(sources.cgroup_root, path);
    if (!cgroup) continue;
    const bool of_runtime = has_cpuset_of_runtime(path);
    if (of_runtime && !is_roots((*cgroup)->fd(), "cpuset.cpus", (*root)->fd())) continue;
    const bool of_berth = is_slurm_job(path) && sources.managed && sources.managed(path);
    CpusetGroup group{.path = path, .container = of_runtime && !of_berth, .qos = pod_qos(path)};
    if (partitions) {
      std::array<char, 256> buffer;
      group.partition = is_valid_partition((*cgroup)->peek("cpuset.cpus.partition", buffer).value_or(""));
      group.exclusive = cpus_in(**cgroup, "cpuset.cpus.exclusive");
      if (group.partition || !group.exclusive.empty())
        group.exclusive_effective = cpus_in(**cgroup, "cpuset.cpus.exclusive.effective");
    }
    if (group.partition || group.container) {
      const auto before = sources.original(path, (*cgroup)->id());
      group.cpus = before ? *before : cpus_in(**cgroup, "cpuset.cpus");
      group.effective = cpus_in(**cgroup, "cpuset.cpus.effective");
    }
    if (group.container && !group.cpus.empty()) {
      std::array<char, 256> buffer;
      const auto limit = parse_cpu_max((*cgroup)->peek("cpu.max", buffer).value_or(""));
      if (limit) group.quota_cores = cores_of(*limit);
    }
    groups.push_back(std::move(group));
  }
  const bool pods = std::any_of(groups.begin(), groups.end(), is_pod_container);
  return owned_cpus(groups, isolated, sources.online,
                    pods ? read_exclusive_of_kubelet(sources.kubelet_cpus) : std::nullopt);
}

}  // namespace berth::cgroup
