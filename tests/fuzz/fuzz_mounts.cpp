// SPDX-License-Identifier: Apache-2.0
// A line of the mount table, in which users choose names: it is one mount or none.
#include "os/mounts.h"
#include "tests/fuzz/property.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view line = fuzz::text_of(data, size);
  const auto mount = berth::os::parse_mount(line);
  if (!mount) return 0;
  fuzz::require(mount->root.size() + mount->point.size() + mount->type.size() <= line.size(),
                "a mount is a part of its line");
  berth::os::MountTable table;
  table.mounts.push_back(*mount);
  const auto* found = berth::os::mount_of(table, "/sys/fs/cgroup/a");
  fuzz::require(found == nullptr || found == &table.mounts.front(), "the table has one mount");
  return 0;
}
