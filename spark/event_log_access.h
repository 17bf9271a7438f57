// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"
#include "spark/interview.h"

#include <cstddef>
#include <filesystem>
#include <string_view>

#include <sys/types.h>

namespace berth::spark {

// The beginning of each file of an event log (JsonProtocol.scala: each line is an event).
inline constexpr std::string_view kEventLogStart = R"({"Event")";

// Opens a part of a driver's event log for berth-sparkd. The driver names the path. A stranger may have taken
// over berth-sparkd. So berthd hands out nothing that is no event log of the driver's user, and no directory
// through which other files can be reached:
//
// - a regular file, if it begins like an event log;
// - of a directory eventlog_v2_NAME, only the names of its parts (events_...).
//
// Both must belong to `user`. Errors: `gone` where there is nothing, or nothing in the file yet;
// `unavailable` for a file with another content, such as a compressed log; `refused` for the rest.
model::Result<LogFile> open_event_log(const OpenFile& open, const std::filesystem::path& path, uid_t user);

}  // namespace berth::spark
