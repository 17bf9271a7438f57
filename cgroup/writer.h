// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/discovery.h"
#include "cgroup/interrupt_writer.h"
#include "cgroup/leaf.h"
#include "cgroup/owner.h"
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
  Value before;  // read right before the write
  Value after;   // of the same attribute

  Attribute attribute() const { return attribute_of(after); }
};

// The outcome of a restore for every record.
struct RestoreReport {
  // Back as before berth; before == after where no write was needed. The kernel may not let the original be
  // put back: before Linux 7.0 a cpulist cannot be cleared under running tasks. Then `after` is its
  // equivalent: every vCPU.
  std::vector<Change> restored;
  struct Left {
    std::string workload;
    Attribute attribute = Attribute::cpus;
    std::string reason;  // another program's change since (its value, and berth's), or the error
    bool kept = false;   // the journal keeps the record, and a later restore tries again
  };
  std::vector<Left> left;
  std::vector<std::string> gone;      // cgroups that no longer exist: nothing to put back
  std::vector<std::string> warnings;  // everything is back, but a side task failed
  std::vector<PutBack> leaves;        // cgroups that berth had made for executors
  InterruptsBack interrupts;
};

// A value that berth did not write.
enum class Drift {
  none,     // berth wrote it, or berth never wrote the attribute
  undone,   // systemd merged it with the unit's own setting at a daemon-reload: write it again
  foreign,  // another program changed it since
};

// One attribute to be changed; `target` outlives the call.
struct Request {
  const FoundWorkload* target = nullptr;
  Value value;
};

using SetResult = model::Result<std::optional<Change>>;

// Changes attributes of cgroups, and can take all changes back. Each original is recorded durably before its
// first write.
class Writer {
 public:
  // `systemd` may be null: then units are written directly, which systemd may undo. Attributes that systemd
  // has no property for are written directly in any case. The owners outlive the writer.
  Writer(std::filesystem::path cgroup_root, UndoJournal& journal, Owner& direct, Owner* systemd);

  // Sets the value's attribute of `target`; nullopt where it already had the value. Error where the group
  // vanished (gone) or the kernel refused; the message has the kernel's reason and the value. Then the former
  // value is put back, or the message says that this failed too. Error transient: perhaps done, the record
  // stays, try again.
  SetResult set(const FoundWorkload& target, const Value& value);
  // Sets many, in order, with one result each, and one durable transaction for up to 64 records. A request
  // not begun within `budget` is postponed (error transient), so that a caller with one thread keeps its
  // tick.
  std::vector<SetResult> set_many(std::span<const Request> requests, std::chrono::milliseconds budget);

  // Compares `current`, read after the last set(), with the value that berth wrote. Costs nothing while they
  // are equal.
  Drift drift(const FoundWorkload& target, const Value& current);
  // The attribute's value before berth; nullopt where berth did not change it.
  std::optional<Value> original(const FoundWorkload& target, Attribute attribute) const;
  // The value that berth wrote: the nearest to the request that its owner can hold. nullopt likewise.
  std::optional<Value> written(const FoundWorkload& target, Attribute attribute) const;

  // Puts one attribute back, unless another program changed it since. If the cgroup has vanished, forgets the
  // record. A unit's setting, which systemd would apply to its next group, is reset.
  model::Result<RestoreReport> restore(const std::string& path, Attribute attribute);
  // Restores everything in the journal, newest first, and settles. After `budget` it begins with no further
  // record, and the journal keeps the rest for the next call.
  RestoreReport restore_all(std::chrono::milliseconds budget = std::chrono::milliseconds::max());
  // Drops the record of an attribute that another program has changed, leaving its value.
  model::Result<void> disown(const std::string& path, Attribute attribute);
  // Call it at the end of a batch of restore() and disown(). It lets systemd read its units again
  // where removed drop-ins require that ("changed on disk"). It blocks for that long, at most 20 s.
  model::Result<void> settle();

 private:
  struct Prepared;
  model::Result<std::optional<Prepared>> prepare(const Request& request);
  SetResult carry_out(const Prepared& prepared);
  Owner* owner_of(const UndoRecord& record) const;
  std::optional<UndoRecord> record_of(const FoundWorkload& target, Attribute attribute) const;
  bool restore_one(const UndoRecord& record, RestoreReport& report);
  RestoreReport restore_records(const std::vector<UndoRecord>& records, bool settled,
                                std::chrono::milliseconds budget = std::chrono::milliseconds::max());

  std::filesystem::path root_;
  UndoJournal& journal_;
  Owner& direct_;
  Owner* systemd_;
};

}  // namespace berth::cgroup
