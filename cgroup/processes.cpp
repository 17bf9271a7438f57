// SPDX-License-Identifier: Apache-2.0
#include "cgroup/processes.h"

#include "model/path.h"
#include "model/text.h"
#include "os/beneath.h"
#include "os/directory.h"
#include "os/proc_files.h"
#include "os/read_file.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace berth::cgroup {

namespace {

// The owner of a cgroup may nest groups and fork without end, and the event loop walks them. cgroup.kill ends
// what lies beyond these limits, too.
constexpr int kMostLevels = 64;
constexpr int kMostGroups = 4096;
constexpr std::size_t kMostNumbers = 65'536;
constexpr int kMostThreads = 4096;  // each is one read more
constexpr std::size_t kLargestList = kMostNumbers * 8;

// Debian 12's C library has no wrappers for these.
int open_handle(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }
int send(int handle, int signal) {
  return static_cast<int>(syscall(SYS_pidfd_send_signal, handle, signal, nullptr, 0));
}

std::optional<std::string> read_at(int directory, const char* name) {
  const os::FileDescriptor fd(openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return std::nullopt;
  std::string content;
  if (!os::read_up_to(fd.get(), kLargestList, content)) return std::nullopt;
  return content;
}

void add_numbers(std::string_view text, std::set<pid_t>& pids) {
  while (!text.empty()) {
    const std::string_view line = model::take_line(text);
    pid_t pid = 0;
    // 0 is a process of another pid namespace, which has no number here.
    if (std::from_chars(line.data(), line.data() + line.size(), pid).ec == std::errc() && pid > 0)
      pids.insert(pid);
    if (pids.size() >= kMostNumbers) return;
  }
}

// The number of the process that a thread belongs to; 0 where it has ended.
pid_t process_of(const std::filesystem::path& proc_root, pid_t thread) {
  constexpr std::size_t kEnough = 4096;  // "Tgid" is among the first lines
  constexpr std::string_view kTgid = "\nTgid:\t";
  const std::string text = os::read_start(proc_root / std::to_string(thread) / "status", kEnough);
  const std::size_t at = text.find(kTgid);
  std::set<pid_t> one;
  if (at != std::string::npos)
    add_numbers(text.substr(at + kTgid.size(), text.find('\n', at + 1) - at - kTgid.size()), one);
  return one.empty() ? 0 : *one.begin();
}

// Collects the numbers of the processes in a group and below it.
class NumberWalk {
 public:
  explicit NumberWalk(const std::filesystem::path& proc_root) : proc_root_(proc_root) {}
  // A group that vanishes on the way adds none.
  void add(int directory, int level = 0) {
    ++groups_;
    if (const auto content = read_at(directory, "cgroup.procs")) {
      add_numbers(*content, pids_);
    } else if (const auto threads = read_at(directory, "cgroup.threads")) {
      add_threads(*threads);
    }
    if (level == kMostLevels) return;
    const auto names = os::subdirectories(directory, kMostGroups);
    if (!names) return;
    for (const std::string& name : *names) {
      if (groups_ >= kMostGroups || pids_.size() >= kMostNumbers) return;
      // A file system that a user mounts there could name the processes of others.
      const os::FileDescriptor child = os::open_child(directory, name.c_str());
      if (child) add(child.get(), level + 1);
    }
  }
  std::set<pid_t> take() { return std::move(pids_); }

 private:
  void add_threads(std::string_view text) {
    std::set<pid_t> threads;
    add_numbers(text, threads);
    for (const pid_t thread : threads) {
      if (threads_++ == kMostThreads) return;
      if (const pid_t process = process_of(proc_root_, thread); process > 0) pids_.insert(process);
    }
  }

  const std::filesystem::path& proc_root_;
  std::set<pid_t> pids_;
  int groups_ = 0;
  int threads_ = 0;
};

std::set<pid_t> numbers_of(const Cgroup& cgroup, const std::filesystem::path& proc_root) {
  NumberWalk walk(proc_root);
  walk.add(cgroup.fd());
  return walk.take();
}

bool is_alive(const Process& process) {
  pollfd ended{process.handle.get(), POLLIN, 0};
  return poll(&ended, 1, 0) == 0;
}

}  // namespace

model::Result<Processes> Processes::of(const Cgroup& cgroup, const std::filesystem::path& proc_root) {
  if (const auto own = cgroup.read("cgroup.procs"); !own && own.error().kind() == model::ErrorKind::gone)
    return model::fail(own.error());
  Processes found;
  for (const pid_t pid : numbers_of(cgroup, proc_root)) {
    if (found.processes_.size() == kMost) break;
    os::FileDescriptor handle(open_handle(pid));
    if (!handle && errno != ESRCH && errno != EINVAL) {
      return model::fail(
          model::Error::from_errno(errno, fmt::format("holding process {} of \"{}\"", pid, cgroup.path())));
    }
    if (handle) found.processes_.push_back({pid, std::move(handle)});
  }
  // Between the list and the handle, a number could pass to another process. A process that is listed now has
  // had it since.
  const std::set<pid_t> listed = numbers_of(cgroup, proc_root);
  std::erase_if(found.processes_,
                [&](const Process& process) { return listed.count(process.pid) == 0 || !is_alive(process); });
  return found;
}

bool Processes::contains(pid_t pid) const {
  return std::any_of(processes_.begin(), processes_.end(),
                     [pid](const Process& process) { return process.pid == pid; });
}

bool Processes::share_living(const Processes& before) const {
  return std::any_of(before.processes_.begin(), before.processes_.end(),
                     [this](const Process& process) { return is_alive(process) && contains(process.pid); });
}

bool Processes::any_alive() const { return std::any_of(processes_.begin(), processes_.end(), is_alive); }

void Processes::take_living(Processes others, const Processes& but) {
  std::erase_if(processes_, [](const Process& process) { return !is_alive(process); });
  for (Process& process : others.processes_) {
    if (processes_.size() >= kMost) return;
    if (is_alive(process) && !but.contains(process.pid) && !contains(process.pid))
      processes_.push_back(std::move(process));
  }
}

void Processes::keep_within(std::string_view path, std::string_view but,
                            const std::filesystem::path& proc_root) {
  std::erase_if(processes_, [&](const Process& process) {
    const auto at = os::cgroup_of(proc_root / std::to_string(process.pid));
    // One that is about to end may have the path of a group that was removed before.
    if (!at || !model::is_within(*at, path) || model::is_within(*at, but) || at->ends_with(" (deleted)"))
      return true;
    // Asked last: so far its number was not another one's.
    return !is_alive(process);
  });
}

model::Result<void> signal_process(const Process& process, int signal) {
  if (send(process.handle.get(), signal) == 0) return {};
  return model::fail(
      model::Error::from_errno(errno, fmt::format("sending signal {} to process {}", signal, process.pid)));
}

model::Result<void> Processes::signal(int signal) const {
  model::Result<void> result;
  for (const Process& process : processes_) {
    auto sent = signal_process(process, signal);
    if (!sent && sent.error().kind() != model::ErrorKind::gone) result = std::move(sent);
  }
  return result;
}

std::vector<pid_t> pids_below(const Cgroup& cgroup, const std::filesystem::path& proc_root) {
  const std::set<pid_t> numbers = numbers_of(cgroup, proc_root);
  return {numbers.begin(), numbers.end()};
}

std::string invocation_of(const Cgroup& cgroup) {
  std::array<char, 64> id{};
  const ssize_t size = fgetxattr(cgroup.fd(), "user.invocation_id", id.data(), id.size());
  return {id.data(), size > 0 ? static_cast<std::size_t>(size) : 0};
}

model::Result<bool> is_populated(const Cgroup& cgroup) {
  const auto events = cgroup.read("cgroup.events");
  if (!events) return model::fail(events.error());
  return events->find("populated 0") == std::string::npos;
}

model::Result<EmptyWatch> EmptyWatch::of(const Cgroup& cgroup) {
  EmptyWatch watch;
  watch.events_ = os::FileDescriptor(openat(cgroup.fd(), "cgroup.events", O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  std::array<char, 256> text{};
  if (!watch.events_ || pread(watch.events_.get(), text.data(), text.size(), 0) < 0)
    return model::fail(
        model::Error::from_errno(errno, fmt::format("cgroup.events of \"{}\"", cgroup.path())));
  return watch;
}

bool EmptyWatch::may_have_been_empty() const {
  // The file is not read again, so a change stays visible.
  pollfd changed{events_.get(), POLLPRI, 0};
  return poll(&changed, 1, 0) != 0;
}

model::Result<void> kill_all(const Cgroup& cgroup) {
  model::Result<void> written;
  if (cgroup.has("cgroup.kill")) {
    written = cgroup.write("cgroup.kill", "1");
    if (written || written.error().kind() == model::ErrorKind::gone) return written;
  }
  const auto processes = Processes::of(cgroup);
  if (!processes) return model::fail(processes.error());
  if (processes->empty() && !written) return written;
  return processes->signal(SIGKILL);
}

model::Result<std::shared_ptr<Cgroup>> domain_of(const Cgroup& cgroup) {
  std::shared_ptr<Cgroup> above;
  for (const Cgroup* at = &cgroup; !at->path().empty(); at = above.get()) {
    const auto type = at->read("cgroup.type");
    if (!type || !type->starts_with("threaded")) return above;
    auto next = at->above();
    if (!next) return model::fail(next.error());
    above = std::move(*next);
  }
  return above;
}

}  // namespace berth::cgroup
