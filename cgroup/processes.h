// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/cgroup.h"
#include "model/error.h"
#include "os/file_descriptor.h"

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

namespace berth::cgroup {

// One process, held by a pidfd, so that a later process with its number is never taken for it
// (pidfd_open(2)).
struct Process {
  pid_t pid = 0;
  os::FileDescriptor handle;
};

// The processes of a cgroup and of all below it (cgroup.procs of each), as they were when this was made. At
// most 64 levels, 4,096 groups and 65,536 numbers are read.
class Processes {
 public:
  // More processes of one group are not held: they get no signal, but cgroup.kill ends them.
  static constexpr std::size_t kMost = 1024;

  // Error gone where the group vanished. The list of a threaded group cannot be read: its processes are those
  // that have a thread in it (cgroup.threads, and "Tgid" below `proc_root`).
  static model::Result<Processes> of(const Cgroup& cgroup, const std::filesystem::path& proc_root = "/proc");

  const std::vector<Process>& all() const { return processes_; }
  bool empty() const { return processes_.empty(); }
  // Whether a process of `before` still runs, and is one of these.
  bool share_living(const Processes& before) const;
  bool contains(pid_t pid) const;
  // Whether any of them still runs; false where there was none.
  bool any_alive() const;
  // Adds those of `others` that still run and are not among `but`, up to kMost in all. Those that have ended
  // make room.
  void take_living(Processes others, const Processes& but);
  // Keeps those that run in the group `path` or below it now, but not in `but` or below that.
  void keep_within(std::string_view path, std::string_view but, const std::filesystem::path& proc_root);
  // Sends `signal` to each. Processes that ended meanwhile do not count. Error as of the last one that could
  // not be signalled; the others have got it.
  model::Result<void> signal(int signal) const;

 private:
  std::vector<Process> processes_;
};

// Sends `signal` to one process; error gone where it has ended.
model::Result<void> signal_process(const Process& process, int signal);

// The numbers of the processes of the group and of all below it, ascending, within the limits of Processes.
std::vector<pid_t> pids_below(const Cgroup& cgroup, const std::filesystem::path& proc_root = "/proc");

// The InvocationID of the unit's run that systemd last started in the group (user.invocation_id; systemd
// 252); empty where there is none.
std::string invocation_of(const Cgroup& cgroup);

// Whether any process runs in the group or below it (cgroup.events). Error gone where the group vanished.
model::Result<bool> is_populated(const Cgroup& cgroup);

// Tells whether a group may have been empty for a moment.
class EmptyWatch {
 public:
  EmptyWatch() = default;
  // Error gone where the group vanished.
  static model::Result<EmptyWatch> of(const Cgroup& cgroup);
  // False as long as the group has had a process all the time since this was made. The kernel tells each
  // change of cgroup.events to all that have read the file (admin-guide/cgroup-v2). It tells a change within
  // 10 ms of another one that much later. Freezing the group is such a change, too, so true can be wrong.
  bool may_have_been_empty() const;

 private:
  os::FileDescriptor events_;
};

// Ends every process of the group and of all below it at once, forks under way included. Uses cgroup.kill
// (Linux 5.14); without that file it sends SIGKILL to each. It reaches this very group, or fails with ENODEV
// where it was removed: never one that took over its path. A threaded group has no such file that works, so
// its processes get SIGKILL one by one; ones that fork meanwhile may escape.
model::Result<void> kill_all(const Cgroup& cgroup);

// The nearest group above a threaded one that is not threaded (cgroup.type), whose cgroup.kill works; nullptr
// where `cgroup` is not threaded. Error gone where one of them vanished.
model::Result<std::shared_ptr<Cgroup>> domain_of(const Cgroup& cgroup);

}  // namespace berth::cgroup
