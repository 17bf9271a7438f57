// SPDX-License-Identifier: Apache-2.0
// Leaves: cgroups that berth makes beside a workload's own, each for one Spark executor that lived there with
// others, so that it can be ended by itself (docs/architecture.md, a leaf for each executor). What a leaf is
// of, and for whom, its name says.
#pragma once

#include "cgroup/attribute.h"
#include "cgroup/cgroup.h"
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

// On a cgroup whose executor was told to decommission itself, so that it ends with that and holds over a
// restart of berthd: a second SIGPWR ends a JVM that is still handling the first.
inline constexpr const char* kDecommissionedMark = "user.berth.decommissioned";

struct Leaf {
  std::string origin;         // path of the cgroup that its processes were taken out of, of the same parent
  pid_t pid = 0;              // whom it is for
  std::uint64_t started = 0;  // start time as in /proc/PID/stat
  friend bool operator==(const Leaf&, const Leaf&) = default;
};
// "ORIGIN.berth-executor-PID-STARTED", and ".scope" where systemd is to keep it. ORIGIN has "@", which no
// scope's name may have, and the backslash as systemd escapes them ("\x40", "\x5c").
std::string leaf_path(const Leaf& leaf, bool scope);
// What the names of all leaves begin with that are of a cgroup of that name.
std::string leaf_prefix(std::string_view name);
// What a path says; nullopt where it is not a leaf's. Whether its owner may say so is the caller's to look
// at.
std::optional<Leaf> leaf_at(std::string_view path);
// Whether systemd keeps it.
inline bool is_scope(std::string_view path) { return path.ends_with(".scope"); }

// Whether nobody but root, or the owner of the whole tree, may make or change cgroups at this path and at all
// above it. What others own may not have root move processes about. False where it is gone.
bool is_trusted_ground(const std::filesystem::path& root, std::string_view path);

// What keeps processes of the cgroup within bounds, or gives them precedence, that they would leave behind in
// another one of the same parent: "memory.max is 1073741824"; nullopt where nothing does. `originals` are
// what berth itself holds was before. `pids`: whether pids.max counts, too.
std::optional<std::string> bounds_of(const Cgroup& cgroup, const std::map<Attribute, std::string>& originals,
                                     const std::filesystem::path& root, bool pids);

// Where a process is. With its start, its number names one process of this boot.
struct Spot {
  std::string path;           // in the v2 tree, without a leading slash
  std::uint64_t started = 0;  // field 22 of /proc/PID/stat
  pid_t parent = 0;
};

// What leaves are made and emptied by: the kernel's way, where a test puts nothing else.
struct LeafHands {
  // nullopt where nobody has the number.
  std::function<std::optional<Spot>(pid_t pid)> look;
  // Moves a process, with all of its threads, into the cgroup.
  std::function<model::Result<void>(const Cgroup& to, pid_t pid)> move;
  // A directory of that path, or none any more. Removing one that is not there is no error.
  std::function<model::Result<void>(const std::filesystem::path& directory)> make;
  std::function<model::Result<void>(const std::filesystem::path& directory)> remove;
};
LeafHands kernel_hands(const std::filesystem::path& proc_root);

// Moves the process that has this number, and started then, from one cgroup to another; false where it has
// ended, or lives elsewhere. The kernel is told a number: if somebody else got that just then, he goes to
// where his parent lives, as he was born there.
model::Result<bool> move_process(const std::filesystem::path& root, const Cgroup& from, const Cgroup& to,
                                 pid_t pid, std::uint64_t started, const LeafHands& hands);
// Sends a process that lives in `from`, and does not belong there, to where its parent lives.
void send_home(const std::filesystem::path& root, const Cgroup& from, pid_t pid, const LeafHands& hands);

// The processes whose own cgroup this is (cgroup.procs), ascending.
std::vector<pid_t> pids_in(const Cgroup& cgroup);

// What became of one leaf.
struct PutBack {
  std::string leaf;
  std::string origin;
  std::size_t processes = 0;                          // that went back
  std::optional<std::string> problem = std::nullopt;  // why it is still there, or may be
};

// Moves the processes of a leaf back to where they were, and removes it, if it is not systemd's to remove.
// Somebody who has the number of the executor, and is another, goes home (send_home). One whose origin is
// gone stays as long as anything runs in it, and so does one whose executor was told to decommission itself:
// it ends there. nullopt where there is no leaf any more, or none that is trusted.
std::optional<PutBack> put_back_leaf(const std::filesystem::path& root, const std::string& leaf,
                                     const LeafHands& hands);
// The same for every leaf of the tree. Cgroups that others may change are not entered.
std::vector<PutBack> put_back_leaves(const std::filesystem::path& root, const LeafHands& hands);

}  // namespace berth::cgroup
