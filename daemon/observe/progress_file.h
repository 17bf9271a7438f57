// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"
#include "os/file_descriptor.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace berth::daemon {

// Tells two states of a file apart; a new file under the same name differs from the old one.
struct FileState {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;

  friend bool operator==(const FileState&, const FileState&) = default;
};

// Content of a progress file (docs/progress.md) when it was read.
struct ProgressReading {
  FileState state;
  double modified = 0;             // epoch seconds of the wall clock
  std::optional<double> fraction;  // 0..1; nullopt where the file is empty
};

// At most so many bytes of a file's end are read.
inline constexpr std::size_t kProgressTail = 4096;

// The last line that is not blank, as model::parse_progress() takes it. A last line without its line break
// counts where it parses; otherwise it is half written, and the one before it counts. `handle`: of
// walk_to(). Never blocks on what is no regular file, and opens nothing else: no device, FIFO or socket, nor
// a symbolic link's target. Error invalid_input where it is no such text or no regular file, saying what it
// is; otherwise the system's.
model::Result<ProgressReading> read_progress_file(const os::FileDescriptor& handle);

// The file's state without reading it.
model::Result<FileState> state_of(const os::FileDescriptor& handle);

// Why berthd cannot see the file that other programs see at `path`, by PROC_ROOT/self/mountinfo: its unit's
// ProtectHome= or PrivateTmp= (systemd.exec(5)). nullopt where neither is in the way.
std::optional<std::string> hidden_by_sandbox(const std::filesystem::path& path,
                                             const std::filesystem::path& proc_root);

}  // namespace berth::daemon
