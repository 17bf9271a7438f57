// SPDX-License-Identifier: Apache-2.0
// Follows the kernel's events in the tree, and words the warnings about them.
#include "cgroup/discovery_tree.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/core.h>
#include <sys/stat.h>

namespace berth::cgroup {

namespace {

// Marks of one user that are refused with a warning; the rest would only fill the journal.
constexpr int kMaxRefusalsPerUser = 10;
// A warning shows this much of the end of an unusable name.
constexpr std::size_t kShownOfAPath = 200;

}  // namespace

// Events of one batch, each thing once: the present state counts, not the way to it.
struct Tree::Pending {
  bool overflow = false;
  std::set<int> ended;
  std::set<std::pair<int, std::string>> entries;  // watch of the directory, name
  std::set<int> attributes;
  std::set<int> modified;
};

void Tree::take_events() {
  Pending pending;
  watcher_.read([&](const Watcher::Event& event) {
    if (event.overflow()) {
      pending.overflow = true;
    } else if (event.ended()) {
      pending.ended.insert(event.watch);
    } else if (event.name.empty()) {
      if (event.is_attributes()) pending.attributes.insert(event.watch);
      if (event.is_modification()) pending.modified.insert(event.watch);
    } else if (!event.is_attributes()) {  // a child's attributes come by its own watch
      pending.entries.emplace(event.watch, event.name);
    }
  });
  apply(pending);
  judge_young();
}

void Tree::apply(const Pending& pending) {
  for (const int watch : pending.ended) take_ended(watch);
  if (pending.overflow) {
    overflowed_ = true;
    if (!std::exchange(said_overflow_, true)) {
      warn(
          "the kernel's queue of cgroup events overflowed, so berth walks the tree again, now and after "
          "later "
          "overflows (fs.inotify.max_queued_events sets the length of the queue)");
    }
    return;
  }
  for (const auto& [watch, name] : pending.entries) take_entry(watch, name);
  for (const int watch : pending.attributes) {
    if (const auto found = watched_.find(watch); found != watched_.end()) examine_again(*found->second.first);
  }
  for (const int watch : pending.modified) {
    const auto found = watched_.find(watch);
    if (found == watched_.end()) continue;
    Node& node = *found->second.first;
    if (found->second.second == Watched::events) {
      refresh_populated(node);
      settle_one(node, outer_verdict(node));
    } else {
      judge_node(node);
      settle(node, outer_verdict(node));
    }
  }
}

// A watch ended by itself: its file or directory is gone. (cgroupfs never reports that; other file systems,
// and an unmount, do.)
void Tree::take_ended(int watch) {
  const auto found = watched_.find(watch);
  if (found == watched_.end()) return;
  const auto [node, what] = found->second;
  forget_watch(watch);
  if (what == Watched::directory) {
    node->directory_watch = -1;
    node->ended = true;
    if (node->parent) visit_settled(*node->parent, std::string(node->name));
    return;
  }
  (what == Watched::events ? node->events_watch : node->quota_watch) = -1;
  judge_node(*node);
  settle(*node, outer_verdict(*node));
}

// A child was made or removed in a directory.
void Tree::take_entry(int watch, const std::string& name) {
  const auto found = watched_.find(watch);
  if (found == watched_.end() || found->second.second != Watched::directory) return;
  look_at_entry(*found->second.first, name);
}

void Tree::look_at(std::string_view path) {
  Node* node = &root_;
  std::size_t begin = 0;
  while (node != nullptr) {
    const std::size_t end = path.find('/', begin);
    const std::string name(path.substr(begin, end - begin));
    if (end == std::string_view::npos) {
      // A name that ends the walk out of the tree is none that the kernel reports.
      if (!name.empty() && name != "." && name != "..") look_at_entry(*node, name);
      return;
    }
    const auto child = node->children.find(name);
    node = child == node->children.end() ? nullptr : child->second.get();
    begin = end + 1;
  }
}

void Tree::look_at_entry(Node& node, const std::string& name) {
  struct stat status {};
  const std::filesystem::path path = root_path_ / node.path() / name;
  const bool exists = lstat(path.c_str(), &status) == 0;
  const auto child = node.children.find(name);
  const bool known = child != node.children.end();
  if (exists && S_ISDIR(status.st_mode)) {
    if (known && child->second->id == status.st_ino && !child->second->ended) return;
    if (node.depth < kMaxDepth) visit_settled(node, name);
  } else if (known) {
    remove_child(node, name);
  } else if (name == "cgroup.events" || name == "cpu.max") {
    // Not on cgroupfs, whose files come with their directory.
    judge_node(node);
    settle(node, outer_verdict(node));
  }
}

void Tree::watch(Node& node, int fd, Watched what) {
  int& slot = what == Watched::directory ? node.directory_watch
              : what == Watched::events  ? node.events_watch
                                         : node.quota_watch;
  if (slot >= 0) return;
  const auto user = user_of(node);
  if (user && !may_watch(*user)) {
    degraded_ = true;  // a walk finds what changes there
    if (!std::exchange(said_watches_, true)) {
      warn(
          fmt::format("uid {} has more cgroups than berth watches for users ({}, of "
                      "fs.inotify.max_user_watches), so berth "
                      "walks the tree from time to time to see changes of {} and others",
                      *user, most_users_watches_, node.path()));
    }
    return;
  }
  const int added = what == Watched::directory
                        ? watcher_.watch_directory(fd)
                        : watcher_.watch_file(fd, what == Watched::events ? "cgroup.events" : "cpu.max");
  if (added >= 0) {
    slot = added;
    forget_watch(added);  // the kernel gives one watch for one file
    watched_[added] = {&node, what};
    if (user) {
      watches_of_users_[added] = *user;
      ++shares_[*user].watches;
    }
  } else if (added == -ENOSPC || added == -ENOMEM) {
    cannot_look(node.path(), -added);
  }
}

bool Tree::may_watch(uid_t user) const {
  const auto share = shares_.find(user);
  const std::size_t watches = share == shares_.end() ? 0 : share->second.watches;
  return watches_of_users_.size() < most_users_watches_ &&
         watches < most_users_watches_ / kShareOfUserWatches;
}

void Tree::forget_watch(int watch) {
  watched_.erase(watch);
  const auto of_user = watches_of_users_.find(watch);
  if (of_user == watches_of_users_.end()) return;
  --shares_[of_user->second].watches;
  watches_of_users_.erase(of_user);
}

void Tree::unwatch(Node& node, int& watch) {
  if (watch < 0) return;
  const auto found = watched_.find(watch);
  // A directory that was moved has the same watch. By then the watch belongs to the new node.
  if (found != watched_.end() && found->second.first == &node) {
    forget_watch(watch);
    watcher_.remove(watch);
  }
  watch = -1;
}

void Tree::cannot_look(const std::string& path, int error) {
  degraded_ = true;
  if (said_look_) return;
  said_look_ = true;
  if (error == ENOSPC) {
    warn(
        fmt::format("no inotify watch is left for cgroup {} (fs.inotify.max_user_watches is the limit), so "
                    "berth walks the tree from time to time",
                    path));
  } else {
    warn(model::Error::from_errno(error,
                                  fmt::format("cannot look at cgroup {}, and will try again later", path))
             .message());
  }
}

void Tree::not_entered(const std::string& path) {
  if (said_mount_) return;
  said_mount_ = true;
  warn(fmt::format("another file system is mounted at cgroup {}, so it and all below it are left alone",
                   path));
}

// A workload's id is its path. The id must stay unchanged in JSON, on the bus and in the journal.
void Tree::cannot_name(const std::string& path) {
  if (said_name_) return;
  said_name_ = true;
  std::string shown;
  for (const char c : path.substr(path.size() - std::min(path.size(), kShownOfAPath))) {
    const auto byte = static_cast<unsigned char>(c);
    shown += byte >= 0x20 && byte < 0x7f ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
  }
  warn(fmt::format(
      "cgroups whose name is too long, is not UTF-8, or has characters that control a terminal or turn the "
      "direction of writing are left alone, and so are all below them: {}{}",
      path.size() > kShownOfAPath ? "..." : "", shown));
}

void Tree::too_many(uid_t user, std::size_t most, const char* of_what, const std::string& path) {
  degraded_ = true;  // a walk finds them once there is room
  if (std::exchange(shares_[user].said, true)) return;
  warn(fmt::format(
      "uid {} has more than {} {}, the limit for one user: berth leaves {} and others of this user "
      "alone",
      user, most, of_what, path));
}

void Tree::warn(std::string text) {
  // The maker of a cgroup chooses its name.
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  warnings_.push_back(std::move(text));
}

void Tree::warn_conflicts(const Node& node, const Judgement& judgement) {
  if (judgement.overruled && judgement.verdict && judgement.verdict->rule) {
    const std::size_t first = *judgement.verdict->rule;
    if (said_conflicts_.emplace(first, *judgement.overruled).second) {
      warn(
          fmt::format("two rules match cgroup {} and differ: {} (\"{}\") applies, because it comes first; {} "
                      "(\"{}\") does not",
                      node.path(), rules_[first].origin, rules_[first].match,
                      rules_[*judgement.overruled].origin, rules_[*judgement.overruled].match));
    }
  }
  if (judgement.untrusted && said_untrusted_.insert(*judgement.untrusted).second) {
    const model::WorkloadRule& rule = rules_[*judgement.untrusted];
    const bool vcpus = rule.workload_class == model::WorkloadClass::latency_sensitive;
    warn(
        fmt::format("{}: \"{}\" {} cgroup {}: uid {} owns it, and could {} by choosing "
                    "its name; a glob that names the user's own tree does",
                    rule.origin, rule.match, vcpus ? "does not make" : "only lowers",
                    node.path() + (vcpus ? " latency-sensitive" : ""), node.uid,
                    vcpus ? "take vCPUs" : "get all else that the rule gives"));
  }
}

void Tree::warn_refusals(Node& node, const Marks& marks) {
  if (marks.refused == node.refusals) return;
  node.refusals = marks.refused;
  for (const std::string& refusal : marks.refused) {
    const int said = node.uid == 0 ? 0 : ++said_refusals_[node.uid];
    if (said > kMaxRefusalsPerUser) return;
    warn(fmt::format("cgroup {}: {}{}", node.path(), refusal,
                     said == kMaxRefusalsPerUser ? "; berth reports no more marks of this user" : ""));
  }
}

void Tree::warn_nested(const Node& node, const Node& outer) {
  const Verdict& inner = *node.verdict;
  const Verdict& held = *outer.verdict;
  const bool same_rule = inner.matched_by == held.matched_by && inner.rule == held.rule;
  const bool same_fields =
      inner.workload_class == held.workload_class &&
      (!inner.rule || (held.rule && !says_otherwise(rules_[*inner.rule], rules_[*held.rule])));
  if (same_rule || same_fields || !said_nested_.emplace(held.matched_by, inner.matched_by).second) return;
  warn(fmt::format("cgroup {} ({}) lies inside the workload {} ({}) and counts as a part of it", node.path(),
                   inner.matched_by, outer.path(), held.matched_by));
}

Discovery::Changes Tree::take_changes() {
  const auto list = [](std::set<std::string>& ids) {
    std::vector<std::string> taken(ids.begin(), ids.end());
    ids.clear();
    return taken;
  };
  return {list(appeared_), list(vanished_), list(changed_), std::exchange(warnings_, {})};
}

}  // namespace berth::cgroup
