// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"
#include "os/file_descriptor.h"
#include "spark/interview.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace berth::spark {

// The place of an application's event log.
struct EventLogPlace {
  std::filesystem::path directory;
  std::string name;  // without the suffixes for compression and "in progress"
  friend bool operator==(const EventLogPlace&, const EventLogPlace&) = default;
};

// The place by the application's Spark properties; nullopt where it writes no log. Error `unavailable` where
// the log is in no directory of a host (spark.eventLog.dir of another scheme than file:).
model::Result<std::optional<EventLogPlace>> event_log_of(const std::map<std::string, std::string>& properties,
                                                         const std::string& app, const std::string& attempt);

// Reads an event log as it grows: one file, or many by rolling (spark.eventLog.rolling.enabled). A history
// server may compact old parts meanwhile (spark.history.fs.eventLog.rolling.maxFilesToRetain). Then some
// events may come twice.
//
// Only files of the driver's own user are read: the driver names the path, and could name any other user's. A
// compacted file of another user is skipped.
class EventLogFile {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{8} << 20;  // at once

  EventLogFile(EventLogPlace place, uid_t owner, OpenLog open)
      : place_(std::move(place)), owner_(owner), open_(std::move(open)) {}

  // Passes on the text written since the last call, kMostBytes at most. Errors: `gone` where there is no such
  // file (yet), `unavailable` where it is compressed, `refused` where it belongs to another user or is no
  // regular file.
  model::Result<void> read(const std::function<void(std::string_view)>& take);
  // The last `bytes` come again at the next call. They must be of the present part.
  void unread(std::size_t bytes) { offset_ -= std::min(offset_, static_cast<off_t>(bytes)); }

 private:
  model::Result<void> find();
  model::Result<os::FileDescriptor> open_own(const std::filesystem::path& path) const;
  model::Result<std::vector<std::string>> parts() const;
  model::Result<bool> find_part(std::optional<std::uint64_t> after);
  model::Result<bool> find_next();
  void go_on();
  std::filesystem::path part_path(std::uint64_t part) const;

  EventLogPlace place_;
  uid_t owner_;
  OpenLog open_;
  os::FileDescriptor file_;
  off_t offset_ = 0;
  std::optional<std::uint64_t> part_;  // of a rolled log
  struct Next {
    os::FileDescriptor file;
    std::uint64_t part = 0;
  };
  std::optional<Next> next_;  // set once the present part does not grow any more
};

}  // namespace berth::spark
