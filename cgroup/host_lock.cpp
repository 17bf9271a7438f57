// SPDX-License-Identifier: Apache-2.0
#include "cgroup/host_lock.h"

#include "cgroup/hierarchy.h"

#include <system_error>

namespace berth::cgroup {

model::Result<os::LockFile> lock_host(const std::filesystem::path& cgroup_root,
                                      const std::filesystem::path& runtime_dir) {
  const std::filesystem::path file =
      is_kernels_own(cgroup_root) ? std::filesystem::path(kHostLock) : runtime_dir / "berthd.lock";
  std::error_code failed;
  std::filesystem::create_directories(file.parent_path(), failed);
  if (failed) {
    return model::fail(
        model::Error::from_errno(failed.value(), "this host: making " + file.parent_path().string()));
  }
  return os::take_lock(file, "this host", "");
}

}  // namespace berth::cgroup
