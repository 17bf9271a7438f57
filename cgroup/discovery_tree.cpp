// SPDX-License-Identifier: Apache-2.0
// Walks the tree: which cgroups there are, and what each of them says of itself.
#include "cgroup/discovery_tree.h"

#include "cgroup/leaf.h"
#include "model/name.h"
#include "model/number.h"
#include "model/text.h"
#include "os/beneath.h"
#include "os/proc_files.h"
#include "os/read_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>

#include <fmt/core.h>
#include <sys/stat.h>

namespace berth::cgroup {

namespace {

// fs.inotify.max_user_watches; the kernel's least default where it cannot be read.
std::size_t most_watches(const std::filesystem::path& proc_root) {
  constexpr std::size_t kLeastDefault = 8192;
  const std::string text = os::read_start(proc_root / "sys/fs/inotify/max_user_watches", 32);
  return model::to_number<std::size_t>(model::trimmed_end(text, "\n")).value_or(kLeastDefault);
}

bool means_gone(int error) {
  return error == ENOENT || error == ENOTDIR || error == ENODEV || error == ELOOP;
}

}  // namespace

std::string Node::path() const {
  if (!parent || !parent->parent) return name;
  return parent->path() + '/' + name;
}

Tree::Tree(const Hierarchy& hierarchy, Watcher watcher)
    : root_path_(hierarchy.root),
      proc_root_(hierarchy.proc_root),
      pod_logs_(hierarchy.pod_logs),
      clock_(hierarchy.clock),
      watcher_(std::move(watcher)),
      // Half for the workloads' directories; the sampler and the rest of the program need the others.
      max_workloads_(os::raised_file_limit() / 2),
      most_users_watches_(most_watches(proc_root_) / kShareOfUsersWatches) {}

model::Result<void> Tree::rescan() {
  degraded_ = false;
  overflowed_ = false;
  const os::FileDescriptor directory = os::open_beneath(root_path_, "");
  struct stat status {};
  if (!directory || fstat(directory.get(), &status) != 0) {
    degraded_ = true;
    return model::fail(
        model::Error::from_errno(errno, fmt::format("opening the cgroup root {}", root_path_.string())));
  }
  root_.id = status.st_ino;
  root_.uid = status.st_uid;
  root_gid_ = status.st_gid;
  scan(root_, directory);
  settle(root_, nullptr);
  if (!degraded_) said_look_ = said_count_ = false;
  return {};
}

// Looks at a child that may have come, gone, or become another, and at everything below it.
void Tree::visit(Node& parent, const std::string& name, int above) {
  const std::string path = parent.parent ? parent.path() + '/' + name : name;
  if (!model::is_name(path)) {
    leave_unseen(parent);
    cannot_name(path);
    return;
  }
  const auto user = user_of(parent);
  if (user && shares_[*user].groups >= kMostGroupsOfUser && !parent.children.contains(name)) {
    leave_unseen(parent);
    too_many(*user, kMostGroupsOfUser, "cgroups", path);
    return;
  }
  const os::FileDescriptor directory =
      above >= 0 ? os::open_child(above, name.c_str()) : os::open_beneath(root_path_, path);
  struct stat status {};
  if (!directory || fstat(directory.get(), &status) != 0) {
    const int error = errno;
    if (!means_gone(error)) leave_unseen(parent);
    if (means_gone(error)) {
      remove_child(parent, name);
    } else if (error == EXDEV) {
      remove_child(parent, name);
      not_entered(path);
    } else if (error == ENAMETOOLONG) {
      cannot_name(path);
    } else {
      cannot_look(path, error);
    }
    return;
  }
  const auto known = parent.children.find(name);
  if (known != parent.children.end() && known->second->id == status.st_ino && !known->second->ended) {
    scan(*known->second, directory);
    return;
  }
  remove_child(parent, name);
  auto node = std::make_unique<Node>();
  node->parent = &parent;
  node->name = name;
  node->id = status.st_ino;
  node->depth = parent.depth + 1;
  node->group_of = user;
  if (user) ++shares_[*user].groups;
  Node& added = *node;
  parent.children.emplace(name, std::move(node));
  parent.has_processes.reset();
  ++groups_version_;
  scan(added, directory);
}

void Tree::visit_settled(Node& parent, const std::string& name) {
  visit(parent, name);
  const auto child = parent.children.find(name);
  if (child == parent.children.end()) return;
  settle(*child->second, outer_verdict(*child->second));
  judge_leaves_of(*child->second);
}

// The watch comes before the listing, so that a child made in between is seen by one of them.
void Tree::scan(Node& node, const os::FileDescriptor& directory) {
  watch(node, directory.get(), Watched::directory);
  examine(node, directory.get());
  node.unseen = false;
  const std::size_t most = user_of(node) ? kMostGroupsOfUser + 1 : SIZE_MAX;
  const auto names = os::subdirectories(directory.get(), most);
  if (!names) {
    if (!means_gone(errno)) cannot_look(node.path(), errno);
    return;  // its removal is an event too
  }
  if (node.depth >= kMaxDepth) {
    node.unseen = !names->empty();
    if (!names->empty() && !said_depth_) {
      warn(fmt::format("cgroups deeper than {} levels are not looked at: {}", kMaxDepth, node.path()));
      said_depth_ = true;
    }
    return;
  }
  std::vector<std::string> gone;
  for (const auto& [name, child] : node.children) {
    if (names->size() < most && !std::binary_search(names->begin(), names->end(), name)) gone.push_back(name);
  }
  for (const std::string& name : gone) remove_child(node, name);
  for (const std::string& name : *names) visit(node, name, directory.get());
  // A leaf may have been visited before its origin.
  for (const auto& [name, child] : node.children) {
    if (leaf_at(name)) judge_node(*child);
  }
}

// Reads owner and marks, and judges this node by them.
void Tree::examine(Node& node, int fd) {
  struct stat status {};
  if (node.depth == 0 || fstat(fd, &status) != 0) return;
  node.uid = status.st_uid;
  const bool group_may_write = (status.st_mode & S_IWGRP) && status.st_gid != 0 && status.st_gid != root_gid_;
  node.closed = !group_may_write && !(status.st_mode & S_IWOTH);
  RawMarks marks = read_raw_marks(fd);
  if (marks.workload_class || marks.evictable) {
    node.marks = std::make_unique<RawMarks>(std::move(marks));
  } else {
    node.marks.reset();
  }
  judge_node(node, fd);
}

// After a change of attributes. A new owner changes what holds below, too.
void Tree::examine_again(Node& node) {
  if (node.depth == 0) return;
  const os::FileDescriptor fd = os::open_beneath(root_path_, node.path());
  struct stat status {};
  if (!fd || fstat(fd.get(), &status) != 0 || status.st_ino != node.id)
    return;  // its removal is an event too
  const std::pair before(node.uid, node.closed);
  examine(node, fd.get());
  if (before != std::pair(node.uid, node.closed)) judge_all(node);
  settle(node, outer_verdict(node));
  judge_leaves_of(node);
}

Node* Tree::find(std::string_view path) {
  Node* node = &root_;
  while (node != nullptr && !path.empty()) {
    const auto child = node->children.find(path.substr(0, path.find('/')));
    node = child == node->children.end() ? nullptr : child->second.get();
    path.remove_prefix(std::min(path.find('/'), path.size() - 1) + 1);
  }
  return node;
}

void Tree::forget(Node& node) {
  for (const auto& [name, child] : node.children) forget(*child);
  if (node.active) deactivate(node);
  if (node.group_of) --shares_[*node.group_of].groups;
  unwatch(node, node.directory_watch);
  unwatch(node, node.events_watch);
  unwatch(node, node.quota_watch);
}

void Tree::remove_child(Node& parent, const std::string& name) {
  const auto child = parent.children.find(name);
  if (child == parent.children.end()) return;
  forget(*child->second);
  parent.children.erase(child);
  parent.has_processes.reset();
  ++groups_version_;
}

}  // namespace berth::cgroup
