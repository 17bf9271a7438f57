// SPDX-License-Identifier: Apache-2.0
#include "cgroup/writer.h"

#include "cgroup/systemd_owner_bus.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/core.h>

namespace berth::cgroup {

namespace {

constexpr std::size_t kChunk = 64;  // records per durable transaction

std::string named(const std::string& workload, Attribute attribute) {
  return fmt::format("{} of \"{}\"", control_file(attribute), workload);
}

// Tells whether more than `budget` has passed since this call.
auto time_limit(std::chrono::milliseconds budget) {
  return [budget, start = std::chrono::steady_clock::now()] {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start) >
           budget;
  };
}

Original original_of(const UndoRecord& record) { return {record.original, record.note}; }

}  // namespace

// A request that needs a write, and the record that has to be durable before.
struct Writer::Prepared {
  Target target;
  Owner* owner = nullptr;
  UndoRecord record;
  std::optional<UndoRecord> existing;
  Value before;
};

Writer::Writer(std::filesystem::path cgroup_root, UndoJournal& journal, Owner& direct, Owner* systemd)
    : root_(std::move(cgroup_root)), journal_(journal), direct_(direct), systemd_(systemd) {}

Owner* Writer::owner_of(const UndoRecord& record) const {
  if (record.owner == direct_.name()) return &direct_;
  return systemd_ != nullptr && record.owner == systemd_->name() ? systemd_ : nullptr;
}

std::optional<UndoRecord> Writer::record_of(const FoundWorkload& target, Attribute attribute) const {
  if (auto record = journal_.find(target.identity.id, target.cgroup->id(), attribute)) return record;
  // A unit keeps its setting when it gets a new group.
  return journal_.find_unit(target.systemd_unit, attribute);
}

model::Result<std::optional<Writer::Prepared>> Writer::prepare(const Request& request) {
  const FoundWorkload& found = *request.target;
  const Attribute attribute = attribute_of(request.value);
  if (request.value == Value(model::CpuSet())) {
    return model::fail(model::ErrorKind::invalid_input, "an empty set of vCPUs; restore() takes a pin back");
  }
  if (request.value == Value(MemoryNodes())) {
    return model::fail(model::ErrorKind::invalid_input,
                       "an empty set of NUMA nodes; restore() takes it back");
  }
  if (!found.cgroup->is_current()) {
    return model::fail(model::ErrorKind::gone, "the cgroup no longer exists, or another one took its path");
  }
  Prepared prepared;
  prepared.existing = record_of(found, attribute);
  if (prepared.existing) {
    prepared.owner = owner_of(*prepared.existing);
    if (prepared.owner == nullptr) {
      return model::fail(model::ErrorKind::unavailable,
                         "berth changed it through systemd, and cannot reach systemd now");
    }
  } else {
    const bool by_unit =
        systemd_ != nullptr && !found.systemd_unit.empty() && !properties_of(attribute).empty();
    prepared.owner = by_unit ? systemd_ : &direct_;
  }
  const bool by_unit = prepared.owner == systemd_;
  prepared.target = {found.cgroup.get(), by_unit ? found.systemd_unit : std::string()};
  const Value value = prepared.owner->attainable(request.value);
  const auto current = prepared.owner->current(prepared.target, attribute);
  if (!current) return model::fail(current.error());
  prepared.before = *current;

  const auto& existing = prepared.existing;
  if (*current == value && (!existing || existing->written == value)) return std::nullopt;
  // The record has the value of the earlier call, which may still be done. With another value in the record,
  // it would look like another program's, and its original would be lost.
  if (existing && prepared.owner->is_busy(prepared.target, attribute))
    return model::fail(model::ErrorKind::transient, "an earlier change is not done yet");
  prepared.record = {
      found.identity.id, found.cgroup->id(), prepared.owner->name(), prepared.target.unit, {}, {}, value,
      std::nullopt};
  if (existing) {
    // The value in force may be taken back only if berth wrote it.
    if (*current == existing->written || *current == existing->previous) prepared.record.previous = *current;
  } else {
    auto original = prepared.owner->original(prepared.target, attribute);
    if (!original) return model::fail(original.error());
    prepared.record.original = std::move(original->value);
    prepared.record.note = std::move(original->note);
  }
  return prepared;
}

SetResult Writer::carry_out(const Prepared& prepared) {
  const UndoRecord& record = prepared.record;
  // The kernel says ENODEV of a cgroup that goes, and a filter below berth may say it of one that stays.
  const auto vanished = [&](const model::Error& error) {
    const Cgroup* cgroup = prepared.target.cgroup;
    return error.kind() == model::ErrorKind::gone &&
           !(record.unit.empty() && cgroup != nullptr && cgroup->is_current());
  };
  const auto done = prepared.owner->set(prepared.target, record.written);
  if (done) return Change{record.path, prepared.before, record.written};
  model::Error error = done.error().context(
      fmt::format("setting {} to \"{}\"", named(record.path, record.attribute()), to_text(record.written)));
  // The outcome is unknown: the record covers both cases, and the caller tries again.
  if (error.kind() == model::ErrorKind::transient) return model::fail(std::move(error));
  if (prepared.existing) {
    if (vanished(error)) return model::fail(std::move(error));
    UndoRecord former = record;
    former.written = prepared.existing->written;
    former.previous = record.written;
    const auto back = prepared.owner->set(prepared.target, former.written);
    const auto kept = journal_.record(former);
    if (back && kept) return model::fail(std::move(error));
    return model::fail(error.context("cannot put the former value back after an error"));
  }
  const Original original{record.original, record.note};
  const auto back = prepared.owner->reset(prepared.target, original);
  if (!back && !vanished(back.error())) {
    // The record stays: a later restore finds what this one could not put back.
    return model::fail(
        model::Error(error.kind(), fmt::format("{}; putting \"{}\" back failed too: {}", error.message(),
                                               to_text(record.original), back.error().message())));
  }
  if (const auto forgotten = journal_.forget(std::span(&record, 1)); !forgotten) {
    return model::fail(
        model::Error(error.kind(), fmt::format("{}; {}", error.message(), forgotten.error().message())));
  }
  return model::fail(std::move(error));
}

SetResult Writer::set(const FoundWorkload& target, const Value& value) {
  const Request request{&target, value};
  return std::move(set_many(std::span(&request, 1), std::chrono::milliseconds::max()).front());
}

std::vector<SetResult> Writer::set_many(std::span<const Request> requests, std::chrono::milliseconds budget) {
  const auto spent = time_limit(budget);
  std::vector<SetResult> results;
  results.reserve(requests.size());
  std::optional<model::Error> silent;  // systemd did not answer: do not wait for it again
  while (results.size() < requests.size()) {
    const std::size_t first = results.size();
    const std::size_t last = std::min(requests.size(), first + kChunk);
    std::vector<std::optional<Prepared>> chunk;
    std::vector<UndoRecord> records;
    std::set<std::pair<std::string, Attribute>> begun;
    for (std::size_t i = first; i < last; ++i) {
      const Request& request = requests[i];
      // A second request for the same attribute must see the result of the first one.
      const Attribute attribute = attribute_of(request.value);
      if (!begun.emplace(request.target->identity.id, attribute).second) break;
      if (spent()) {
        results.push_back(
            model::fail(model::ErrorKind::transient,
                        fmt::format("setting {}: postponed, because this tick's time for writing is used up",
                                    named(request.target->identity.id, attribute))));
        chunk.emplace_back();
        continue;
      }
      auto prepared = prepare(request);
      if (!prepared) {
        results.push_back(model::fail(prepared.error().context(fmt::format(
            "setting {} to \"{}\"", named(request.target->identity.id, attribute), to_text(request.value)))));
        chunk.emplace_back();
        continue;
      }
      results.emplace_back(std::nullopt);
      if (*prepared) records.push_back((*prepared)->record);
      chunk.push_back(std::move(*prepared));
    }
    const auto recorded = journal_.record(records);
    std::vector<UndoRecord> not_asked;
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      if (!chunk[i]) continue;
      const Prepared& prepared = *chunk[i];
      SetResult& result = results[first + i];
      if (!recorded) {
        result = model::fail(
            recorded.error().context(fmt::format("not changing {}: its original cannot be recorded",
                                                 named(prepared.record.path, prepared.record.attribute()))));
      } else if (prepared.before == prepared.record.written) {
        result = std::nullopt;  // in force already; only the record had to be put right
      } else if (prepared.owner == systemd_ && silent) {
        // Not even asked for: an earlier change may still be done, and stays on record.
        if (prepared.existing) not_asked.push_back(*prepared.existing);
        result = model::fail(*silent);
      } else {
        result = carry_out(prepared);
        if (!result && result.error().kind() == model::ErrorKind::transient && prepared.owner == systemd_) {
          silent = result.error();
        }
      }
    }
    // Where this fails, a change that is done late looks like another program's.
    (void)journal_.record(not_asked);
  }
  return results;
}

Drift Writer::drift(const FoundWorkload& target, const Value& current) {
  const auto record = record_of(target, attribute_of(current));
  if (!record || current == record->written) return Drift::none;
  Owner* owner = owner_of(*record);
  if (owner == nullptr) return Drift::none;
  const auto merged =
      owner->merged({target.cgroup.get(), record->unit}, original_of(*record), record->written, current);
  // It cannot be known now; the next reading asks again.
  if (!merged) return Drift::none;
  return *merged ? Drift::undone : Drift::foreign;
}

std::optional<Value> Writer::original(const FoundWorkload& target, Attribute attribute) const {
  const auto record = record_of(target, attribute);
  return record ? std::optional(record->original) : std::nullopt;
}

std::optional<Value> Writer::written(const FoundWorkload& target, Attribute attribute) const {
  const auto record = record_of(target, attribute);
  return record ? std::optional(record->written) : std::nullopt;
}

// Returns true where the record is not needed any more.
bool Writer::restore_one(const UndoRecord& record, RestoreReport& report) {
  const auto leave = [&](std::string reason, bool kept) {
    report.left.push_back({record.path, record.attribute(), std::move(reason), kept});
    return false;
  };
  const auto leave_after = [&](const model::Error& error) { return leave(error.message(), true); };
  Owner* owner = owner_of(record);
  if (owner == nullptr)
    return leave("berth changed it through systemd, and cannot reach systemd now; restore again later", true);

  const auto opened = Cgroup::open(root_, record.path);
  if (!opened && opened.error().kind() != model::ErrorKind::gone) return leave_after(opened.error());
  // A direct write died with its group; a unit's setting is applied to whichever group it has.
  const bool same = opened && ((*opened)->id() == record.cgroup_id || !record.unit.empty());
  const Target target{same ? opened->get() : nullptr, record.unit};
  const Original original = original_of(record);

  const auto current = owner->current(target, record.attribute());
  if (!current && current.error().kind() != model::ErrorKind::gone) return leave_after(current.error());
  if (!current) {
    if (const auto cleaned = owner->relinquish(target, original, record.written); !cleaned) {
      return leave_after(cleaned.error());
    }
    report.gone.push_back(record.path);
    return true;
  }
  // A restore, or a change to another weight, that was cut short may have ended idle priority, and not yet
  // written the weight.
  bool ours = *current == record.written || *current == record.previous ||
              has_lost_weight(record.written, *current) ||
              (record.previous && has_lost_weight(*record.previous, *current));
  if (!ours && *current != record.original) {
    const auto merged = owner->merged(target, original, record.written, *current);
    if (!merged) return leave_after(merged.error());
    ours = *merged;
  }
  if (!ours || *current == record.original) {
    if (const auto cleaned = owner->relinquish(target, original, record.written); !cleaned) {
      return leave_after(cleaned.error());
    }
    if (*current == record.original) {
      report.restored.push_back({record.path, *current, *current});
    } else {
      leave(fmt::format(
                "another program has changed it: it is \"{}\", berth wrote \"{}\", before that it was \"{}\"",
                to_text(*current), to_text(record.written), to_text(record.original)),
            false);
    }
    return true;
  }
  const auto back = owner->reset(target, original);
  if (back) {
    report.restored.push_back({record.path, *current, *back});
    return true;
  }
  const bool stays = record.unit.empty() && same && (*opened)->is_current();
  if (back.error().kind() != model::ErrorKind::gone || stays) return leave_after(back.error());
  report.gone.push_back(record.path);
  return true;
}

RestoreReport Writer::restore_records(const std::vector<UndoRecord>& records, bool settled,
                                      std::chrono::milliseconds budget) {
  const auto spent = time_limit(budget);
  RestoreReport report;
  std::vector<UndoRecord> served;
  for (const UndoRecord& record : records) {
    if (spent()) {
      report.left.push_back(
          {record.path, record.attribute(), "postponed: there was no time left for it", true});
    } else if (restore_one(record, report)) {
      served.push_back(record);
    }
  }
  if (settled) {
    if (const auto done = settle(); !done) report.warnings.push_back(done.error().message());
  }
  // Forgotten together, at the end: a restore that is cut short is simply done again.
  if (const auto forgotten = journal_.forget(served); !forgotten) {
    report.warnings.push_back(forgotten.error().message() +
                              "; the next restore will find nothing to do for these");
  }
  return report;
}

model::Result<RestoreReport> Writer::restore(const std::string& path, Attribute attribute) {
  std::vector<UndoRecord> records = journal_.find_path(path);
  std::erase_if(records, [&](const UndoRecord& record) { return record.attribute() != attribute; });
  if (records.empty()) {
    return model::fail(model::ErrorKind::invalid_input,
                       fmt::format("berth did not change {}", named(path, attribute)));
  }
  return restore_records(records, false);
}

RestoreReport Writer::restore_all(std::chrono::milliseconds budget) {
  std::vector<UndoRecord> records = journal_.records();
  std::reverse(records.begin(), records.end());
  return restore_records(records, true, budget);
}

model::Result<void> Writer::disown(const std::string& path, Attribute attribute) {
  std::vector<UndoRecord> records = journal_.find_path(path);
  std::erase_if(records, [&](const UndoRecord& record) { return record.attribute() != attribute; });
  for (const UndoRecord& record : records) {
    Owner* owner = owner_of(record);
    if (owner == nullptr) continue;
    const auto opened = Cgroup::open(root_, path);
    const Target target{opened ? opened->get() : nullptr, record.unit};
    if (auto cleaned = owner->relinquish(target, original_of(record), record.written); !cleaned) {
      return model::fail(
          cleaned.error().context(fmt::format("leaving {} to its new owner", named(path, attribute))));
    }
  }
  return journal_.forget(records);
}

model::Result<void> Writer::settle() {
  if (auto done = direct_.settle(); !done) return done;
  return systemd_ != nullptr ? systemd_->settle() : model::Result<void>();
}

}  // namespace berth::cgroup
