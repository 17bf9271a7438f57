// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cgroup/attribute.h"
#include "model/error.h"

namespace berth::cgroup {

// One changed attribute: what it was, and what berth last made of it.
struct UndoRecord {
  std::string path;          // cgroup path below the v2 root
  std::uint64_t cgroup_id = 0;
  Attribute attribute = Attribute::cpus;
  std::string owner;         // "systemd" or "direct"
  std::string unit;          // systemd unit; empty for direct
  std::string original;
  std::string written;
};

// Durable record of originals, kept before the first write of each (SQLite in STATE_DIR/undo.db). Records of an earlier boot are
// void, as cgroups and runtime properties are: they are dropped at opening.
class UndoJournal {
 public:
  // Error where the directory is missing, read-only or full, or another process holds the journal.
  static model::Result<std::unique_ptr<UndoJournal>> open(const std::filesystem::path& state_dir,
                                                          const std::string& boot_id);
  ~UndoJournal();

  // Durable on return. Keeps the original of an existing record and replaces only `written`.
  model::Result<void> record(const UndoRecord& record);
  model::Result<void> forget(const std::string& path, std::uint64_t cgroup_id, Attribute attribute);
  std::optional<UndoRecord> find(const std::string& path, std::uint64_t cgroup_id, Attribute attribute) const;
  // Oldest first.
  std::vector<UndoRecord> records() const;

 private:
  struct State;
  explicit UndoJournal(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace berth::cgroup
