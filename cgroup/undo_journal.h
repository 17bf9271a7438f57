// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/value.h"
#include "model/error.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace berth::cgroup {

// One changed attribute: its value before berth, and the last value that berth wrote.
struct UndoRecord {
  std::string path;  // cgroup path below the v2 root
  std::uint64_t cgroup_id = 0;
  std::string owner;  // "systemd" or "direct"
  std::string unit;   // systemd unit; empty for direct
  Value original;
  std::string note;  // Original::note
  Value written;     // of the same attribute
  // The value in force, written by berth too, when `written` was recorded. It is still in force if berth died
  // before writing.
  std::optional<Value> previous;

  Attribute attribute() const { return attribute_of(written); }
  friend bool operator==(const UndoRecord&, const UndoRecord&) = default;
};

// One changed attribute of the host itself, which no cgroup has: its values as texts of the one that changes
// it.
struct HostRecord {
  std::string name;  // such as "irq/24"
  std::string original;
  std::string written;
  std::optional<std::string> previous;  // as UndoRecord::previous

  // The original has been written, though it is in force later: nothing is left to put back.
  bool is_undone() const { return written == original; }
  friend bool operator==(const HostRecord&, const HostRecord&) = default;
};

// Record of originals, kept before the first write of each (SQLite in RUNTIME_DIR/undo.db). It outlives its
// process. It need not outlive the boot, as cgroups and runtime properties do not: opening drops records of
// an earlier boot. So it lies in memory (tmpfs), and no write waits for a disk. One process at a time holds
// the journal. Reads are answered from memory.
class UndoJournal {
 public:
  // Error where the directory is missing, read-only or full, or another process holds the journal (its pid is
  // named). Error also where the file is damaged or of a later version; the message says how to go on. A
  // damaged file from a former boot is set aside as undo.db.damaged: its records are void anyhow.
  static model::Result<std::unique_ptr<UndoJournal>> open(const std::filesystem::path& directory,
                                                          const std::string& boot_id);
  // True where the directory holds a journal at all. Error where that cannot be seen, as by a user without
  // access to it: records may be there.
  static model::Result<bool> exists(const std::filesystem::path& directory);
  ~UndoJournal();

  // Safe from an end of this process on return. Keeps original and note of an existing record and replaces
  // the rest. A unit has one record per attribute, whichever group the unit has: the setting outlives the
  // group. After an error nothing was recorded.
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

  // Attributes of the host, as record() and forget(). While one is to be put back, the file has a format that
  // a berthd without them refuses; else it has the one that each knows.
  model::Result<void> record(std::span<const HostRecord> records);
  model::Result<void> forget_host(std::span<const std::string> names);
  const std::map<std::string, HostRecord>& host() const;  // by name

  // Records of either kind.
  std::size_t size() const;
  // Those that are to be put back: without HostRecord::is_undone().
  std::size_t to_put_back() const;
  // Damage found and mended at opening, for the log.
  const std::vector<std::string>& warnings() const;

 private:
  struct State;
  explicit UndoJournal(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The kernel's id of this boot. Error where PROC_ROOT/sys/kernel/random/boot_id cannot be read.
model::Result<std::string> read_boot_id(const std::filesystem::path& proc_root);

}  // namespace berth::cgroup
