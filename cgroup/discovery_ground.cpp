// SPDX-License-Identifier: Apache-2.0
// Which parts of the tree are root's, which users fill theirs, and when groups were made.
#include "cgroup/discovery_tree.h"
#include "cgroup/recognise.h"
#include "model/text.h"
#include "os/file_descriptor.h"
#include "os/proc_files.h"
#include "os/read_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace berth::cgroup {

namespace {

constexpr int kMaxProcesses = 256;

std::size_t read_some(int directory, const char* path, char* buffer, std::size_t size) {
  const os::FileDescriptor fd(openat(directory, path, O_RDONLY | O_CLOEXEC));
  if (!fd) return 0;
  const ssize_t n = os::read_retrying(fd.get(), buffer, size);
  return n < 0 ? 0 : static_cast<std::size_t>(n);
}

}  // namespace

Ownership Tree::ownership(const Node& node) const {
  Ownership owner;
  owner.uid = node.uid;
  owner.parent_uid = node.parent ? node.parent->uid : node.uid;
  for (const Node* each = &node; each->parent; each = each->parent) {
    if (!is_trusted(*each)) owner.foreign_depth = each->depth;
  }
  owner.trusted = owner.foreign_depth == 0;
  owner.depth = node.depth;
  return owner;
}

bool Tree::is_trusted(const Node& node) const {
  return node.closed && (node.uid == 0 || node.uid == root_.uid);
}

std::optional<uid_t> Tree::user_of(const Node& node) const {
  std::optional<uid_t> user;
  for (const Node* each = &node; each->parent; each = each->parent) {
    if (!is_trusted(*each)) user = each->uid;
  }
  return user;
}

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

Creation created_at(int directory, const std::filesystem::path& proc_root, const os::Clock& clock) {
  Creation created{.process = {}, .directory = clock.now()};
  struct statx status {};
  if (statx(directory, "", AT_EMPTY_PATH, STATX_BTIME | STATX_CTIME, &status) == 0) {
    const statx_timestamp& time = (status.stx_mask & STATX_BTIME) ? status.stx_btime : status.stx_ctime;
    const double wall = static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
    created.directory = std::min(created.directory, wall - clock.wall_ahead_s());
  }

  std::array<char, kMaxProcesses * std::size_t{8}> buffer{};
  std::string_view pids(buffer.data(), read_some(directory, "cgroup.procs", buffer.data(), buffer.size()));
  const auto ticks_per_s = static_cast<double>(sysconf(_SC_CLK_TCK));
  for (int i = 0; i < kMaxProcesses; ++i) {
    const std::size_t end = pids.find('\n');
    if (end == std::string_view::npos) break;  // a number cut off by the buffer's end is left out
    const std::string_view pid = pids.substr(0, end);
    pids.remove_prefix(end + 1);
    if (!model::is_digits(pid)) continue;
    const auto stat = os::read_stat(proc_root / pid);
    if (!stat) continue;
    const double started = clock.of_boot(static_cast<double>(stat->started) / ticks_per_s);
    created.process = std::min(created.process.value_or(started), started);
  }
  return created;
}

}  // namespace berth::cgroup
