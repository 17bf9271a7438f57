// SPDX-License-Identifier: Apache-2.0
#include "cgroup/host_lock.h"

#include "cgroup/hierarchy.h"
#include "os/log.h"

#include <system_error>
#include <utility>

namespace berth::cgroup {

model::Result<HostLock> lock_host(const std::filesystem::path& cgroup_root,
                                  const std::filesystem::path& runtime_dir) {
  const bool kernels_own = is_kernels_own(cgroup_root);
  const std::filesystem::path file =
      kernels_own ? std::filesystem::path(kHostLock) : runtime_dir / "berthd.lock";
  std::error_code failed;
  std::filesystem::create_directories(file.parent_path(), failed);
  if (failed) {
    return model::fail(
        model::Error::from_errno(failed.value(), "this host: making " + file.parent_path().string()));
  }
  HostLock lock;
  auto taken = os::take_lock(file, "this host", "");
  if (!taken) return model::fail(taken.error());
  lock.file = std::move(*taken);
  if (!kernels_own) return lock;
  auto tree = os::lock_in_place(cgroup_root / kTreeLock, "this host");
  if (!tree && tree.error().kind() == model::ErrorKind::refused) return model::fail(tree.error());
  if (tree) {
    lock.tree = std::move(*tree);
  } else {
    os::log_warning("{}; a berthd in a container is not kept out", tree.error().message());
  }
  return lock;
}

}  // namespace berth::cgroup
