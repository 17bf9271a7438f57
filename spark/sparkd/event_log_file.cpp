// SPDX-License-Identifier: Apache-2.0
// Names are those of Spark's EventLogFileWriters.scala (3.x and 4.x).
#include "spark/sparkd/event_log_file.h"

#include "model/text.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

namespace berth::spark {

namespace {

using model::ErrorKind;
using os::FileDescriptor;

constexpr std::size_t kChunk = std::size_t{128} << 10;
constexpr std::array kCodecs{"zstd", "lz4", "lzf", "snappy"};
constexpr const char* kInProgress = ".inprogress";
constexpr const char* kCompact = ".compact";
constexpr int kMostPartsAtOnce = 100;

std::string sanitised(const std::string& name) {
  std::string clean;
  for (const char c : name) {
    if (c == ' ' || c == ':' || c == '/') {
      clean += '-';
    } else if (c == '.' || c == '$' || c == '{' || c == '}' || c == '\'' || c == '"') {
      clean += '_';
    } else {
      clean += model::lower(c);
    }
  }
  return clean;
}

struct Part {
  std::uint64_t index = 0;
  std::string codec;  // empty of a plain one
  bool compact = false;
};

// events_INDEX_NAME[.CODEC][.compact]; not one that is still being compacted (.inprogress).
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
  part.compact = entry.ends_with(kCompact);
  if (part.compact) entry.remove_suffix(std::string_view(kCompact).size());
  for (const char* codec : kCodecs)
    if (entry == std::string(".") + codec) part.codec = codec;
  return entry.empty() || !part.codec.empty() ? std::optional(part) : std::nullopt;
}

// The error for a file that cannot be read because it is compressed.
auto compressed(const std::string& codec) {
  return model::fail(
      ErrorKind::unavailable,
      fmt::format("it is compressed ({}), and berth reads only plain ones (spark.eventLog.compress=false)",
                  codec));
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
                       fmt::format("spark.eventLog.dir {} is not a directory of this host", said));
  }
  std::string name = sanitised(app);
  if (!attempt.empty()) name += "_" + sanitised(attempt);
  return EventLogPlace{.directory = std::move(path), .name = std::move(name)};
}

model::Result<os::FileDescriptor> EventLogFile::open_own(const std::filesystem::path& path) const {
  auto opened = open_(path);
  if (!opened) return model::fail(opened.error());
  struct stat status {};
  if (opened->parts || fstat(opened->file.get(), &status) != 0 || !S_ISREG(status.st_mode))
    return model::fail(ErrorKind::refused, path.string() + " is not a regular file");
  if (status.st_uid != owner_) {
    return model::fail(ErrorKind::refused, fmt::format("{} belongs to user {}, and the driver to user {}",
                                                       path.string(), status.st_uid, owner_));
  }
  return std::move(opened->file);
}

// The names in the directory of a rolled log.
model::Result<std::vector<std::string>> EventLogFile::parts() const {
  const auto path = place_.directory / ("eventlog_v2_" + place_.name);
  auto opened = open_(path);
  if (!opened) return model::fail(opened.error());
  if (!opened->parts) return model::fail(ErrorKind::refused, path.string() + " is not a directory");
  return *std::move(opened->parts);
}

std::filesystem::path EventLogFile::part_path(std::uint64_t part) const {
  return place_.directory / ("eventlog_v2_" + place_.name) / fmt::format("events_{}_{}", part, place_.name);
}

// Finds the next part where the next number does not exist, or is not known. A history server compacts old
// parts while the log is written (EventLogFileCompactor.scala). It writes the useful events of all parts up
// to one into one file, named like the last of them, and removes these.
//
// So the last new compacted file is the next part, else the first plain one that is left. A compacted file
// that the driver's user cannot have written is skipped.
model::Result<bool> EventLogFile::find_part(std::optional<std::uint64_t> after) {
  const auto names = parts();
  if (!names) return model::fail(names.error());
  std::optional<Part> compact;
  std::vector<Part> plain;
  for (const std::string& name : *names) {
    const auto part = part_of(name, place_.name);
    if (!part || (after && part->index <= *after)) continue;
    if (!part->compact) {
      plain.push_back(*part);
    } else if (!compact || part->index > compact->index) {
      compact = part;
    }
  }
  if (compact) {
    if (!compact->codec.empty()) return compressed(compact->codec);
    auto file = open_own(part_path(compact->index).string() + kCompact);
    if (file) {
      next_ = Next{std::move(*file), compact->index};
      return true;
    }
    if (file.error().kind() == ErrorKind::gone) return false;  // the next compaction removed it
    if (file.error().kind() != ErrorKind::refused) return model::fail(file.error());
    std::erase_if(plain, [&](const Part& part) { return part.index <= compact->index; });
  }
  const auto first = std::min_element(plain.begin(), plain.end(),
                                      [](const Part& a, const Part& b) { return a.index < b.index; });
  if (first == plain.end()) return false;
  if (!first->codec.empty()) return compressed(first->codec);
  auto file = open_own(part_path(first->index));
  if (!file && file.error().kind() == ErrorKind::gone) return false;
  if (!file) return model::fail(file.error());
  next_ = Next{std::move(*file), first->index};
  return true;
}

// Whether the log goes on in another file; opens it then.
model::Result<bool> EventLogFile::find_next() {
  if (!part_) return false;
  auto file = open_own(part_path(*part_ + 1));
  if (!file && file.error().kind() == ErrorKind::gone) return find_part(part_);
  if (!file) return model::fail(file.error());
  next_ = Next{std::move(*file), *part_ + 1};
  return true;
}

void EventLogFile::go_on() {
  file_ = std::move(next_->file);
  part_ = next_->part;
  offset_ = 0;
  next_.reset();
}

model::Result<void> EventLogFile::find() {
  const auto plain = place_.directory / place_.name;
  for (const char* ending : {kInProgress, ""}) {
    auto file = open_own(plain.string() + ending);
    if (!file && file.error().kind() != ErrorKind::gone) return model::fail(file.error());
    if (!file) continue;
    file_ = std::move(*file);
    return {};
  }
  const auto rolled = parts();
  if (rolled) {
    const auto found = find_part(std::nullopt);
    if (!found) return model::fail(found.error());
    if (!*found) return model::fail(ErrorKind::gone, "its directory has no events");
    go_on();
    return {};
  }
  if (rolled.error().kind() != ErrorKind::gone) return model::fail(rolled.error());
  for (const char* codec : kCodecs)
    for (const char* ending : {kInProgress, ""})
      if (const auto file = open_own(plain.string() + "." + codec + ending);
          file || file.error().kind() == ErrorKind::unavailable)
        return compressed(codec);
  return model::fail(ErrorKind::gone,
                     fmt::format("{} does not exist, or is hidden from berthd", plain.string()));
}

model::Result<void> EventLogFile::read(const std::function<void(std::string_view)>& take) {
  if (!file_) {
    if (auto found = find(); !found) return found;
  }
  int parts = 0;
  std::string buffer(kChunk, '\0');
  for (std::size_t taken = 0; taken < kMostBytes;) {
    const ssize_t got =
        pread(file_.get(), buffer.data(), std::min(buffer.size(), kMostBytes - taken), offset_);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return model::fail(model::Error::from_errno(errno, "reading " + place_.name));
    if (got == 0 && next_) {
      if (++parts > kMostPartsAtOnce) return {};
      go_on();
      take("\n");
      continue;
    }
    if (got == 0) {
      const auto found = find_next();
      if (!found) return model::fail(found.error());
      if (!*found) return {};
      continue;  // with the text written to this part before the next one was begun
    }
    take(std::string_view(buffer).substr(0, static_cast<std::size_t>(got)));
    offset_ += got;
    taken += static_cast<std::size_t>(got);
  }
  return {};
}

}  // namespace berth::spark
