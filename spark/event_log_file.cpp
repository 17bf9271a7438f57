// SPDX-License-Identifier: Apache-2.0
// Names are those of Spark's EventLogFileWriters.scala (3.x and 4.x).
#include "spark/event_log_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <memory>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace berth::spark {

namespace {

using cgroup::FileDescriptor;
using model::ErrorKind;

constexpr std::size_t kChunk = std::size_t{128} << 10;
constexpr int kMostEntries = 10'000;
constexpr std::array kCodecs{"zstd", "lz4", "lzf", "snappy"};
constexpr const char* kInProgress = ".inprogress";

std::string sanitised(const std::string& name) {
  std::string clean;
  for (const char c : name) {
    if (c == ' ' || c == ':' || c == '/') {
      clean += '-';
    } else if (c == '.' || c == '$' || c == '{' || c == '}' || c == '\'' || c == '"') {
      clean += '_';
    } else {
      clean += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
  return clean;
}

struct Part {
  std::uint64_t index = 0;
  std::string codec;  // empty of a plain one
};

// events_INDEX_NAME[.CODEC]
std::optional<Part> part_of(std::string_view entry, const std::string& name) {
  constexpr std::string_view kStart = "events_";
  if (!entry.starts_with(kStart)) return std::nullopt;
  entry.remove_prefix(kStart.size());
  Part part;
  const auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), part.index);
  if (error != std::errc()) return std::nullopt;
  entry.remove_prefix(static_cast<std::size_t>(end - entry.data()));
  if (!entry.starts_with("_" + name)) return std::nullopt;
  entry.remove_prefix(name.size() + 1);
  for (const char* codec : kCodecs)
    if (entry == std::string(".") + codec) part.codec = codec;
  return entry.empty() || !part.codec.empty() ? std::optional(part) : std::nullopt;
}

model::Result<void> compressed(const std::string& codec) {
  return model::fail(
      ErrorKind::unavailable,
      fmt::format("it is compressed ({}), and only plain ones are read (spark.eventLog.compress)", codec));
}

}  // namespace

model::Result<std::optional<EventLogPlace>> event_log_of(const std::map<std::string, std::string>& properties,
                                                         const std::string& app, const std::string& attempt) {
  const auto value = [&](const char* name, const char* otherwise) {
    const auto found = properties.find(name);
    return found == properties.end() ? std::string(otherwise) : found->second;
  };
  if (value("spark.eventLog.enabled", "false") != "true") return std::nullopt;
  const std::string said = value("spark.eventLog.dir", "file:///tmp/spark-events");
  constexpr std::string_view kScheme = "file:";
  std::string path = said.starts_with(kScheme) ? said.substr(kScheme.size()) : said;
  // file:/x or file:///x.
  if (path.starts_with("///")) path.erase(0, 2);
  if (!path.starts_with('/') || path.starts_with("//") || path.find('\0') != std::string::npos) {
    return model::fail(ErrorKind::unavailable,
                       fmt::format("spark.eventLog.dir {} is no directory of this host", said));
  }
  std::string name = sanitised(app);
  if (!attempt.empty()) name += "_" + sanitised(attempt);
  return EventLogPlace{.directory = std::move(path), .name = std::move(name)};
}

model::Result<FileDescriptor> EventLogFile::open_own(const std::filesystem::path& path, mode_t kind) const {
  auto opened = open_(path);
  if (!opened) return opened;
  struct stat status {};
  if (fstat(opened->get(), &status) != 0)
    return model::fail(model::Error::from_errno(errno, "looking at " + path.string()));
  if ((status.st_mode & S_IFMT) != kind) {
    return model::fail(ErrorKind::refused, fmt::format("{} is no {}", path.string(),
                                                       kind == S_IFDIR ? "directory" : "regular file"));
  }
  if (status.st_uid != owner_) {
    return model::fail(ErrorKind::refused, fmt::format("{} belongs to user {}, and the driver to user {}",
                                                       path.string(), status.st_uid, owner_));
  }
  return opened;
}

std::filesystem::path EventLogFile::part_path(std::uint64_t part) const {
  return place_.directory / ("eventlog_v2_" + place_.name) / fmt::format("events_{}_{}", part, place_.name);
}

// The first one that is left: old ones may have been compacted away.
model::Result<void> EventLogFile::find_first_part(const FileDescriptor& directory) {
  const int copy = fcntl(directory.get(), F_DUPFD_CLOEXEC, 0);
  const std::unique_ptr<DIR, int (*)(DIR*)> list(copy < 0 ? nullptr : fdopendir(copy), closedir);
  if (!list) {
    const int problem = errno;
    if (copy >= 0) close(copy);
    return model::fail(model::Error::from_errno(problem, "listing its directory"));
  }
  std::optional<Part> first;
  int entries = 0;
  while (const dirent* entry = readdir(list.get())) {
    if (++entries > kMostEntries) break;
    const auto part = part_of(static_cast<const char*>(entry->d_name), place_.name);
    if (part && (!first || part->index < first->index)) first = part;
  }
  if (!first) return model::fail(ErrorKind::gone, "its directory holds no events");
  if (!first->codec.empty()) return compressed(first->codec);
  auto file = open_own(part_path(first->index), S_IFREG);
  if (!file) return model::fail(file.error());
  file_ = std::move(*file);
  part_ = first->index;
  return {};
}

model::Result<void> EventLogFile::find() {
  const auto plain = place_.directory / place_.name;
  for (const char* ending : {kInProgress, ""}) {
    auto file = open_own(plain.string() + ending, S_IFREG);
    if (!file && file.error().kind() != ErrorKind::gone) return model::fail(file.error());
    if (!file) continue;
    file_ = std::move(*file);
    return {};
  }
  const auto rolled = open_own(place_.directory / ("eventlog_v2_" + place_.name), S_IFDIR);
  if (rolled) return find_first_part(*rolled);
  if (rolled.error().kind() != ErrorKind::gone) return model::fail(rolled.error());
  for (const char* codec : kCodecs)
    for (const char* ending : {kInProgress, ""})
      if (open_own(plain.string() + "." + codec + ending, S_IFREG)) return compressed(codec);
  return model::fail(ErrorKind::gone, fmt::format("{} is not there, or hidden from berthd", plain.string()));
}

// Whether the log goes on in another file, which is open then.
bool EventLogFile::next_part() {
  if (!part_) return false;
  auto file = open_own(part_path(*part_ + 1), S_IFREG);
  if (!file) return false;
  file_ = std::move(*file);
  offset_ = 0;
  ++*part_;
  return true;
}

model::Result<void> EventLogFile::read(const std::function<void(std::string_view)>& take) {
  if (!file_) {
    if (auto found = find(); !found) return found;
  }
  std::string buffer(kChunk, '\0');
  for (std::size_t taken = 0; taken < kMostBytes;) {
    const ssize_t got =
        pread(file_.get(), buffer.data(), std::min(buffer.size(), kMostBytes - taken), offset_);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return model::fail(model::Error::from_errno(errno, "reading " + place_.name));
    if (got == 0) {
      if (!next_part()) return {};
      take("\n");
      continue;
    }
    take(std::string_view(buffer).substr(0, static_cast<std::size_t>(got)));
    offset_ += got;
    taken += static_cast<std::size_t>(got);
  }
  return {};
}

}  // namespace berth::spark
