// SPDX-License-Identifier: Apache-2.0
#include "daemon/enforcer.h"

#include "cgroup/attribute.h"
#include "daemon/shadow.h"

#include <algorithm>
#include <bit>
#include <type_traits>
#include <utility>
#include <variant>

#include <fmt/format.h>

namespace berth::daemon {

namespace {

using cgroup::Attribute;
using model::CpuSet;
using model::ErrorKind;

constexpr const char* kEnforce = "enforce";
// A unit's value may pass through another one while systemd reads its units again.
constexpr int kTicksUntilForeignUnit = 2;
// Requests handed to the writer at once: it makes as many records durable in one transaction.
constexpr std::size_t kBatchSize = 64;
// What a batch may take; only a service manager that hangs reaches it. Far below the watchdog's patience.
constexpr std::chrono::milliseconds kBatchBudget{5000};

// What goes wrong tick after tick is said the first time and then ever more rarely.
bool worth_saying(std::uint32_t attempt) { return std::has_single_bit(attempt); }

CpuSet cpus_of(const std::string& text) { return CpuSet::parse(text).value_or(CpuSet()); }

bool is_latency_sensitive(const model::Snapshot& snapshot, const std::string& id) {
  const auto found =
      std::lower_bound(snapshot.workloads.begin(), snapshot.workloads.end(), id,
                       [](const model::Workload& w, const std::string& key) { return w.id < key; });
  return found != snapshot.workloads.end() && found->id == id &&
         found->workload_class == model::WorkloadClass::latency_sensitive;
}

LogEntry blank_entry(double now, std::string kind, std::string workload, std::string policy) {
  LogEntry entry;
  entry.time = now;
  entry.mode = kEnforce;
  entry.kind = std::move(kind);
  entry.workload = std::move(workload);
  entry.attribute = cgroup::control_file(Attribute::cpus);
  entry.policy = std::move(policy);
  return entry;
}

}  // namespace

std::vector<LogEntry> entries_of(const cgroup::RestoreReport& report, double now, const char* mode,
                                 const std::string& reason) {
  std::vector<LogEntry> entries;
  const auto add = [&](const std::string& workload, const std::string& attribute,
                       const char* result) -> LogEntry& {
    LogEntry& entry = entries.emplace_back();
    entry.time = now;
    entry.mode = mode;
    entry.kind = "restore";
    entry.workload = workload;
    entry.attribute = attribute;
    entry.reason = reason;
    entry.result = result;
    return entry;
  };
  for (const auto& change : report.restored) {
    LogEntry& entry = add(change.workload, cgroup::control_file(change.attribute), "restored");
    entry.old_value = change.before;
    entry.new_value = change.after;
  }
  for (const auto& left : report.left) {
    add(left.workload, cgroup::control_file(left.attribute), "left").error = left.reason;
  }
  for (const auto& path : report.gone) add(path, "", "gone");
  for (const auto& warning : report.warnings) add("", "", "failed").error = warning;
  return entries;
}

std::vector<LogEntry> Enforcer::follow(const Found& found, double now) {
  const auto run_of = [&found](const std::string& id) {
    const auto known = found.find(id);
    return known == found.end() ? 0 : known->second.cgroup->id();
  };
  std::vector<std::string> departed;
  for (auto& [id, pin] : pins_) {
    const auto run = run_of(id);
    if (run == pin.cgroup_id) continue;
    // A unit that restarted has the pin in its new group: systemd keeps it with the unit.
    if (run != 0 && writer_.original(found.at(id), Attribute::cpus)) {
      pin.cgroup_id = run;
    } else {
      departed.push_back(id);
    }
  }
  for (const auto& [id, item] : unmanaged_) {
    if (run_of(id) != item.cgroup_id) departed.push_back(id);
  }
  std::vector<LogEntry> entries;
  for (const auto& id : departed) {
    pins_.erase(id);
    unmanaged_.erase(id);
    attempts_.erase(id);
    // Also where the cgroup is still there and only no workload any more: then its own value is due back.
    auto report = writer_.restore(id, Attribute::cpus);
    read_again_(id);
    if (!report) continue;  // berth never wrote
    report->gone.clear();   // that it is gone is the occasion, not news
    auto more = entries_of(*report, now, kEnforce, "the workload ended");
    std::move(more.begin(), more.end(), std::back_inserter(entries));
    settle_ = true;
  }
  settle(entries, now);
  return entries;
}

void Enforcer::settle(std::vector<LogEntry>& entries, double now) {
  if (!std::exchange(settle_, false)) return;
  if (const auto settled = writer_.settle(); !settled) {
    LogEntry entry = blank_entry(now, "restore", "", "");
    entry.result = "failed";
    entry.error = settled.error().message();
    entries.push_back(std::move(entry));
  }
}

std::vector<LogEntry> Enforcer::check(const Observer::Readings& readings, const Found& found,
                                      config::ForeignWriter on_foreign, double now) {
  std::vector<LogEntry> entries;
  for (auto it = pins_.begin(); it != pins_.end();) {
    const auto& [id, pin] = *it++;  // what is done below may erase it
    const auto target = found.find(id);
    const auto reading = readings.find(id);
    if (target == found.end() || reading == readings.end() || reading->second.gone) continue;
    const CpuSet& value = reading->second.cpus;
    const std::string text = value.to_string();
    LogEntry entry = blank_entry(now, "foreign", id, "foreign-writer");
    entry.old_value = pin.cpus.to_string();
    entry.new_value = text;
    switch (writer_.drift(target->second, Attribute::cpus, text)) {
      case cgroup::Drift::none:
        pins_[id].ticks_foreign = 0;
        // Already as wanted when berth came, so never written, and now it is not: the next plan decides
        // afresh.
        if (value != pin.cpus) pins_.erase(id);
        break;
      case cgroup::Drift::undone:
        entry.reason = "systemd read its units again and lost the value that it holds";
        write_again(target->second, std::move(entry), entries);
        break;
      case cgroup::Drift::foreign:
        read_again_(id);  // so that the next tick judges what is there then
        if (++pins_[id].ticks_foreign < (target->second.systemd_unit.empty() ? 1 : kTicksUntilForeignUnit))
          break;
        found_foreign(target->second, text, on_foreign, std::move(entry), entries);
        break;
    }
  }

  for (auto it = unmanaged_.begin(); it != unmanaged_.end();) {
    const auto& [id, unmanaged] = *it;
    const auto reading = readings.find(id);
    if (unmanaged.pin && reading != readings.end() && reading->second.cpus == unmanaged.pin->cpus) {
      LogEntry entry = blank_entry(now, "foreign", id, "foreign-writer");
      entry.new_value = reading->second.cpus.to_string();
      entry.reason = "the value that berth wrote is back: the workload is managed again";
      entry.result = "applied";
      entries.push_back(std::move(entry));
      pins_.insert_or_assign(id, *unmanaged.pin);
      it = unmanaged_.erase(it);
    } else {
      ++it;
    }
  }
  settle(entries, now);
  return entries;
}

void Enforcer::write_again(const cgroup::FoundWorkload& target, LogEntry entry,
                           std::vector<LogEntry>& entries) {
  const std::string& id = target.identity.id;
  Pin& pin = pins_[id];
  const auto set = writer_.set(target, Attribute::cpus, pin.cpus.to_string());
  read_again_(id);
  if (!set) {
    fail(target, set.error(), std::move(entry), entries);
    return;
  }
  pin.ticks_foreign = 0;
  if (!worth_saying(++pin.reasserted)) return;
  entry.reason += fmt::format("; written again ({} times by now)", pin.reasserted);
  std::swap(entry.old_value, entry.new_value);
  entry.result = "applied";
  entries.push_back(std::move(entry));
}

void Enforcer::found_foreign(const cgroup::FoundWorkload& target, const std::string& value,
                             config::ForeignWriter on_foreign, LogEntry entry,
                             std::vector<LogEntry>& entries) {
  const std::string id = target.identity.id;
  const std::string what = fmt::format(
      "somebody else changed cpuset.cpus to \"{}\" after berth made it \"{}\"", value, entry.old_value);
  if (on_foreign == config::ForeignWriter::reassert) {
    entry.reason = what;
    write_again(target, std::move(entry), entries);
    return;
  }
  const bool alarm = on_foreign == config::ForeignWriter::alarm;
  Unmanaged unmanaged{
      target.cgroup->id(), alarm ? Unmanaged::Cause::alarm : Unmanaged::Cause::foreign_writer, what, {}};
  entry.reason = what + "; left alone until it restarts";
  entry.result = "left";
  if (alarm) {
    // The record stays: should the value come back, berth goes on where it was.
    unmanaged.pin = pins_[id];
    unmanaged.pin->ticks_foreign = 0;
    entry.reason = what + "; left alone until that value is back, or it restarts";
    entry.error = what;
  } else if (const auto disowned = writer_.disown(id, Attribute::cpus); !disowned) {
    entry.error = disowned.error().message();
  }
  settle_ = true;
  pins_.erase(id);
  unmanaged_.insert_or_assign(id, std::move(unmanaged));
  entries.push_back(std::move(entry));
}

// Pins on their way to the writer. They go together, as each durable record waits for the disk; but no
// further than the next action that needs to know how an earlier one ended.
struct Enforcer::Batch {
  std::vector<cgroup::Request> requests;
  std::vector<LogEntry> entries;   // of the requests
  std::vector<LogEntry> finished;  // in the plan's order
  const model::Snapshot& snapshot;
  const std::chrono::steady_clock::time_point deadline;
  CpuSet moving;  // held by latency-sensitive workloads that `requests` move
  CpuSet stuck;   // held by latency-sensitive workloads whose move failed
};

void Enforcer::flush(Batch& batch) {
  if (std::chrono::steady_clock::now() < batch.deadline) {
    const auto results = writer_.set_many(batch.requests, kBatchBudget);
    for (std::size_t i = 0; i < results.size(); ++i) {
      const auto& request = batch.requests[i];
      const std::string& id = request.target->identity.id;
      read_again_(id);
      LogEntry& entry = batch.entries[i];
      if (!results[i]) {
        if (const auto pin = pins_.find(id); pin != pins_.end() && is_latency_sensitive(batch.snapshot, id)) {
          batch.stuck |= pin->second.cpus;
        }
        fail(*request.target, results[i].error(), std::move(entry), batch.finished);
        continue;
      }
      Pin& pin = pins_[id];
      const auto original = writer_.original(*request.target, Attribute::cpus);
      pin = Pin{request.target->cgroup->id(),
                cpus_of(request.value),
                cpus_of(original.value_or(request.value)),
                batch.snapshot.time,
                0,
                0};
      attempts_.erase(id);
      entry.old_value = *results[i] ? (*results[i])->before : request.value;
      entry.result = "applied";
      batch.finished.push_back(std::move(entry));
    }
  } else {
    batch.stuck |= batch.moving;  // not begun: the next tick's plan has them again
  }
  batch.requests.clear();
  batch.entries.clear();
  batch.moving = {};
}

std::vector<LogEntry> Enforcer::apply(const model::Plan& plan, const model::Snapshot& snapshot,
                                      const Found& found, std::chrono::milliseconds budget) {
  Batch batch{{}, {}, {}, snapshot, std::chrono::steady_clock::now() + budget, {}, {}};
  for (const auto& action : plan.actions) {
    const auto* id = action.workload();
    if (id == nullptr || unmanaged_.count(*id) > 0) continue;
    LogEntry entry = entry_of(action, plan.time, kEnforce);
    const auto target = found.find(*id);
    if (target == found.end()) {
      entry.result = "gone";
      batch.finished.push_back(std::move(entry));
      continue;
    }
    const auto held = pins_.find(*id);
    const CpuSet held_cpus =
        held != pins_.end() && is_latency_sensitive(snapshot, *id) ? held->second.cpus : CpuSet();

    if (const auto* pin = std::get_if<model::PinAction>(&action.what)) {
      if (pin->cpus.intersects(batch.moving) || batch.requests.size() >= kBatchSize) flush(batch);
      if (pin->cpus.intersects(batch.stuck - held_cpus)) {
        batch.stuck |= held_cpus;
        const auto attempt = ++attempts_[*id];
        if (!worth_saying(attempt)) continue;
        entry.result = "failed";
        entry.error = fmt::format("vCPUs {} are still held by a workload that could not be moved; attempt {}",
                                  (pin->cpus & batch.stuck).to_string(), attempt);
        batch.finished.push_back(std::move(entry));
        continue;
      }
      batch.requests.push_back({&target->second, Attribute::cpus, pin->cpus.to_string()});
      batch.entries.push_back(std::move(entry));
      batch.moving |= held_cpus;
    } else if (std::holds_alternative<model::UnpinAction>(action.what)) {
      flush(batch);
      unpin(*id, std::move(entry), batch);
    } else {
      entry.result = "failed";
      entry.error = fmt::format("this version of berth has no way to {}", action.kind());
      batch.finished.push_back(std::move(entry));
    }
  }
  flush(batch);
  settle(batch.finished, plan.time);
  return std::move(batch.finished);
}

void Enforcer::unpin(const std::string& id, LogEntry entry, Batch& batch) {
  const auto held = pins_.find(id);
  if (held != pins_.end()) entry.old_value = held->second.cpus.to_string();
  const auto report = writer_.restore(id, Attribute::cpus);
  settle_ = true;
  read_again_(id);
  // Pinned where it already was: berth never wrote, and there is nothing to take back.
  const bool never_written = !report && report.error().kind() == ErrorKind::invalid_input;
  if (!report && !never_written) {
    if (held != pins_.end() && is_latency_sensitive(batch.snapshot, id)) batch.stuck |= held->second.cpus;
    const auto attempt = ++attempts_[id];
    entry.result = "failed";
    entry.error = fmt::format("{}; attempt {}", report.error().message(), attempt);
    if (worth_saying(attempt)) batch.finished.push_back(std::move(entry));
    return;
  }
  entry.result = "applied";
  if (never_written) {
    entry.new_value = entry.old_value;
  } else if (!report->restored.empty()) {
    entry.old_value = report->restored.front().before;
    entry.new_value = report->restored.front().after;
  } else if (!report->left.empty()) {
    entry.result = "left";
    entry.error = report->left.front().reason;
  } else if (!report->gone.empty()) {
    entry.result = "gone";
  }
  pins_.erase(id);
  attempts_.erase(id);
  batch.finished.push_back(std::move(entry));
}

void Enforcer::fail(const cgroup::FoundWorkload& target, const model::Error& error, LogEntry entry,
                    std::vector<LogEntry>& entries) {
  const std::string id = target.identity.id;
  // A missing control file is "gone" as well, but of a group that is still there.
  if (error.kind() == ErrorKind::gone && !target.cgroup->is_current()) {
    entry.result = "gone";
    entry.error = error.message();
    entries.push_back(std::move(entry));
    return;
  }
  entry.result = "failed";
  if (error.kind() == ErrorKind::transient) {
    const auto attempt = ++attempts_[id];
    entry.error = fmt::format("{}; attempt {}, will be tried again", error.message(), attempt);
    if (worth_saying(attempt)) entries.push_back(std::move(entry));
    return;
  }
  entry.error = error.message();
  const double time = entry.time;
  entries.push_back(std::move(entry));
  unmanaged_.insert_or_assign(id,
                              Unmanaged{target.cgroup->id(), Unmanaged::Cause::error, error.message(), {}});
  attempts_.erase(id);
  // What cannot be managed is not kept where berth once put it.
  if (pins_.erase(id) == 0) return;
  if (const auto report = writer_.restore(id, Attribute::cpus)) {
    auto more = entries_of(*report, time, kEnforce, "the workload cannot be managed: " + error.message());
    std::move(more.begin(), more.end(), std::back_inserter(entries));
  }
  settle_ = true;
}

void Enforcer::retry_failed() {
  std::erase_if(unmanaged_, [](const auto& item) { return item.second.cause == Unmanaged::Cause::error; });
}

void Enforcer::retry_foreign() {
  std::erase_if(unmanaged_, [](const auto& item) { return item.second.cause != Unmanaged::Cause::error; });
}

}  // namespace berth::daemon
