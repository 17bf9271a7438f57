// SPDX-License-Identifier: Apache-2.0
#include "daemon/ledger/enforcer_log.h"

#include <bit>
#include <utility>

namespace berth::daemon {

bool worth_saying(std::uint32_t attempt) { return std::has_single_bit(attempt); }

LogEntry blank_entry(double now, std::string kind, std::string workload, model::Attribute attribute,
                     std::string policy) {
  LogEntry entry;
  entry.time = now;
  entry.mode = kEnforce;
  entry.kind = std::move(kind);
  entry.workload = std::move(workload);
  entry.attribute = model::control_file(attribute);
  entry.policy = std::move(policy);
  return entry;
}

LogEntry interrupts_entry(double now, const char* mode, const std::vector<int>& numbers, const char* result) {
  LogEntry entry;
  entry.time = now;
  entry.mode = mode;
  entry.kind = "interrupts";
  entry.attribute = "smp_affinity_list";
  entry.new_value = os::list_text(numbers);
  entry.result = result;
  return entry;
}

LogEntry irqbalance_entry(double now, const char* mode, const char* result) {
  LogEntry entry = interrupts_entry(now, mode, {}, result);
  entry.attribute = "irqbalance";
  return entry;
}

std::vector<LogEntry> entries_of(const cgroup::InterruptsBack& back, double now, const char* mode,
                                 const std::string& reason) {
  std::vector<LogEntry> entries;
  const auto add = [&](const std::vector<int>& numbers, const char* result) -> LogEntry& {
    LogEntry& entry = entries.emplace_back(interrupts_entry(now, mode, numbers, result));
    entry.reason = reason;
    return entry;
  };
  if (!back.restored.empty()) add(back.restored, "restored");
  if (back.irqbalance) entries.emplace_back(irqbalance_entry(now, mode, "restored")).reason = reason;
  for (const auto& left : back.left) {
    LogEntry& entry = add({}, "left");
    if (left.name == "irqbalance") {
      entry.attribute = left.name;
    } else {
      entry.new_value = left.name.substr(left.name.rfind(' ') + 1);
    }
    entry.error = left.reason;
  }
  if (back.problem) add({}, "failed").error = *back.problem;
  return entries;
}

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
    LogEntry& entry = add(change.workload, model::control_file(change.attribute()), "restored");
    entry.old_value = cgroup::to_text(change.before);
    entry.new_value = cgroup::to_text(change.after);
  }
  for (const auto& left : report.left) {
    add(left.workload, model::control_file(left.attribute), "left").error = left.reason;
  }
  for (const auto& leaf : report.leaves) {
    LogEntry& entry = add(leaf.leaf, "cgroup.procs", leaf.problem ? "left" : "restored");
    entry.old_value = leaf.leaf;
    entry.new_value = leaf.origin;
    entry.error = leaf.problem;
  }
  append(entries, entries_of(report.interrupts, now, mode, reason));
  for (const auto& path : report.gone) add(path, "", "gone");
  for (const auto& warning : report.warnings) add("", "", "failed").error = warning;
  return entries;
}

}  // namespace berth::daemon
