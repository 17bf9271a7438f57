// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/attribute.h"
#include "model/error.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace berth::cgroup {

// One changed attribute: what it was, and what berth last made of it.
struct UndoRecord {
  std::string path;  // cgroup path below the v2 root
  std::uint64_t cgroup_id = 0;
  Attribute attribute = Attribute::cpus;
  std::string owner;  // "systemd" or "direct"
  std::string unit;   // systemd unit; empty for direct
  std::string original;
  std::string note;  // Original::note
  std::string written;
  // What was in force, written by berth too, when `written` was recorded: still in force if berth died before
  // writing.
  std::optional<std::string> previous;

  friend bool operator==(const UndoRecord&, const UndoRecord&) = default;
};

// Durable record of originals, kept before the first write of each (SQLite in STATE_DIR/undo.db). Records of
// an earlier boot are void, as cgroups and runtime properties are: they are dropped at opening. One process
// at a time holds it. Reads are answered from memory.
class UndoJournal {
 public:
  // Error where the directory is missing, read-only or full, another process holds the journal (its pid is
  // named), or the file is damaged or of a later version (how to go on is said). A damaged file that a former
  // boot left is set aside as undo.db.damaged: its records are void anyhow.
  static model::Result<std::unique_ptr<UndoJournal>> open(const std::filesystem::path& state_dir,
                                                          const std::string& boot_id);
  // True where STATE_DIR holds a journal at all. Error where that cannot be seen, as by a user who may not
  // enter it: records may be there.
  static model::Result<bool> exists(const std::filesystem::path& state_dir);
  ~UndoJournal();

  // Durable on return. Keeps original and note of an existing record and replaces the rest. Records of a unit
  // are one per unit and attribute, whichever group the unit has: the setting outlives the group. Error:
  // nothing was recorded.
  model::Result<void> record(const UndoRecord& record);
  // The same for many, in one transaction: all or none.
  model::Result<void> record(std::span<const UndoRecord> records);
  model::Result<void> forget(const std::string& path, std::uint64_t cgroup_id, Attribute attribute);
  model::Result<void> forget(std::span<const UndoRecord> records);

  std::optional<UndoRecord> find(const std::string& path, std::uint64_t cgroup_id, Attribute attribute) const;
  std::optional<UndoRecord> find_unit(const std::string& unit, Attribute attribute) const;
  // All records of a path, whichever group had it; oldest first.
  std::vector<UndoRecord> find_path(const std::string& path) const;
  // Oldest first.
  std::vector<UndoRecord> records() const;
  std::size_t size() const;
  // What was found at opening and mended, for the log.
  const std::vector<std::string>& warnings() const;

 private:
  struct State;
  explicit UndoJournal(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The kernel's id of this boot. Error where PROC_ROOT/sys/kernel/random/boot_id cannot be read.
model::Result<std::string> read_boot_id(const std::filesystem::path& proc_root);

}  // namespace berth::cgroup
