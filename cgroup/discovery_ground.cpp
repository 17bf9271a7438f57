// SPDX-License-Identifier: Apache-2.0
// Which parts of the tree are root's, and which users fill theirs.
#include "cgroup/discovery_tree.h"
#include "cgroup/recognise.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

namespace berth::cgroup {

void Tree::add_trusted(const Node& parent, const std::string& path, bool containers,
                       std::vector<std::string>& paths) const {
  for (const auto& [name, child] : parent.children) {
    std::string below = path;
    if (!below.empty()) below += '/';
    below += name;
    const bool trusted = is_trusted(*child);
    if ((trusted && !containers) || has_cpuset_of_runtime(below)) paths.push_back(below);
    if (trusted) add_trusted(*child, below, containers, paths);
  }
}

std::vector<std::string> Tree::trusted_groups(bool containers) const {
  std::vector<std::string> paths;
  add_trusted(root_, {}, containers, paths);
  std::sort(paths.begin(), paths.end());
  return paths;
}

void Tree::add_outermost(const Node& parent, const std::set<uid_t>& users,
                         std::vector<std::uint64_t>& ids) const {
  for (const auto& [name, child] : parent.children) {
    if (is_trusted(*child)) {
      add_outermost(*child, users, ids);
    } else if (users.contains(child->uid)) {
      ids.push_back(child->id);
    }
  }
}

std::vector<std::uint64_t> Tree::crowds(std::size_t most_of_user, std::size_t most_of_users) const {
  std::vector<std::pair<std::size_t, uid_t>> counts;
  std::size_t all = 0;
  for (const auto& [user, share] : shares_) {
    counts.emplace_back(share.groups, user);
    all += share.groups;
  }
  std::sort(counts.rbegin(), counts.rend());
  std::set<uid_t> users;
  for (const auto& [groups, user] : counts) {
    if (groups <= most_of_user && all <= most_of_users) break;
    users.insert(user);
    all -= groups;
  }
  std::vector<std::uint64_t> ids;
  if (!users.empty()) add_outermost(root_, users, ids);
  return ids;
}

}  // namespace berth::cgroup
