// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/cgroup.h"
#include "cgroup/discovery.h"
#include "cgroup/hierarchy.h"
#include "cgroup/rules.h"
#include "model/error.h"
#include "os/clock.h"
#include "os/directory.h"
#include "os/file_descriptor.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace berth::cgroup {

// One inotify instance (inotify(7)). Watches are put on open directories, not on paths. So a watch is always
// on the group that was looked at.
class Watcher {
 public:
  static model::Result<Watcher> create();

  int fd() const { return fd_.get(); }

  // Watches for children made and removed, and attributes set. Returns the watch's number; -errno where
  // refused (-ENOSPC: no more watches).
  int watch_directory(int directory) const;
  // Writes to `file` in the directory, and the kernel's own notifications for it (cgroup.events).
  int watch_file(int directory, const char* file) const;
  // Call it also when a group was removed: cgroupfs does not end the watch then.
  void remove(int watch) const;

  struct Event {
    int watch = -1;  // -1 for an overflow
    std::uint32_t mask = 0;
    std::string_view name;  // empty where it is about the watched thing itself
    bool overflow() const;
    bool ended() const;  // the watch does not exist any more
    bool is_attributes() const;
    bool is_modification() const;
  };
  // Passes on pending events, 256 KiB at most. The rest keeps fd() readable.
  void read(const std::function<void(const Event&)>& handle) const;

 private:
  explicit Watcher(os::FileDescriptor fd) : fd_(std::move(fd)) {}
  os::FileDescriptor fd_;
};

// Deeper groups are not looked at: no runtime nests like this, and the walk is recursive.
inline constexpr std::size_t kMaxDepth = 64;

// A user that owns a subtree (Delegate=) can fill it. berth looks at so many cgroups of one user, and makes
// so many of them workloads.
inline constexpr std::size_t kMostGroupsOfUser = 16384;
inline constexpr std::size_t kMostWorkloadsOfUser = 4096;
// The kernel counts inotify watches by user, and these are root's (fs.inotify.max_user_watches). So groups of
// users get a part of them, and those of one user a part of that: systemd, udev and kubelet need the others.
inline constexpr std::size_t kShareOfUsersWatches = 4;  // a quarter of the limit for all users
inline constexpr std::size_t kShareOfUserWatches = 2;   // and half of that for one

// A cgroup, workload or not. Costs one watch and no file descriptor.
struct Node {
  Node* parent = nullptr;
  std::string name;
  std::uint64_t id = 0;
  std::size_t depth = 0;  // components of the path; 0 is the root
  uid_t uid = 0;
  bool closed = true;  // only root and the tree's owner may write to it
  // Its watch ended by itself: the directory is gone, and its inode may belong to another.
  bool ended = false;
  int directory_watch = -1;
  int events_watch = -1;                  // of cgroup.events, where there is a verdict, or work beside it
  int quota_watch = -1;                   // of cpu.max, while the verdict waits for it
  std::unique_ptr<RawMarks> marks;        // null where unset
  std::vector<std::string> refusals;      // of its marks, as last reported
  std::vector<std::size_t> rules;         // that match it, as in Judgement
  bool inner = false;                     // it is a part of a container
  std::optional<std::size_t> ignored_by;  // as in Judgement
  bool of_the_system = false;             // it would be a workload, and is left alone as a pod of the system
  bool sandbox = false;                   // likewise, as a pod's sandbox, which only sleeps
  bool unseen = false;                    // it has a child that is not looked at
  std::optional<bool> has_processes;      // of its own; nullopt: not looked at since its children changed
  std::optional<double> quota;            // the first one seen, where it matters
  std::optional<double> created;
  std::optional<Verdict> verdict;
  bool populated = false;
  bool active = false;               // one of the workloads
  std::optional<uid_t> group_of;     // the user in whose share it counts
  std::optional<uid_t> workload_of;  // likewise, while it is active
  std::map<std::string, std::unique_ptr<Node>, std::less<>> children;

  std::string path() const;
};

// The content of a cgroup, with all below it.
enum class Content {
  nothing,
  best_effort,  // nothing but that
  unmatched,    // cgroups that no rule matches, which may have processes
  other,        // other work
};

// The tree as last seen, and the workloads in it. An event of the kernel only tells where to look again. Only
// the state found there counts, so that lost, doubled and late events do no harm.
class Tree {
 public:
  Tree(const Hierarchy& hierarchy, Watcher watcher);

  // Walks everything: groups that came and went, marks, processes. Error where the root cannot be opened.
  model::Result<void> rescan();
  // Takes in pending events. Where some were lost, only a rescan finds their changes.
  void take_events();
  // Another source reports that a cgroup was made or removed at this path.
  void look_at(std::string_view path);
  void set_rules(std::vector<model::WorkloadRule> rules);

  const Watcher& watcher() const { return watcher_; }
  const std::map<std::string, FoundWorkload>& workloads() const { return workloads_; }
  // As Discovery::trusted_groups().
  std::vector<std::string> trusted_groups(bool containers) const;
  // As Discovery::crowds(). Walks the groups of root if there are any.
  std::vector<std::uint64_t> crowds(std::size_t most_of_user, std::size_t most_of_users) const;
  // As Discovery::unused_rules(). Walks all nodes if any rule is unused.
  std::vector<UnusedRule> unused_rules() const;
  // As Discovery::why_ignored(). Walks all nodes.
  std::optional<std::string> why_ignored(std::string_view name) const;
  // As in Discovery.
  std::map<std::string, FoundWorkload> best_effort_groups(
      const std::function<bool(const std::string& id)>& counts);
  std::map<std::string, OtherGroup> other_groups(const Discovery::AboutOthers& about, std::size_t most,
                                                 std::size_t& more);
  std::uint64_t groups_version() const { return groups_version_; }
  void look_at_processes(std::string_view path);
  void look_at_processes();
  // Changes since the last call.
  Discovery::Changes take_changes();
  // Events were lost, or a cgroup could not be watched or opened: only a rescan finds the changes.
  bool needs_walk() const { return degraded_ || overflowed_; }

 private:
  enum class Watched { directory, events, quota };
  struct Pending;

  // `above`: the parent's directory; -1 where the caller has it not open.
  void visit(Node& parent, const std::string& name, int above = -1);
  void visit_settled(Node& parent, const std::string& name);
  void scan(Node& node, const os::FileDescriptor& directory);
  void examine(Node& node, int fd);
  void examine_again(Node& node);
  // nullptr where it is not known.
  Node* find(std::string_view path);
  void forget(Node& node);
  void remove_child(Node& parent, const std::string& name);

  // discovery_rules.cpp
  // `directory`: the node's, open.
  void refresh_populated(Node& node, int directory);
  void refresh_populated(Node& node);
  // `directory` likewise; -1 where the caller has it not open.
  void judge_node(Node& node, int directory = -1);
  void judge_all(Node& node);
  // A runtime sets the marks of the system some milliseconds after a container has its first process.
  void judge_young();
  // Judges the leaves of `origin` (cgroup/leaf.h) again: a leaf has the class of its origin.
  void judge_leaves_of(const Node& origin);
  // The path for judging the node: its own, or its origin's if it is a leaf.
  std::string judged_path(const Node& node) const;
  // The score of its first process, by which the kernel ends it (oom_score_adj).
  std::optional<int> score_of(const Node& node, int directory) const;
  bool is_of_the_system(const std::string& path, std::optional<int> score) const;
  // The outermost node above that has a verdict; nullptr where none.
  static const Node* outer_verdict(const Node& node);

  // discovery_workloads.cpp
  // Makes workloads of nodes that have a verdict and processes, and no node above with a verdict (`outer`).
  void settle(Node& node, const Node* outer);
  void settle_one(Node& node, const Node* outer);
  void activate(Node& node);
  void deactivate(Node& node);
  FoundWorkload describe(Node& node, std::shared_ptr<Cgroup> cgroup) const;
  // The members that follow from its place in the tree alone.
  void describe_place(const Node& node, FoundWorkload& found) const;

  // discovery_groups.cpp
  struct GroupSearch;
  Content content_of(Node& node, GroupSearch& search);
  bool holds_processes(Node& node);
  bool has_processes(Node& node);
  bool read_processes(const Node& node) const;
  void add_group(const Node& node, GroupSearch& search) const;
  // The node has a child that is not looked at.
  void leave_unseen(Node& node);

  // discovery_others.cpp
  struct OtherSearch;
  std::optional<std::string> why_spared(const Node& node, const OtherSearch& search) const;
  bool must_be_divided(Node& node, bool named_by_root, OtherSearch& search);
  void add_other(Node& node, std::string left_alone, OtherSearch& search);

  // discovery_ground.cpp
  Ownership ownership(const Node& node) const;
  bool is_trusted(const Node& node) const;
  // The owner of the subtree that users may fill, the outermost one; nullopt where only root makes cgroups.
  std::optional<uid_t> user_of(const Node& node) const;
  void add_outermost(const Node& parent, const std::set<uid_t>& users, std::vector<std::uint64_t>& ids) const;
  void add_trusted(const Node& parent, const std::string& path, bool containers,
                   std::vector<std::string>& paths) const;

  // discovery_events.cpp
  void apply(const Pending& pending);
  void take_ended(int watch);
  void take_entry(int watch, const std::string& name);
  void look_at_entry(Node& node, const std::string& name);
  void watch(Node& node, int fd, Watched what);
  void unwatch(Node& node, int& watch);
  void forget_watch(int watch);
  bool may_watch(uid_t user) const;
  void cannot_look(const std::string& path, int error);
  void cannot_name(const std::string& path);
  void too_many(uid_t user, std::size_t most, const char* of_what, const std::string& path);
  void not_entered(const std::string& path);
  void warn(std::string text);
  void warn_conflicts(const Node& node, const Judgement& judgement);
  void warn_refusals(Node& node, const Marks& marks);
  void warn_nested(const Node& node, const Node& outer);

  std::filesystem::path root_path_;
  std::filesystem::path proc_root_;
  std::filesystem::path pod_logs_;
  os::Clock clock_;
  Watcher watcher_;
  std::vector<model::WorkloadRule> rules_;
  Node root_;
  gid_t root_gid_ = 0;
  std::unordered_map<int, std::pair<Node*, Watched>> watched_;
  std::map<std::string, FoundWorkload> workloads_;
  std::size_t max_workloads_;
  // Of those that are known: in users' parts of the tree. They get half of the limit, so that they leave the
  // other half to root's.
  std::size_t users_workloads_ = 0;
  struct Share {
    std::size_t groups = 0;
    std::size_t workloads = 0;
    std::size_t watches = 0;
    bool said = false;  // that there are more
  };
  std::map<uid_t, Share> shares_;
  std::size_t most_users_watches_;                   // of all users
  std::unordered_map<int, uid_t> watches_of_users_;  // by watch
  // Containers that were judged by their pod's class, and since when they have had processes: they are looked
  // at again for a while (judge_young()).
  std::map<std::string, double> young_;
  std::uint64_t groups_version_ = 0;
  std::vector<std::string> looked_at_;  // by has_processes(), in the last search for groups
  std::size_t next_look_ = 0;           // its index, from the end on
  bool degraded_ = false;
  bool overflowed_ = false;  // since the last walk

  std::set<std::string> appeared_;
  std::set<std::string> vanished_;
  std::set<std::string> changed_;
  std::vector<std::string> warnings_;
  // Warnings already given.
  std::set<std::pair<std::size_t, std::size_t>> said_conflicts_;
  std::set<std::size_t> said_untrusted_;
  std::set<std::size_t> said_inner_;
  std::set<std::pair<std::string, std::string>> said_nested_;
  std::map<uid_t, int> said_refusals_;
  bool said_overflow_ = false;
  bool said_watches_ = false;  // that users have no more
  bool said_depth_ = false;
  bool said_name_ = false;
  bool said_mount_ = false;
  bool said_look_ = false;
  bool said_count_ = false;
};

// When a cgroup was made, of `clock`.
struct Creation {
  // The start of the oldest process in it (not in its children; the first 256 are asked). It is a time since
  // the boot, and exact.
  std::optional<double> process;
  // The directory's birth or, as cgroupfs keeps none, change time. It is of the wall clock, so it is off by
  // as much as that was set since. It is never in the future. The kernel makes up a new time after it dropped
  // the inode from its cache, and changes the time when children come and go.
  double directory = 0;

  // A workload's first process mostly lives as long as the workload. So this figure survives a restart of
  // berthd.
  double time() const { return process.value_or(directory); }
};

// `directory` is an open directory.
Creation created_at(int directory, const std::filesystem::path& proc_root, const os::Clock& clock);

}  // namespace berth::cgroup
