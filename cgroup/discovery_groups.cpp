// SPDX-License-Identifier: Apache-2.0
// The groups that have nothing but best-effort work below them.
#include "cgroup/discovery_tree.h"
#include "os/beneath.h"
#include "os/read_file.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace berth::cgroup {

struct Tree::GroupSearch {
  const std::function<bool(const std::string& id)>& counts;
  std::map<std::string, FoundWorkload> groups = {};
};

std::map<std::string, FoundWorkload> Tree::best_effort_groups(
    const std::function<bool(const std::string& id)>& counts) {
  GroupSearch search{.counts = counts};
  looked_at_.clear();
  content_of(root_, search);
  return std::move(search.groups);
}

void Tree::look_at_processes(std::string_view path) {
  Node* node = find(path);
  if (node == nullptr) return;
  node->has_processes.reset();
  ++groups_version_;
}

void Tree::leave_unseen(Node& node) {
  node.unseen = true;
  ++groups_version_;
}

// Adds the groups below the node, unless it is one itself.
Content Tree::content_of(Node& node, GroupSearch& search) {
  if (node.verdict) {
    // Not active: empty, or one too many to be a workload.
    if (!node.active) return node.populated ? Content::other : Content::nothing;
    return search.counts(node.path()) ? Content::best_effort : Content::other;
  }
  if (node.sandbox) return Content::nothing;
  bool other = node.unseen;
  std::vector<Node*> best_effort;
  std::vector<Node*> unmatched;
  for (const auto& [name, child] : node.children) {
    const Content content = content_of(*child, search);
    other = other || content == Content::other;
    if (content == Content::best_effort) best_effort.push_back(child.get());
    if (content == Content::unmatched) unmatched.push_back(child.get());
  }
  if (best_effort.empty()) return other ? Content::other : Content::unmatched;
  for (auto at = unmatched.begin(); !other && at != unmatched.end(); ++at) other = holds_processes(**at);
  if (!other && node.parent != nullptr && !has_processes(node)) return Content::best_effort;
  for (const Node* group : best_effort) add_group(*group, search);
  return Content::other;
}

// Of an unmatched node. From here on it is watched: once it has processes, the groups change.
bool Tree::holds_processes(Node& node) {
  if (node.sandbox) return false;
  if (node.verdict) return node.populated;
  if (node.events_watch < 0) {
    const os::FileDescriptor directory = os::open_beneath(root_path_, node.path());
    if (!directory) return errno != ENOENT;
    watch(node, directory.get(), Watched::events);
    refresh_populated(node, directory.get());
  }
  if (node.children.empty()) return node.populated || node.events_watch < 0;
  for (const auto& [name, child] : node.children) {
    if (holds_processes(*child)) return true;
  }
  return has_processes(node);
}

bool Tree::has_processes(Node& node) {
  looked_at_.push_back(node.path());
  if (!node.has_processes) node.has_processes = read_processes(node);
  return *node.has_processes;
}

bool Tree::read_processes(const Node& node) const {
  const os::FileDescriptor directory = os::open_beneath(root_path_, node.path());
  const os::FileDescriptor file(
      directory ? openat(directory.get(), "cgroup.procs", O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1);
  std::array<char, 16> buffer{};
  // A tree without this file is no cgroupfs.
  return file ? os::read_retrying(file.get(), buffer.data(), buffer.size()) != 0 : errno != ENOENT;
}

void Tree::look_at_processes() {
  constexpr std::size_t kAtOnce = 32;
  for (std::size_t i = 0; i < std::min(looked_at_.size(), kAtOnce); ++i) {
    next_look_ = (next_look_ + 1) % looked_at_.size();
    Node* node = find(looked_at_[next_look_]);
    if (node == nullptr || !node->has_processes || *node->has_processes == read_processes(*node)) continue;
    node->has_processes.reset();
    ++groups_version_;
  }
}

void Tree::add_group(const Node& node, GroupSearch& search) const {
  std::string path = node.path();
  if (const auto workload = workloads_.find(path); workload != workloads_.end()) {
    search.groups.emplace(std::move(path), workload->second);
    return;
  }
  auto cgroup = Cgroup::open(root_path_, path);
  if (!cgroup || (*cgroup)->id() != node.id) return;  // its events are on the way
  FoundWorkload group;
  group.cgroup = std::move(*cgroup);
  group.identity.id = path;
  describe_place(node, group);
  search.groups.emplace(std::move(path), std::move(group));
}

}  // namespace berth::cgroup
