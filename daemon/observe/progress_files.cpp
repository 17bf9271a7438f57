// SPDX-License-Identifier: Apache-2.0
#include "daemon/observe/progress_files.h"

#include "model/progress.h"
#include "os/clock.h"
#include "os/log.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <system_error>
#include <utility>

#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <unistd.h>

namespace berth::daemon {

namespace {

constexpr std::uint32_t kDirectoryEvents =
    IN_CREATE | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
// Writes and truncations. A file is read again after its last such event, even if other events follow.
constexpr std::uint32_t kFileEvents = IN_MODIFY;

// A workload that writes without pause wakes berthd no more often; ticks see the rest.
constexpr std::uint64_t kWakeWindowUsec = 1'000'000;
constexpr unsigned kWakesPerWindow = 20;

constexpr int kMostLooks = 4;

// Clocks of a file system and of /proc's starting times are this far apart at most.
constexpr double kClockGrain_s = 0.1;

}  // namespace

struct ProgressFiles::Watched {
  std::string id;
  std::uint64_t cgroup_id = 0;
  double created = 0;
  std::string pattern;
  std::filesystem::path path;  // empty where the pattern makes none
  int directory_watch = -1;    // of the deepest existing directory on the way
  int file_watch = -1;
  std::string awaited;  // the name that must appear in that directory
  std::optional<FileState> seen;
  std::optional<std::pair<FileState, double>> reported;
  double reported_at = -std::numeric_limits<double>::infinity();
  std::set<std::string> said;
  std::optional<uid_t> user;
  JournalShares* shares = nullptr;

  // Whether this is news, and the workload's user may have another message.
  bool may_say(const std::string& what) {
    return said.insert(what).second && shares->take(user, os::monotonic_s());
  }
  void say(const std::string& what, std::vector<std::string>& messages) {
    if (!may_say(what)) return;
    messages.push_back(
        fmt::format("{}: progress file {}: {}", id, path.empty() ? pattern : path.string(), what));
  }
};

ProgressFiles::ProgressFiles(std::filesystem::path proc_root)
    : proc_root_(std::move(proc_root)), inotify_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {}

ProgressFiles::~ProgressFiles() { detach(); }

void ProgressFiles::attach(sd_event* event, std::function<void()> changed) {
  detach();
  changed_ = std::move(changed);
  int r = inotify_ ? os::add_source(source_, sd_event_add_io, event, inotify_.get(), EPOLLIN, on_event, this)
                   : -EMFILE;
  if (r >= 0) r = sd_event_source_set_ratelimit(source_.get(), kWakeWindowUsec, kWakesPerWindow);
  if (r >= 0) return;
  os::log_warning("cannot watch progress files, so berth reads them only at ticks: {}",
                  std::generic_category().message(-r));
  detach();
}

void ProgressFiles::detach() {
  source_.reset();
  changed_ = nullptr;
}

int ProgressFiles::on_event(sd_event_source*, int, std::uint32_t, void* userdata) {
  static_cast<ProgressFiles*>(userdata)->changed_();
  return 0;
}

std::vector<std::string> ProgressFiles::follow(const std::map<std::string, cgroup::FoundWorkload>& found,
                                               std::uint64_t generation, ProgressReports& reports, double now,
                                               double wall_ahead_s) {
  std::vector<std::string> messages;
  if (followed_ != generation) keep_watching(found, messages);
  followed_ = generation;
  for (const auto& [id, watched] : workloads_) check(*watched, false, reports, now, wall_ahead_s, messages);
  return messages;
}

// Watches these runs of workloads, and no others.
void ProgressFiles::keep_watching(const std::map<std::string, cgroup::FoundWorkload>& found,
                                  std::vector<std::string>& messages) {
  auto before = std::exchange(workloads_, {});
  for (const auto& [id, workload] : found) {
    if (workload.progress_file.empty()) continue;
    auto known = before.extract(id);
    if (!known.empty() && known.mapped()->cgroup_id == workload.cgroup->id() &&
        known.mapped()->pattern == workload.progress_file) {
      workloads_.insert(std::move(known));
      continue;
    }
    if (!known.empty()) before.insert(std::move(known));
    auto watched = std::make_unique<Watched>();
    watched->id = id;
    watched->cgroup_id = workload.cgroup->id();
    watched->created = workload.identity.created;
    watched->pattern = workload.progress_file;
    watched->user = workload.ground.user;
    watched->shares = &shares_;
    const auto path = model::expand_progress_file(workload.progress_file, id);
    if (path) {
      watched->path = *path;
    } else {
      watched->say(path.error().message(), messages);
    }
    workloads_.emplace(id, std::move(watched));
  }
  for (const auto& [id, watched] : before) {
    put_watch(*watched, watched->directory_watch, -1);
    put_watch(*watched, watched->file_watch, -1);
  }
}

std::vector<std::string> ProgressFiles::process(const std::map<std::string, cgroup::FoundWorkload>& found,
                                                ProgressReports& reports, double now, double wall_ahead_s) {
  std::vector<std::string> messages;
  std::set<Watched*> touched;
  // The kernel aligns events for this; events that do not fit keep the descriptor readable.
  alignas(inotify_event) std::array<char, 16384> buffer{};
  const ssize_t size = inotify_ ? read(inotify_.get(), buffer.data(), buffer.size()) : -1;
  for (ssize_t at = 0; at < size;) {
    inotify_event event{};
    std::memcpy(&event, buffer.data() + at, sizeof event);
    const char* name = buffer.data() + at + sizeof event;
    take_event(event.wd, event.mask, event.len > 0 ? name : "", touched);
    at += static_cast<ssize_t>(sizeof event + event.len);
  }
  const bool all_current = std::all_of(touched.begin(), touched.end(), [&found](const Watched* watched) {
    const auto run = found.find(watched->id);
    return run != found.end() && run->second.cgroup->id() == watched->cgroup_id;
  });
  std::set<std::string> changed;
  for (const Watched* watched : touched) changed.insert(watched->id);
  if (!all_current) keep_watching(found, messages);
  for (const auto& id : changed) {
    const auto watched = workloads_.find(id);
    if (watched != workloads_.end()) check(*watched->second, true, reports, now, wall_ahead_s, messages);
  }
  return messages;
}

void ProgressFiles::take_event(int watch, std::uint32_t mask, const std::string& name,
                               std::set<Watched*>& touched) {
  if ((mask & IN_Q_OVERFLOW) != 0) {
    for (const auto& [id, watched] : workloads_) touched.insert(watched.get());
    return;
  }
  const auto users = users_.find(watch);
  if (users == users_.end()) return;
  for (Watched* watched : users->second) {
    if (name.empty() || name == watched->awaited) touched.insert(watched);
  }
  if ((mask & IN_IGNORED) == 0) return;
  for (Watched* watched : users->second) {
    for (int* slot : {&watched->directory_watch, &watched->file_watch}) {
      if (*slot == watch) *slot = -1;
    }
  }
  users_.erase(users);
}

void ProgressFiles::put_watch(Watched& watched, int& slot, int watch) {
  if (slot == watch) return;
  if (watch >= 0) users_[watch].insert(&watched);
  const int old = std::exchange(slot, watch);
  const auto users = users_.find(old);
  if (users == users_.end()) return;
  users->second.erase(&watched);
  if (!users->second.empty()) return;
  inotify_rm_watch(inotify_.get(), old);
  users_.erase(users);
}

// Again at every look: a directory further up may have been replaced, which no watch tells.
// Whether the directory's watch is a new one.
bool ProgressFiles::watch_way(Watched& watched, const os::WayToFile& way) {
  if (!inotify_) return false;
  const int before = watched.directory_watch;
  const auto add = [this](const os::FileDescriptor& handle, std::uint32_t events) {
    return inotify_add_watch(inotify_.get(), fmt::format("/proc/self/fd/{}", handle.get()).c_str(), events);
  };
  put_watch(watched, watched.directory_watch, way.directory ? add(way.directory, kDirectoryEvents) : -1);
  watched.awaited = way.awaited;
  put_watch(watched, watched.file_watch, way.file ? add(*way.file, kFileEvents) : -1);
  return watched.directory_watch != before;
}

void ProgressFiles::unreachable(Watched& watched, const model::Error& error,
                                std::vector<std::string>& messages) {
  watched.seen.reset();
  const bool missing = error.kind() == model::ErrorKind::gone;
  if (!watched.said.insert(missing ? "missing" : "unreachable: " + error.message()).second) return;
  if (const auto hidden = hidden_by_sandbox(watched.path, proc_root_)) {
    watched.say(*hidden, messages);
  } else if (!missing) {
    watched.say(error.message(), messages);
  } else {
    if (shares_.take(watched.user, os::monotonic_s()))
      os::log_info("{}: there is no progress file {} yet", watched.id, watched.path.string());
  }
}

void ProgressFiles::check(Watched& watched, bool changed, ProgressReports& reports, double now,
                          double wall_ahead_s, std::vector<std::string>& messages) {
  if (watched.path.empty()) return;
  os::WayToFile way = os::walk_to(watched.path);
  // No event reports a change between the look and the watch, so it looks again. A user that keeps moving
  // directories waits for the tick.
  for (int looks = 1; watch_way(watched, way) && looks < kMostLooks; ++looks) way = os::walk_to(watched.path);
  if (!way.file) return unreachable(watched, way.file.error(), messages);
  const auto state = state_of(*way.file);
  if (!state) return unreachable(watched, state.error(), messages);
  // Two writes within the grain of the file system's clock leave the same state.
  if (!changed && *state == watched.seen) return;
  const auto reading = read_progress_file(*way.file);
  if (!reading) {
    // Faulty content stays faulty on another reading. A failed read may succeed later.
    const bool read = reading.error().kind() == model::ErrorKind::invalid_input;
    watched.seen = read ? std::optional(*state) : std::nullopt;
    return watched.say(reading.error().message(), messages);
  }
  watched.seen = reading->state;
  const double modified = reading->modified - wall_ahead_s;
  if (!reading->fraction || modified < watched.created - kClockGrain_s) return;
  if (watched.reported) {
    const auto& [last, fraction] = *watched.reported;
    if (last.inode == reading->state.inode && last.modified_ns == reading->state.modified_ns &&
        fraction == *reading->fraction) {
      return;  // only its owner, mode or name changed
    }
  }
  watched.reported = {reading->state, *reading->fraction};
  const bool plausible = modified > watched.reported_at && modified <= now;
  watched.reported_at = plausible ? modified : now;
  // This cannot fail: a parsed fraction is from 0 to 1.
  (void)reports.add(watched.id, watched.cgroup_id, watched.reported_at, *reading->fraction);
}

}  // namespace berth::daemon
