// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/capability.h"
#include "model/error.h"
#include "os/clock.h"

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace berth::cgroup {

// The cgroup v2 tree of this host.
struct Hierarchy {
  std::filesystem::path root;
  std::set<std::string> controllers;  // of the root's cgroup.controllers
  bool hybrid = false;                // controllers are (partly) on v1; v2 carries only the rest
  std::map<std::string, std::string>
      v1_mounts;                              // controller to mount point; berth never touches what is there
  std::filesystem::path proc_root = "/proc";  // where the processes of the cgroups are looked up
  std::filesystem::path pod_logs = "/var/log/pods";  // where kubelet has a directory of each pod
  // Where kubelet says which vCPUs its containers have alone.
  std::filesystem::path kubelet_cpus = "/var/lib/kubelet/cpu_manager_state";
  os::Clock clock = os::Clock();  // of the times when cgroups were made
};

// Whether the directory is on a file system of cgroup v2, and so belongs to this kernel.
bool is_kernels_own(const std::filesystem::path& directory);

// Finds the v2 mount in PROC_ROOT/self/mountinfo, or takes `given` where it is not empty. It prefers the
// mount at /sys/fs/cgroup, then that at /sys/fs/cgroup/unified, then the first that shows the whole tree.
// Error unavailable where there is no v2 tree; it names the places that were looked at. The root must be on a
// file system of cgroup v2, unless PROC_ROOT is not /proc: then all of the host is of ordinary files.
model::Result<Hierarchy> find_hierarchy(const std::filesystem::path& given,
                                        const std::filesystem::path& proc_root);

// The mounted controllers, each with its mount point.
using ControllerMounts = model::Result<std::map<std::string, std::string>>;
using ListControllers = std::function<ControllerMounts()>;
// The same with another source of the controllers; none: nothing is known of cgroup v1.
model::Result<Hierarchy> find_hierarchy(const std::filesystem::path& given,
                                        const std::filesystem::path& proc_root,
                                        const ListControllers& list_controllers);

// The abilities of the hierarchy: "cgroup-v2", "cpuset-controller", "cpu-controller", "memory-controller",
// "psi". Each missing one has the reason, and what berth does without it.
std::vector<model::Capability> capabilities(const Hierarchy& hierarchy);

// The mounted controllers of this host, on cgroup v1 and v2, each with its first mount point, by libcgroup.
// It reads /proc/cgroups, /proc/mounts and cgroup.controllers of each v2 mount. Error unavailable, with
// libcgroup's reason. For one thread only.
//
// Nothing else of libcgroup is in use. It does not report a v2 tree without controllers, as hybrid hosts
// have. Its cgroup_create_cgroup() writes to cgroup.subtree_control of all ancestors. The undo journal
// would not know of that. Writes of attributes stay with the open descriptor of the cgroup.
model::Result<std::map<std::string, std::string>> mounted_controllers();

}  // namespace berth::cgroup
