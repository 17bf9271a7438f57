// SPDX-License-Identifier: Apache-2.0
#include "spark/event_log_access.h"

#include "os/directory.h"

#include <array>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include <dirent.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

namespace berth::spark {

namespace {

using model::ErrorKind;

constexpr int kMostEntries = 10'000;

model::Result<std::vector<std::string>> parts_in(os::FileDescriptor directory,
                                                 const std::filesystem::path& path) {
  if (!path.lexically_normal().filename().string().starts_with("eventlog_v2_"))
    return model::fail(ErrorKind::refused, path.string() + " is not the directory of an event log");
  const os::DirectoryStream list = os::stream_of(std::move(directory));
  if (!list) return model::fail(model::Error::from_errno(errno, "listing " + path.string()));
  std::vector<std::string> parts;
  int entries = 0;
  while (const dirent* entry = readdir(list.get())) {
    if (++entries > kMostEntries) break;
    const std::string_view name = static_cast<const char*>(entry->d_name);
    if (name.starts_with("events_")) parts.emplace_back(name);
  }
  return parts;
}

model::Result<void> check_start(const os::FileDescriptor& file, const std::filesystem::path& path) {
  std::array<char, kEventLogStart.size()> start{};
  const ssize_t got = pread(file.get(), start.data(), start.size(), 0);
  if (got < 0) return model::fail(model::Error::from_errno(errno, "reading " + path.string()));
  const std::string_view found(start.data(), static_cast<std::size_t>(got));
  if (!kEventLogStart.starts_with(found)) {
    return model::fail(
        ErrorKind::unavailable,
        fmt::format("{} does not begin like a plain event log, with {}", path.string(), kEventLogStart));
  }
  if (found.size() < kEventLogStart.size())
    return model::fail(ErrorKind::gone, path.string() + " has no event yet");
  return {};
}

}  // namespace

model::Result<LogFile> open_event_log(const OpenFile& open, const std::filesystem::path& path, uid_t user) {
  auto file = open(path);
  if (!file) return model::fail(file.error());
  struct stat status {};
  if (fstat(file->get(), &status) != 0)
    return model::fail(model::Error::from_errno(errno, "looking at " + path.string()));
  if (status.st_uid != user) {
    return model::fail(ErrorKind::refused, fmt::format("{} belongs to user {}, and the driver to user {}",
                                                       path.string(), status.st_uid, user));
  }
  if (S_ISDIR(status.st_mode)) {
    auto parts = parts_in(*std::move(file), path);
    if (!parts) return model::fail(parts.error());
    return LogFile{.file = {}, .parts = *std::move(parts)};
  }
  if (!S_ISREG(status.st_mode))
    return model::fail(ErrorKind::refused, path.string() + " is not a regular file");
  if (auto checked = check_start(*file, path); !checked) return model::fail(checked.error());
  return LogFile{.file = *std::move(file), .parts = std::nullopt};
}

}  // namespace berth::spark
