// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/undo_journal.h"
#include "os/file_descriptor.h"
#include "os/sqlite.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace berth::cgroup {

// Name of the journal's database in the state directory.
inline constexpr const char* kUndoFile = "undo.db";

// The journal's file, locked by this process: sound, of a version it knows, with the records of this boot
// only.
struct OpenUndoFile {
  os::FileDescriptor lock;  // held as long as the file is in use; let go after the database
  std::optional<os::Database> database;
  std::map<std::int64_t, UndoRecord> rows;  // by age
  std::vector<std::string> warnings;        // damage that was mended
};

// Error as UndoJournal::open().
model::Result<OpenUndoFile> open_undo_file(const std::filesystem::path& directory,
                                           const std::string& boot_id);

}  // namespace berth::cgroup
