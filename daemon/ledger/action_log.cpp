// SPDX-License-Identifier: Apache-2.0
#include "daemon/ledger/action_log.h"

#include <sys/uio.h>
#include <syslog.h>

#define SD_JOURNAL_SUPPRESS_LOCATION
#include "daemon/ledger/message_ids.h"
#include "model/plain_text.h"
#include "os/log.h"
#include "os/outbox.h"

#include <utility>
#include <vector>

#include <fmt/core.h>
#include <systemd/sd-journal.h>

namespace berth::daemon {

namespace {

std::string shown(const std::string& value) { return value.empty() ? "unset" : value; }

int priority_of(const LogEntry& entry) {
  if (entry.result == "failed") return LOG_WARNING;
  if (entry.kind == "evict" && entry.result == "applied") return LOG_NOTICE;
  if (entry.kind == "advertise") return entry.new_value == "evict" ? LOG_WARNING : LOG_NOTICE;
  if (entry.result == "left" && entry.kind == "restore") return LOG_WARNING;
  if (entry.result == "left" && entry.kind == "interrupts") return LOG_NOTICE;
  if (entry.result == "left") return entry.error ? LOG_ALERT : LOG_NOTICE;
  return LOG_INFO;
}

const char* done(const LogEntry& entry) {
  if (entry.kind == "pin") return "pinned";
  return entry.kind == "unpin" || entry.kind == "restore" ? "restored" : "set";
}

const char* message_id_of(const LogEntry& entry) {
  if (entry.result == "observed") return nullptr;  // nothing was written
  if (entry.kind == "evict") {
    if (entry.result == "failed") return kMessageEvictionFailed;
    return entry.result == "gone" ? nullptr : kMessageEvicted;
  }
  if (entry.kind == "foreign") return kMessageForeignWriter;
  if (entry.kind == "restore" || entry.kind == "unpin") return kMessageRestored;
  if (entry.kind == "advertise") return kMessageSchedulingState;
  if (entry.kind == kAdmit) return kMessageAdmission;
  if (entry.kind == "leaf") return nullptr;
  if (entry.kind == "interrupts") return entry.result == "restored" ? kMessageRestored : nullptr;
  if (entry.result == "applied") return entry.kind == "pin" ? kMessagePinApplied : kMessageLimitChanged;
  if (entry.result == "failed") return kMessagePinFailed;
  return nullptr;  // only proposed, or overtaken by the workload's end
}

os::LogLevel level_of(int priority) {
  if (priority <= LOG_CRIT) return os::LogLevel::critical;
  if (priority == LOG_ERR) return os::LogLevel::error;
  if (priority == LOG_WARNING) return os::LogLevel::warning;
  return os::LogLevel::info;
}

void send(std::vector<std::string> fields) {
  std::size_t bytes = 0;
  for (const auto& field : fields) bytes += field.size();
  os::journal_outbox().post(bytes, [fields = std::move(fields)]() mutable {
    std::vector<iovec> parts;
    parts.reserve(fields.size());
    for (auto& field : fields) parts.push_back({field.data(), field.size()});
    sd_journal_sendv(parts.data(), static_cast<int>(parts.size()));
  });
}

// Values may be of others. The id of a workload stays as it is, but for invisible characters: users look for
// it.
std::vector<std::string> made_plain(std::vector<std::string> fields) {
  for (std::string& field : fields) {
    const std::size_t value = field.find('=') + 1;
    const std::size_t most = field.starts_with("MESSAGE=") ? model::kMostLineBytes : model::kMostFieldBytes;
    field.replace(value, std::string::npos, model::plain_text(std::string_view(field).substr(value), most));
  }
  return fields;
}

// "evict a.service: terminate by StopUnit", "evict a.service: end".
std::string eviction_text(const LogEntry& entry) {
  std::string what = fmt::format("{} {}: {}", entry.result == "observed" ? "would evict" : "evict",
                                 entry.workload, entry.attribute);
  if (!entry.new_value.empty()) what += " by " + entry.new_value;
  if (entry.result == "failed" || entry.result == "left" || entry.result == "gone")
    what += fmt::format(" ({})", entry.result);
  return what;
}

// "admit web: held", "admit web: came", "admit web: refused".
std::string admission_text(const LogEntry& entry) {
  return fmt::format("admit {}: {}", entry.workload,
                     entry.new_value.empty() ? entry.result : entry.new_value);
}

}  // namespace

std::string describe(const LogEntry& entry) {
  std::string what;
  if (entry.kind == "evict") {
    what = eviction_text(entry);
  } else if (entry.kind == kAdmit) {
    what = admission_text(entry);
  } else if (entry.kind == "foreign") {
    what = entry.workload;
  } else if (entry.kind == "advertise") {
    what = fmt::format("{} is in state {} (was {})", entry.attribute == "cpu" ? "the CPU" : "memory",
                       entry.new_value, shown(entry.old_value));
  } else if (entry.kind == "leaf" && entry.result == "applied") {
    what = entry.attribute.empty()
               ? fmt::format("stopped {}", entry.workload)
               : fmt::format("made cgroup {} beside {}", entry.new_value, entry.old_value);
  } else if (entry.kind == "interrupts" && entry.attribute == "irqbalance") {
    what = fmt::format("irqbalance's banned CPUs {}: {}", shown(entry.new_value), entry.result);
  } else if (entry.kind == "interrupts") {
    what = fmt::format("interrupts {}: {}", entry.new_value, entry.result);
  } else if (entry.result == "observed") {
    what = fmt::format("would {} {}: {} {} (is {})", entry.kind, entry.workload, entry.attribute,
                       shown(entry.new_value), shown(entry.old_value));
  } else if (entry.result == "applied" || entry.result == "restored") {
    what = fmt::format("{} {}: {} {} (was {})", done(entry), entry.workload, entry.attribute,
                       shown(entry.new_value), shown(entry.old_value));
  } else if (entry.result == "gone") {
    what = fmt::format("{} {}: the cgroup is gone", entry.kind, entry.workload);
  } else if (entry.result == "left") {
    what = fmt::format("left {} of {} as it is", entry.attribute, entry.workload);
  } else {
    what = fmt::format("{} {} failed", entry.kind, entry.workload);
  }
  if (!entry.reason.empty()) what += ": " + entry.reason;
  if (entry.error && entry.error != entry.reason && entry.kind != "foreign") what += ": " + *entry.error;
  if (!entry.decision.empty()) what += " [" + entry.decision + "]";
  return what;
}

std::vector<std::string> journal_fields(const LogEntry& entry) {
  std::vector<std::string> fields{
      "MESSAGE=" + describe(entry),         fmt::format("PRIORITY={}", priority_of(entry)),
      "SYSLOG_IDENTIFIER=berthd",           "BERTH_WORKLOAD=" + entry.workload,
      "BERTH_ATTRIBUTE=" + entry.attribute, "BERTH_OLD=" + entry.old_value,
      "BERTH_NEW=" + entry.new_value,       "BERTH_DECISION=" + entry.decision,
      "BERTH_MODE=" + entry.mode,           "BERTH_RESULT=" + entry.result,
  };
  if (const char* id = message_id_of(entry)) fields.push_back(fmt::format("MESSAGE_ID={}", id));
  if (entry.error) fields.push_back("BERTH_ERROR=" + *entry.error);
  return made_plain(std::move(fields));
}

std::vector<std::string> journal_fields(const char* message_id, int priority, const std::string& message,
                                        std::string_view mode, const std::string& workload,
                                        const std::string& decision) {
  std::vector<std::string> fields{
      "MESSAGE=" + message,
      fmt::format("PRIORITY={}", priority),
      "SYSLOG_IDENTIFIER=berthd",
      fmt::format("MESSAGE_ID={}", message_id),
      fmt::format("BERTH_MODE={}", mode),
  };
  if (!workload.empty()) fields.push_back("BERTH_WORKLOAD=" + workload);
  if (!decision.empty()) fields.push_back("BERTH_DECISION=" + decision);
  return made_plain(std::move(fields));
}

void announce(const LogEntry& entry) {
  send(journal_fields(entry));
  if (!os::stderr_is_journal()) os::log_line(level_of(priority_of(entry)), describe(entry));
}

void announce_event(const char* message_id, int priority, const std::string& message, std::string_view mode,
                    const std::string& workload, const std::string& decision) {
  send(journal_fields(message_id, priority, message, mode, workload, decision));
  if (!os::stderr_is_journal()) os::log_line(level_of(priority), message);
}

}  // namespace berth::daemon
