// SPDX-License-Identifier: Apache-2.0
#include "cli/render.h"
#include "cli/text.h"
#include "model/attribute.h"
#include "model/json_text.h"

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

#include <fmt/core.h>

namespace berth::cli {

namespace {

// An entry's parts, as they are.
struct Entry {
  std::string kind;
  std::string workload;
  std::string attribute;
  std::string old_value;
  std::string new_value;
  std::string result;

  bool is_observed() const { return result == "observed"; }
};

std::optional<double> number_at(std::string_view text) {
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || value < 0) return std::nullopt;
  return value;
}

// "1.50 cores" of a cpu.max; the text itself where it is none.
std::string quota(const std::string& text) {
  if (text.starts_with("max")) return "no limit";
  const auto quota_us = number_at(text);
  const std::size_t blank = text.find(' ');
  const auto period_us =
      blank == std::string::npos ? std::nullopt : number_at(std::string_view(text).substr(blank + 1));
  if (!quota_us || !period_us || *period_us == 0) return text;
  return fmt::format("{:.2f} cores", *quota_us / *period_us);
}

std::string bytes(const std::string& text) {
  if (text == "max") return "no limit";
  const auto amount = number_at(text);
  return amount && *amount < 1e18 ? format_bytes(static_cast<std::uint64_t>(*amount)) : text;
}

// Of cpu.idle: "1", "0" or "0 WEIGHT", as cgroup::to_text() writes it; "" if it is not known; words of a
// replay.
std::string priority(const std::string& text) {
  if (text.empty()) return "the usual one";
  if (text == "1") return "idle";
  if (text == "0") return "weight 100";
  return text.starts_with("0 ") ? "weight " + text.substr(2) : text;
}

std::string cpus(const std::string& list) { return list.empty() ? "all vCPUs" : "vCPUs " + list; }

std::string nodes(const std::string& list) {
  if (list.empty()) return "all NUMA nodes";
  return (list.find_first_of(",-") == std::string::npos ? "NUMA node " : "NUMA nodes ") + list;
}

// "CPU quota", for a control file.
std::string name_of(const std::string& control_file) {
  const auto attribute = model::attribute_of(control_file);
  return attribute ? row_of(*attribute).name : control_file;
}

std::string value_of(const std::string& attribute, const std::string& value) {
  if (attribute == "cpuset.cpus") return cpus(value);
  if (attribute == "cpu.max") return quota(value);
  if (attribute == "memory.high") return bytes(value);
  if (attribute == "cpu.idle") return priority(value);
  if (attribute == "cpuset.mems") return nodes(value);
  if (value.empty()) return "(none)";
  const auto known = model::attribute_of(attribute);
  return known ? value + row_of(*known).unit : value;
}

// What became of an action that is no success and was not merely observed; "" for the others.
std::string without_success(const Entry& entry, const std::string& intent) {
  if (entry.result == "failed") return "berth could not " + intent;
  if (entry.result == "gone") return fmt::format("{} ended before berth could {}", entry.workload, intent);
  if (entry.result == "left") return fmt::format("berth gave up to {}", intent);
  return "";
}

std::string changed(const Entry& entry) {
  const std::string after = value_of(entry.attribute, entry.new_value);
  const std::string before = value_of(entry.attribute, entry.old_value);
  const bool pin = entry.attribute == "cpuset.cpus";
  const bool bond = entry.attribute == "cpuset.mems";
  const std::string intent =
      pin    ? fmt::format("pin {} to {}", entry.workload, after)
      : bond ? fmt::format("bind the memory of {} to {}", entry.workload, after)
             : fmt::format("set the {} of {} to {}", name_of(entry.attribute), entry.workload, after);
  if (entry.is_observed()) return fmt::format("berth would {} (now {})", intent, before);
  if (auto text = without_success(entry, intent); !text.empty()) return text;
  if (bond) return fmt::format("{} now has its memory on {} (before: {})", entry.workload, after, before);
  return pin ? fmt::format("{} now runs on {} (before: {})", entry.workload, after, before)
             : fmt::format("{} has a {} of {} now (before: {})", entry.workload, name_of(entry.attribute),
                           after, before);
}

std::string put_back(const Entry& entry) {
  if (entry.attribute.empty()) {
    return entry.result == "gone" ? entry.workload + " is gone, and berth's changes with it"
                                  : "berth could not read what it had changed";
  }
  if (entry.attribute == "cgroup.procs") {
    const std::string intent =
        fmt::format("move processes from {} back to {}", entry.old_value, entry.new_value);
    if (entry.result != "restored") return "berth could not " + intent;
    return fmt::format("the processes of {} are back in {}", entry.old_value, entry.new_value);
  }
  const std::string after = value_of(entry.attribute, entry.new_value);
  const std::string intent = fmt::format("put back the {} of {}", name_of(entry.attribute), entry.workload);
  if (entry.is_observed()) return fmt::format("berth would {}: {}", intent, after);
  if (auto text = without_success(entry, intent); !text.empty()) return text;
  const std::string before = value_of(entry.attribute, entry.old_value);
  if (entry.attribute == "cpuset.cpus")
    return fmt::format("{} may use {} again (before: {})", entry.workload, after, before);
  if (entry.attribute == "cpuset.mems")
    return fmt::format("{} may have memory on {} again (before: {})", entry.workload, after, before);
  return fmt::format("{} has its {} of {} again (before: {})", entry.workload, name_of(entry.attribute),
                     after, before);
}

std::string evicted(const Entry& entry) {
  const std::string memory = bytes(entry.old_value);
  const std::string uses = memory.empty() ? "" : fmt::format(" ({} in use)", memory);
  const std::string by = entry.new_value.empty() ? "" : fmt::format(" by {}", entry.new_value);
  const std::string& step = entry.attribute;
  const bool of_a_pod = entry.new_value == "pod eviction";
  const std::string intent = of_a_pod ? fmt::format("have Kubernetes evict the pod of {}", entry.workload)
                             : step == "decommission"
                                 ? fmt::format("have the executor {} leave{}", entry.workload, by)
                             : step == "kill" ? fmt::format("kill {}{}", entry.workload, by)
                                              : fmt::format("end {}{}", entry.workload, by);
  if (entry.is_observed()) return fmt::format("berth would evict {}{}", entry.workload, uses);
  if (auto text = without_success(entry, intent); !text.empty()) return text;
  if (step == "end") return fmt::format("{} has ended{}", entry.workload, uses);
  if (of_a_pod) return fmt::format("the pod of {} has to end{}", entry.workload, uses);
  if (step == "decommission")
    return fmt::format("berth asks the executor {} to leave{}{}", entry.workload, by, uses);
  if (step == "kill") return fmt::format("berth kills the rest of {}{}{}", entry.workload, by, uses);
  return fmt::format("berth asks {} to end{}{}", entry.workload, by, uses);
}

std::string advertised(const Entry& entry) {
  const char* resource = entry.attribute == "cpu" ? "CPU" : "memory";
  if (entry.new_value == "schedule")
    return fmt::format("the host takes new work again: its {} suffices", resource);
  if (entry.new_value == "no-schedule")
    return fmt::format("the host takes no new work: its {} is short", resource);
  if (entry.new_value == "evict")
    return fmt::format("the host must give up work: its {} is very short", resource);
  return fmt::format("the {} of the host is in state {}", resource, entry.new_value);
}

std::string admitted(const Entry& entry) {
  if (entry.result == "refused") return fmt::format("{} may not start here now", entry.workload);
  if (entry.new_value == "held") return fmt::format("{} may start: a place is kept for it", entry.workload);
  if (entry.new_value == "came") return fmt::format("{} has come to the place kept for it", entry.workload);
  if (entry.new_value == "expired")
    return fmt::format("{} did not come, and its place is free again", entry.workload);
  if (entry.new_value == "cancelled") return fmt::format("the place of {} was given up", entry.workload);
  if (entry.new_value == "replaced")
    return fmt::format("another request replaces that of {}", entry.workload);
  return fmt::format("admission of {}: {}", entry.workload, entry.new_value);
}

std::string leaf(const Entry& entry) {
  if (entry.result == "failed") return fmt::format("{} got no cgroup of its own", entry.workload);
  if (entry.new_value == "StopUnit")
    return fmt::format("berth stopped {}, left over from an earlier run", entry.workload);
  return fmt::format("{} has the cgroup {} of its own now", entry.workload, entry.new_value);
}

std::string interrupts(const Entry& entry) {
  if (entry.attribute == "irqbalance") {
    if (entry.result == "left") return "irqbalance's banned CPUs stay as they are";
    return entry.result == "applied" ? fmt::format("irqbalance is told to ban vCPUs {}, too", entry.new_value)
                                     : "irqbalance is told its own banned CPUs again";
  }
  if (entry.result == "applied") return fmt::format("interrupts {} leave owned vCPUs", entry.new_value);
  if (entry.result == "restored") return fmt::format("interrupts {} are back", entry.new_value);
  if (entry.result == "failed") return "interrupts could not be put back";
  return fmt::format("interrupts {} stay as they are", entry.new_value);
}

std::string foreign(const Entry& entry) {
  if (entry.old_value.empty() && entry.new_value.empty())
    return fmt::format("another program wrote the {} of {}", name_of(entry.attribute), entry.workload);
  return fmt::format("another program changed the {} of {}: {} (berth had set {})", name_of(entry.attribute),
                     entry.workload, value_of(entry.attribute, entry.new_value),
                     value_of(entry.attribute, entry.old_value));
}

}  // namespace

std::string sentence_of(const Document& entry) {
  const auto text = [&entry](const char* name) {
    const Document& value = member(entry, name);
    return value.is_null() || value.is_string() ? text_of(entry, name) : model::json_text(value);
  };
  const Entry parts{text("kind"), text("workload"), text("attribute"),
                    text("old"),  text("new"),      text("result")};
  if (parts.kind == "pin" || parts.kind == "set-cpu-quota" || parts.kind == "set-memory-high" ||
      parts.kind == "set-memory-nodes" || parts.kind == "set-cpu-priority")
    return changed(parts);
  if (parts.kind == "unpin" || parts.kind == "restore") return put_back(parts);
  if (parts.kind == "evict") return evicted(parts);
  if (parts.kind == "advertise") return advertised(parts);
  if (parts.kind == "admit") return admitted(parts);
  if (parts.kind == "leaf") return leaf(parts);
  if (parts.kind == "interrupts") return interrupts(parts);
  if (parts.kind == "foreign") return foreign(parts);
  if (parts.kind == "straggler") return parts.workload + " will miss its deadline";
  if (parts.kind == "relocation")
    return parts.workload + " will miss its deadline, and this host cannot help it";
  if (parts.kind == "mode") return fmt::format("the mode is {} now", parts.new_value);
  return fmt::format("{} {} {}: {} -> {}", parts.kind, parts.workload, parts.attribute, parts.old_value,
                     parts.new_value);
}

}  // namespace berth::cli
