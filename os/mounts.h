// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "os/file_descriptor.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::os {

// One line of /proc/PID/mountinfo (proc(5)).
struct Mount {
  std::uint64_t id = 0;  // of statx(2), too; the number of a mount that is gone is given away again
  std::string root;      // the directory of the file system that the mount shows; "/" is all of it
  std::string point;     // where it is mounted
  std::string type;
};

// Parses a line. Fields are separated by single blanks and may be empty: users choose the names of their
// mounts. nullopt for a line of another form.
std::optional<Mount> parse_mount(std::string_view line);

struct MountTable {
  std::vector<Mount> mounts;  // in the kernel's order: of two at one point the later one covers the other
  bool complete = true;       // false: a line had another form and is missing
};

// Reads PROC_ROOT/self/mountinfo, which asks no file system. nullopt where it cannot be read.
std::optional<MountTable> read_mounts(const std::filesystem::path& proc_root);

// The types of this thread's mounts, read again after each change of the mount table (proc(5), mountinfo).
class MountTypes {
 public:
  // Asks no file system. Empty where the table has no such mount. A handle on the mount must be open
  // meanwhile, so that the number stays its own.
  std::string type_of(std::uint64_t mount_id);

 private:
  // Before the table is read: a change meanwhile is then told the next time.
  bool is_changed();

  FileDescriptor table_;  // poll(2) tells changes since it was opened, or since the last call
  std::map<std::uint64_t, std::string> types_;
};

// The mount that an absolute path without symbolic links lies on; nullptr where the table has none.
const Mount* mount_of(const MountTable& table, std::string_view path);

}  // namespace berth::os
