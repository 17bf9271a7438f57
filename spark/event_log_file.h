// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/file_descriptor.h"
#include "model/error.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <sys/types.h>

namespace berth::spark {

// Opens a file or directory for reading, wherever a user wants it to be: without being led to anything that
// hangs, or does something when it is opened. Error gone where there is none.
using OpenFile = std::function<model::Result<cgroup::FileDescriptor>(const std::filesystem::path&)>;

// Where an application's event log is.
struct EventLogPlace {
  std::filesystem::path directory;
  std::string name;  // without what says that it is compressed or in progress
  friend bool operator==(const EventLogPlace&, const EventLogPlace&) = default;
};

// By its Spark properties; nullopt where it writes none. Error `unavailable` where it is in no directory of a
// host (spark.eventLog.dir of another scheme than file:).
model::Result<std::optional<EventLogPlace>> event_log_of(const std::map<std::string, std::string>& properties,
                                                         const std::string& app, const std::string& attempt);

// Reads an event log as it grows, one file or rolled over many (spark.eventLog.rolling.enabled), of which a
// history server may compact old ones meanwhile (spark.history.fs.eventLog.rolling.maxFilesToRetain): what is
// read then may come twice. Only what belongs to the driver's own user is read: it names the file, and could
// name anybody's. What somebody else compacted is passed over.
class EventLogFile {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{8} << 20;  // at once

  EventLogFile(EventLogPlace place, uid_t owner, OpenFile open)
      : place_(std::move(place)), owner_(owner), open_(std::move(open)) {}

  // Hands on what was written since the last time, kMostBytes at most. Errors: `gone` where there is no such
  // file (yet), `unavailable` where it is compressed, `refused` where it is somebody else's or no file.
  model::Result<void> read(const std::function<void(std::string_view)>& take);

 private:
  model::Result<void> find();
  model::Result<cgroup::FileDescriptor> open_own(const std::filesystem::path& path, mode_t kind) const;
  model::Result<bool> find_part(std::optional<std::uint64_t> after);
  model::Result<bool> find_next();
  void go_on();
  std::filesystem::path part_path(std::uint64_t part) const;

  EventLogPlace place_;
  uid_t owner_;
  OpenFile open_;
  cgroup::FileDescriptor file_;
  off_t offset_ = 0;
  std::optional<std::uint64_t> part_;  // of one that is rolled over
  struct Next {
    cgroup::FileDescriptor file;
    std::uint64_t part = 0;
  };
  std::optional<Next> next_;  // once the part at hand will not grow any more
};

}  // namespace berth::spark
