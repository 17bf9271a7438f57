// SPDX-License-Identifier: Apache-2.0
// Leaves: cgroups that berth makes beside a workload's own, each for one Spark executor that lived there with
// others, so that it can be ended by itself (docs/architecture.md, a leaf for each executor).
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

// On a leaf: "ID PATH" of the cgroup that its processes were taken out of, which is another one of the same
// parent.
inline constexpr const char* kLeafMark = "user.berth.leaf_of";
// On a cgroup whose executor was told to decommission itself, so that it ends with that and holds over a
// restart of berthd: a second SIGPWR ends a JVM that is still handling the first.
inline constexpr const char* kDecommissionedMark = "user.berth.decommissioned";

// "berth-executor-PID-STARTED", of the process that it is for (start time as in /proc/PID/stat).
std::string leaf_name(pid_t pid, std::uint64_t started);
// Whether the last component of a path is such a name, with ".scope" behind it or without.
bool is_leaf_name(std::string_view component);
// Whether systemd keeps it.
inline bool is_scope(std::string_view path) { return path.ends_with(".scope"); }

// "" for a path of one component.
std::string parent_path(std::string_view path);

struct LeafMark {
  std::uint64_t id = 0;  // of the cgroup that was there when the leaf was made
  std::string origin;    // its path
  // Whether the cgroup that is there now is meant. systemd may have made that of a unit anew.
  bool means(std::uint64_t id_now, std::string_view leaf) const { return id == id_now || is_scope(leaf); }
  friend bool operator==(const LeafMark&, const LeafMark&) = default;
};
// The mark of an open cgroup at `path`; nullopt where there is none, or one that names no other cgroup of the
// same parent, or where the name is not a leaf's. Whether its owner may say so is the caller's to look at.
std::optional<LeafMark> read_leaf_mark(int fd, std::string_view path);
model::Result<void> set_leaf_mark(const Cgroup& leaf, const LeafMark& mark);
// Whether cgroups like this one, which is no leaf, can be marked: a mark is set on it and removed.
model::Result<void> try_leaf_mark(const Cgroup& cgroup);

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

// Moves all that live in `from`; what keeps anyone there is in `problem`, who came over is counted.
void empty_out(const std::filesystem::path& root, const Cgroup& from, const Cgroup& to,
               const LeafHands& hands, PutBack& done);

// Moves the processes of a leaf back to where they were, and removes it, if it is not systemd's to remove.
// One whose origin is gone stays as long as anything runs in it, and ends with that. nullopt where there is
// no leaf any more, or none that is marked and trusted. One whose executor was told to decommission itself
// stays as it is: it ends there.
std::optional<PutBack> put_back_leaf(const std::filesystem::path& root, const std::string& leaf,
                                     const LeafHands& hands);
// The same for every leaf of the tree, found by its mark. Cgroups that others may change are not entered.
std::vector<PutBack> put_back_leaves(const std::filesystem::path& root, const LeafHands& hands);

}  // namespace berth::cgroup
