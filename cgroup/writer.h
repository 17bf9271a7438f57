// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/attribute.h"
#include "cgroup/discovery.h"
#include "cgroup/leaf.h"
#include "cgroup/undo_journal.h"
#include "model/error.h"

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace berth::cgroup {

struct Change {
  std::string workload;
  Attribute attribute = Attribute::cpus;
  std::string before;  // read right before the write
  std::string after;
};

// What became of every record at a restore.
struct RestoreReport {
  // Back as before berth; before == after where nothing had to be written. Where the kernel does not let the
  // original be put back (a cpulist cannot be cleared under running tasks before Linux 7.0), `after` is its
  // equivalent: every vCPU.
  std::vector<Change> restored;
  struct Left {
    std::string workload;
    Attribute attribute = Attribute::cpus;
    std::string reason;  // changed by somebody else since (what it is, what berth wrote), or the error
  };
  std::vector<Left> left;
  std::vector<std::string> gone;      // cgroups that no longer exist: nothing to put back
  std::vector<std::string> warnings;  // everything is back, but something beside it failed
  std::vector<PutBack> leaves;        // cgroups that berth had made for executors
};

// A value that berth did not write.
enum class Drift {
  none,     // as berth wrote it, or never written
  undone,   // systemd merged it with the unit's own setting at a daemon-reload: write it again
  foreign,  // somebody else changed it since
};

// One attribute to be changed; `target` outlives the call.
struct Request {
  const FoundWorkload* target = nullptr;
  Attribute attribute = Attribute::cpus;
  std::string value;
};

using SetResult = model::Result<std::optional<Change>>;

// Changes attributes of cgroups, each original recorded durably before its first write, and can take all
// back.
class Writer {
 public:
  // `systemd` may be null: then units are written directly, which systemd may undo. The owners outlive the
  // writer.
  Writer(std::filesystem::path cgroup_root, UndoJournal& journal, Owner& direct, Owner* systemd);

  // Makes `attribute` of `target` `value`; nullopt where it already was so and nothing was written. Error
  // where the group vanished (gone) or refused (the kernel's reason and the value tried); nothing is left
  // half done. Error transient: perhaps done, the record stays, try again.
  SetResult set(const FoundWorkload& target, Attribute attribute, const std::string& value);
  // The same for many, in order, one result each, with one durable transaction for up to 64 records. What is
  // not begun within `budget` is not begun (error transient, "postponed"), so that a caller with one thread
  // keeps its tick.
  std::vector<SetResult> set_many(std::span<const Request> requests, std::chrono::milliseconds budget);

  // What `current`, read after the last set(), says of an attribute (canonical, as
  // Sampler::Reading::cpus.to_string()). Costs nothing while it is what berth wrote.
  Drift drift(const FoundWorkload& target, Attribute attribute, const std::string& current);
  // What the attribute was before berth; nullopt where berth did not change it.
  std::optional<std::string> original(const FoundWorkload& target, Attribute attribute) const;
  // What berth made of it, as near to what was asked for as its owner can hold; nullopt likewise.
  std::optional<std::string> written(const FoundWorkload& target, Attribute attribute) const;

  // Puts one attribute back, unless somebody else changed it since.
  model::Result<RestoreReport> restore(const std::string& path, Attribute attribute);
  // Everything in the journal, newest first, and settles.
  RestoreReport restore_all();
  // A workload's cgroup vanished: forgets its records; what systemd would apply to the unit's next group is
  // reset.
  RestoreReport departed(const std::string& path);
  // Drops the record of an attribute that is somebody else's now, leaving its value.
  model::Result<void> disown(const std::string& path, Attribute attribute);
  // To be called at the end of a batch of restore(), departed(), disown(): has systemd read its units again
  // where removed drop-ins require that ("changed on disk"). Blocks for that long, at most 20 s.
  model::Result<void> settle();

 private:
  struct Prepared;
  model::Result<std::optional<Prepared>> prepare(const Request& request);
  SetResult carry_out(const Prepared& prepared);
  Owner* owner_of(const UndoRecord& record) const;
  std::optional<UndoRecord> record_of(const FoundWorkload& target, Attribute attribute) const;
  bool restore_one(const UndoRecord& record, RestoreReport& report);
  RestoreReport restore_records(const std::vector<UndoRecord>& records, bool settled);

  std::filesystem::path root_;
  UndoJournal& journal_;
  Owner& direct_;
  Owner* systemd_;
};

}  // namespace berth::cgroup
