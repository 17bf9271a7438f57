// SPDX-License-Identifier: Apache-2.0
#include "cgroup/pod_logs.h"

#include "os/directory.h"
#include "os/file_descriptor.h"

#include <algorithm>
#include <cstddef>

#include <fcntl.h>

namespace berth::cgroup {

bool is_pod_of_the_system(const std::filesystem::path& logs, std::string_view uid) {
  // kubelet runs 110 pods unless it is told otherwise, and directories of former ones stay for a while.
  constexpr std::size_t kMostPods = 4096;
  static constexpr std::string_view kNamespace = "kube-system_";
  if (uid.empty()) return false;
  const os::FileDescriptor directory(open(logs.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto names = directory ? os::subdirectories(directory.get(), kMostPods) : std::nullopt;
  if (!names) return false;
  return std::any_of(names->begin(), names->end(), [uid](std::string_view name) {
    if (!name.starts_with(kNamespace) || !name.ends_with(uid)) return false;
    name.remove_suffix(uid.size());
    return name.size() > kNamespace.size() && name.ends_with('_');
  });
}

}  // namespace berth::cgroup
