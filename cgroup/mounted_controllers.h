// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"

#include <map>
#include <string>

namespace berth::cgroup {

// The mounted controllers of this host, on cgroup v1 and v2, each with its first mount point, by libcgroup.
// It reads /proc/cgroups, /proc/mounts and cgroup.controllers of each v2 mount. Error unavailable, with
// libcgroup's reason. For one thread only.
//
// Nothing else of libcgroup is in use. It does not report a v2 tree without controllers, as hybrid hosts
// have. Its cgroup_create_cgroup() writes to cgroup.subtree_control of all ancestors. The undo journal
// would not know of that. Writes of attributes stay with the open descriptor of the cgroup.
model::Result<std::map<std::string, std::string>> mounted_controllers();

}  // namespace berth::cgroup
