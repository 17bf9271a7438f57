// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cgroup/attribute.h"
#include "cgroup/discovery.h"
#include "cgroup/undo_journal.h"
#include "model/error.h"

namespace berth::cgroup {

struct Change {
  std::string workload;
  Attribute attribute = Attribute::cpus;
  std::string before;  // read right before the write
  std::string after;
};

// What became of every record at a restore.
struct RestoreReport {
  std::vector<Change> restored;
  struct Left {
    std::string workload;
    Attribute attribute = Attribute::cpus;
    std::string reason;  // changed by somebody else since (what it is, what berth wrote), or the error
  };
  std::vector<Left> left;
  std::vector<std::string> gone;  // cgroups that no longer exist: nothing to put back
};

// Changes attributes of cgroups, each original recorded durably before its first write, and can take all back.
class Writer {
 public:
  // `systemd` may be null: then units are written directly, which systemd may undo. The owners outlive the writer.
  Writer(std::filesystem::path cgroup_root, UndoJournal& journal, Owner& direct, Owner* systemd);

  // Makes `attribute` of `target` `value`; nullopt where it already was so and nothing was written. Error where the
  // group vanished (gone) or refused (the kernel's reason and the value tried); nothing is left half done.
  model::Result<std::optional<Change>> set(const FoundWorkload& target, Attribute attribute, const std::string& value);

  // Puts one attribute back, unless somebody else changed it since.
  model::Result<RestoreReport> restore(const std::string& path, Attribute attribute);
  // Everything in the journal.
  RestoreReport restore_all();
  // Drops the record of an attribute that is somebody else's now, leaving its value.
  void disown(const std::string& path, Attribute attribute);

 private:
  std::filesystem::path root_;
  UndoJournal& journal_;
  Owner& direct_;
  Owner* systemd_;
};

}  // namespace berth::cgroup
