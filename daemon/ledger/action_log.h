// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/ledger/log_entry.h"

#include <string>
#include <string_view>
#include <vector>

namespace berth::daemon {

// LogEntry::kind for the outcomes of a request for admission (docs/contract/log.md).
inline constexpr const char* kAdmit = "admit";

// One line for users: "pinned system.slice/web.service to 0-1 (was 0-7): ...".
std::string describe(const LogEntry& entry);

// The fields of a journal entry, "NAME=value"; the first is MESSAGE. Values are plain text
// (model/plain_text.h): MESSAGE has kMostLineBytes at most, the others have kMostFieldBytes. The second
// function is for an event.
std::vector<std::string> journal_fields(const LogEntry& entry);
std::vector<std::string> journal_fields(const char* message_id, int priority, const std::string& message,
                                        std::string_view mode, const std::string& workload,
                                        const std::string& decision);

// Writes one structured journal entry (docs/contract/log.md, journal). Also writes it as a line to standard
// error where that is not the journal. On a host without a journal only the line is written.
void announce(const LogEntry& entry);

// The same for an event that is no action: a MESSAGE_ID of daemon/ledger/message_ids.h, the mode, and the
// workload and the decision where there is one. `priority` as in syslog(3).
void announce_event(const char* message_id, int priority, const std::string& message, std::string_view mode,
                    const std::string& workload = "", const std::string& decision = "");

}  // namespace berth::daemon
