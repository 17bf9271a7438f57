// SPDX-License-Identifier: Apache-2.0
#include "ebpf/tree_scan.h"

#include "ebpf/collector.h"
#include "ebpf/load.h"
#include "os/beneath.h"
#include "os/directory.h"
#include "os/file_descriptor.h"

#include <cerrno>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>

namespace berth::ebpf {

namespace {

// Deeper groups are too many descriptors at once.
constexpr int kMostLevels = 64;

// A directory that vanishes meanwhile is left out with all below it. So is a file system that a user mounted
// there: its numbers are no cgroups, and it may never answer. False where there are too many.
bool scan_below(int parent_fd, std::uint64_t parent, int level, std::vector<ScannedGroup>& found) {
  const auto names = os::subdirectories(parent_fd, kMostCgroups);
  if (!names) return true;
  for (const std::string& name : *names) {
    const os::FileDescriptor fd = os::open_child(parent_fd, name.c_str());
    struct stat about {};
    if (!fd || fstat(fd.get(), &about) != 0) continue;
    if (found.size() >= kMostCgroups || level >= kMostLevels) return false;
    found.push_back({about.st_ino, parent});
    if (!scan_below(fd.get(), about.st_ino, level + 1, found)) return false;
  }
  return true;
}

}  // namespace

model::Result<std::vector<ScannedGroup>> scan_tree(const std::filesystem::path& root) {
  const os::FileDescriptor fd(open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat about {};
  if (!fd || fstat(fd.get(), &about) != 0) {
    return model::fail(model::Error::from_errno(errno, "opening the cgroup tree at " + root.string()));
  }
  std::vector<ScannedGroup> found{{about.st_ino, 0}};
  if (!scan_below(fd.get(), about.st_ino, 1, found)) return model::fail(too_many_cgroups());
  return found;
}

}  // namespace berth::ebpf
