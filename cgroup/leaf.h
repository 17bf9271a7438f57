// SPDX-License-Identifier: Apache-2.0
// Leaves: cgroups that berth makes beside a workload's own, each for one Spark executor that lived there with
// others. So the executor can be ended by itself (docs/leaves.md). A leaf's
// name contains its original cgroup and its executor.
#pragma once

#include "cgroup/cgroup.h"
#include "cgroup/value.h"
#include "model/error.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace berth::cgroup {

// Mark on a cgroup whose executor was told to decommission itself. It survives a restart of berthd and ends
// with the cgroup. A second SIGPWR would end a JVM that is still handling the first.
inline constexpr const char* kDecommissionedMark = "user.berth.decommissioned";

struct Leaf {
  std::string origin;         // path of the cgroup that its processes were taken out of, of the same parent
  pid_t pid = 0;              // the process that it is for
  std::uint64_t started = 0;  // start time as in /proc/PID/stat
  friend bool operator==(const Leaf&, const Leaf&) = default;
};
// "ORIGIN.berth-executor-PID-STARTED", with ".scope" where systemd is to keep it. In ORIGIN, "@" and the
// backslash are escaped as systemd does ("\x40", "\x5c"): no scope's name may have "@".
std::string leaf_path(const Leaf& leaf, bool scope);
// The common beginning of the names of all leaves of a cgroup with this name.
std::string leaf_prefix(std::string_view name);
// The leaf that a path names; nullopt where it names none. The caller checks whether the path is trusted
// (is_trusted_ground).
std::optional<Leaf> leaf_at(std::string_view path);
// Whether systemd keeps it.
inline bool is_scope(std::string_view path) { return path.ends_with(".scope"); }

// Whether only root, or the owner of the whole tree, may make or change cgroups at this path and at all above
// it. A cgroup that others own must not have root move processes. False where it is gone.
bool is_trusted_ground(const std::filesystem::path& root, std::string_view path);

// A limit, weight or protection of the cgroup that processes would lose in another one of the same parent:
// "memory.max is 1073741824". nullopt where there is none. `originals` are the values before berth, of the
// attributes that berth holds. `pids`: whether pids.max counts, too.
std::optional<std::string> bounds_of(const Cgroup& cgroup, const std::map<Attribute, Value>& originals,
                                     const std::filesystem::path& root, bool pids);

// The cgroup of a process. Its number and its start time name one process of this boot.
struct Spot {
  std::string path;           // in the v2 tree, without a leading slash
  std::uint64_t started = 0;  // field 22 of /proc/PID/stat
  pid_t parent = 0;
};

// Operations for making and emptying leaves. They are the kernel's, unless a test replaces them.
struct LeafHands {
  // nullopt where no process has the number.
  std::function<std::optional<Spot>(pid_t pid)> look;
  // Moves a process, with all of its threads, into the cgroup.
  std::function<model::Result<void>(const Cgroup& to, pid_t pid)> move;
  // Makes the directory, or removes it. Removing one that is not there is no error.
  std::function<model::Result<void>(const std::filesystem::path& directory)> make;
  std::function<model::Result<void>(const std::filesystem::path& directory)> remove;
};
LeafHands kernel_hands(const std::filesystem::path& proc_root);

// Moves the process that has this number, and started then, from one cgroup to another. False where it has
// ended, or lives elsewhere. The kernel is told only a number. If the pid now belongs to another process,
// that process is moved to its parent's cgroup, where it was born.
model::Result<bool> move_process(const std::filesystem::path& root, const Cgroup& from, const Cgroup& to,
                                 pid_t pid, std::uint64_t started, const LeafHands& hands);
// Moves a process that lives in `from`, and does not belong there, to its parent's cgroup.
void send_home(const std::filesystem::path& root, const Cgroup& from, pid_t pid, const LeafHands& hands);

// The processes whose own cgroup this is (cgroup.procs), ascending.
std::vector<pid_t> pids_in(const Cgroup& cgroup);

// The outcome for one leaf.
struct PutBack {
  std::string leaf;
  std::string origin;
  std::size_t processes = 0;                          // number of processes that were moved back
  std::optional<std::string> problem = std::nullopt;  // why it is still there, or may be
};

// Moves the processes of a leaf back to its original cgroup. Then removes the leaf, unless it is a scope:
// systemd removes those. If the executor's pid now belongs to another process, that process goes to its
// parent's cgroup (send_home).
//
// Two kinds of leaf stay until their processes end: one whose original cgroup is gone, and one whose executor
// was told to decommission itself. Returns nullopt where there is no such leaf any more, or it is not
// trusted.
std::optional<PutBack> put_back_leaf(const std::filesystem::path& root, const std::string& leaf,
                                     const LeafHands& hands);
// The same for every leaf of the tree. Cgroups that others may change are not entered.
std::vector<PutBack> put_back_leaves(const std::filesystem::path& root, const LeafHands& hands);

}  // namespace berth::cgroup
