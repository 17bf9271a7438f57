// SPDX-License-Identifier: Apache-2.0
#include "cgroup/discovery_tree.h"

#include "cgroup/kubelet_state.h"
#include "cgroup/leaf.h"
#include "cgroup/recognise.h"
#include "cgroup/sampler_parse.h"
#include "cgroup/value.h"
#include "model/glob.h"
#include "model/name.h"
#include "model/number.h"
#include "model/path.h"
#include "model/text.h"
#include "os/beneath.h"
#include "os/proc_files.h"
#include "os/read_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

namespace berth::cgroup {

namespace {

// Groups inside a workload whose processes tell its age.
constexpr int kMaxAgedChildren = 16;

// Scores that kubelet gives to a pod's sandbox, and to the containers of a node-critical pod.
constexpr int kSandbox = -998;
constexpr int kCritical = -997;

// The beginning of a control file; nullopt with errno where it cannot be read.
std::optional<std::string> read_file(int directory, const char* file) {
  const os::FileDescriptor fd(openat(directory, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return std::nullopt;
  std::array<char, 256> buffer{};
  const ssize_t size = os::read_retrying(fd.get(), buffer.data(), buffer.size());
  if (size < 0) return std::nullopt;
  return std::string(buffer.data(), static_cast<std::size_t>(size));
}

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

void Tree::refresh_populated(Node& node) {
  refresh_populated(node, os::open_beneath(root_path_, node.path()).get());
}

void Tree::refresh_populated(Node& node, int directory) {
  const bool before = node.populated;
  const auto events = read_file(directory, "cgroup.events");
  if (events) {
    node.populated = parse_populated(*events).value_or(node.populated);
  } else {
    // Every cgroup but the root has this file; a tree without it is no cgroupfs, and cannot tell.
    node.populated = errno == ENOENT && access((root_path_ / node.path()).c_str(), F_OK) == 0;
  }
  if (node.populated == before) return;
  node.has_processes.reset();
  ++groups_version_;
}

void Tree::judge_node(Node& node, int directory) {
  if (node.depth == 0) return;
  const std::string path = node.path();
  os::FileDescriptor opened;
  const auto open_one = [&] {
    if (directory < 0) {
      opened = os::open_beneath(root_path_, path);
      directory = opened.get();
    }
    return directory >= 0;
  };
  const std::string judged = judged_path(node);
  const Node* origin = judged != path ? find(judged) : nullptr;
  const Ownership owner = ownership(origin != nullptr ? *origin : node);
  const RawMarks* raw = origin != nullptr && !node.marks ? origin->marks.get() : node.marks.get();
  const Marks marks = raw != nullptr ? judge_marks(*raw, owner) : Marks();
  if (origin == nullptr) warn_refusals(node, marks);
  const auto quota = [&]() -> std::optional<double> {
    if (!node.quota) {
      // Watched before it is read, so that a quota set in between is not missed.
      if (!open_one()) return std::nullopt;
      if (node.quota_watch < 0) watch(node, directory, Watched::quota);
      if (const auto text = read_file(directory, "cpu.max")) {
        const auto limit = parse_cpu_max(*text);
        const auto cores = limit ? cores_of(*limit) : std::nullopt;
        // More than any host has is berth's own (policies/quota): the owner's comes back, and is read then.
        if (cores && *cores <= model::kMaxCpu) node.quota = cores;
      }
    }
    return node.quota;
  };
  Judgement judgement = judge(judged, owner, marks, rules_, quota);
  warn_conflicts(node, judgement);
  node.of_the_system = false;
  node.sandbox = false;
  if (owner.trusted && judgement.verdict && judgement.verdict->matched_by == kQosMatch && open_one()) {
    const auto score = score_of(node, directory);
    node.of_the_system = is_of_the_system(path, score);
    node.sandbox = node.of_the_system && score == kSandbox;
  }
  if (node.of_the_system) judgement.verdict.reset();
  node.inner = is_inner_container(path);
  node.ignored_by = node.inner ? std::nullopt : judgement.ignored_by;
  node.rules = std::move(judgement.matches);
  if (node.inner) {
    // Its scope is the workload. A rule for it has to name the scope.
    const Node* outer = outer_verdict(node);
    std::optional<std::size_t> rule;
    if (judgement.verdict && outer == nullptr) rule = judgement.verdict->rule;
    if (judgement.ignored_by && outer != nullptr &&
        !model::glob_match(rules_[*judgement.ignored_by].match, node.parent->path()))
      rule = judgement.ignored_by;
    if (rule && said_inner_.insert(*rule).second) {
      const bool above = outer != nullptr && outer != node.parent;
      warn(fmt::format("{}: \"{}\" matches {}, which is a part of a container; match {}, {}",
                       rules_[*rule].origin, rules_[*rule].match, path,
                       above ? "the workload that contains it" : "the container's scope",
                       (above ? outer : node.parent)->path()));
    }
    judgement = {};
  }
  if (!judgement.awaits_quota) unwatch(node, node.quota_watch);
  if (node.verdict.has_value() != judgement.verdict.has_value() ||
      (!judgement.verdict && node.events_watch >= 0))
    ++groups_version_;
  node.verdict = std::move(judgement.verdict);
  if (!node.verdict) {
    unwatch(node, node.events_watch);
    node.populated = false;
    return;
  }
  if (open_one() && node.events_watch < 0) watch(node, directory, Watched::events);
  refresh_populated(node, directory);
}

// Each container of a pod of kube-system. And a pod's sandbox ("pause"), and each container of a
// node-critical pod, has a score that only root can set: kubelet gives them -998 and -997. Guaranteed pods
// have -997, too.
bool Tree::is_of_the_system(const std::string& path, std::optional<int> score) const {
  if (is_pod_of_the_system(pod_logs_, pod_uid(path))) return true;
  return score && *score <= (pod_qos(path) == PodQos::guaranteed ? kSandbox : kCritical);
}

std::optional<int> Tree::score_of(const Node& node, int directory) const {
  auto pids = read_file(directory, "cgroup.procs");
  if (pids && pids->empty() && node.children.contains("container")) {
    const os::FileDescriptor inner = os::open_beneath(root_path_, node.path() + "/container");
    pids = inner ? read_file(inner.get(), "cgroup.procs") : std::nullopt;
  }
  if (!pids || pids->find('\n') == std::string::npos) return std::nullopt;
  const std::string pid = pids->substr(0, pids->find('\n'));
  if (!model::is_digits(pid)) return std::nullopt;
  const auto score_text = os::read_start(proc_root_ / pid / "oom_score_adj", 16);
  return model::to_number<int>(model::trimmed_end(score_text, "\n"));
}

void Tree::judge_young() {
  constexpr double kYoung_s = 5;
  const double now = os::monotonic_s();
  for (auto at = young_.begin(); at != young_.end();) {
    Node* node = find(at->first);
    const bool over = now - at->second > kYoung_s;
    if (node != nullptr && node->active) {
      judge_node(*node);
      settle(*node, outer_verdict(*node));
    }
    at = over || node == nullptr || !node->active ? young_.erase(at) : std::next(at);
  }
}

std::string Tree::judged_path(const Node& node) const {
  std::string path = node.path();
  auto leaf = leaf_at(path);
  // If the origin is gone, its rules still hold.
  return leaf && ownership(node).trusted ? std::move(leaf->origin) : path;
}

void Tree::judge_leaves_of(const Node& origin) {
  if (!origin.parent) return;
  const std::string named = leaf_prefix(origin.name);
  const auto& siblings = origin.parent->children;
  for (auto at = siblings.lower_bound(named); at != siblings.end() && at->first.starts_with(named); ++at) {
    judge_node(*at->second);
    settle(*at->second, outer_verdict(*at->second));
  }
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

void Tree::judge_all(Node& node) {
  judge_node(node);
  for (const auto& [name, child] : node.children) judge_all(*child);
}

void Tree::set_rules(std::vector<model::WorkloadRule> rules) {
  rules_ = std::move(rules);
  said_conflicts_.clear();
  said_untrusted_.clear();
  said_inner_.clear();
  said_nested_.clear();
  judge_all(root_);
  settle(root_, nullptr);
}

namespace {

struct RuleUse {
  bool applies = false;  // to a cgroup
  bool matches = false;  // one that is no part of a container
  bool inner = false;    // matches a part of a container
};

// `idle`: the number of rules that apply to no cgroup so far. Stops once it is 0.
void count_uses(const Node& node, std::vector<RuleUse>& uses, std::size_t& idle) {
  for (const std::size_t rule : node.rules) (node.inner ? uses[rule].inner : uses[rule].matches) = true;
  if (!node.inner && !node.rules.empty() && !std::exchange(uses[node.rules.front()].applies, true)) --idle;
  for (const auto& [name, child] : node.children) {
    if (idle == 0) return;
    count_uses(*child, uses, idle);
  }
}

// In the order of paths' components.
template <typename Wanted>
const Node* find_first(const Node& node, const Wanted& wanted) {
  if (wanted(node)) return &node;
  for (const auto& [name, child] : node.children) {
    if (const Node* found = find_first(*child, wanted)) return found;
  }
  return nullptr;
}

}  // namespace

std::vector<UnusedRule> Tree::unused_rules() const {
  std::vector<RuleUse> uses(rules_.size());
  std::size_t idle = rules_.size();
  count_uses(root_, uses, idle);
  std::vector<UnusedRule> unused;
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    if (uses[i].applies) continue;
    unused.push_back({.origin = rules_[i].origin,
                      .match = rules_[i].match,
                      .overtaken = uses[i].matches,
                      .inner = !uses[i].matches && uses[i].inner});
  }
  return unused;
}

std::optional<std::string> Tree::why_ignored(std::string_view name) const {
  const Node* node = find_first(root_, [&](const Node& each) {
    return (each.of_the_system || each.ignored_by) && model::names(name, each.path()) &&
           outer_verdict(each) == nullptr;
  });
  if (node == nullptr) return std::nullopt;
  const std::string path = node->path();
  if (node->of_the_system)
    return fmt::format("{}: a pod of the system (of kube-system, or node-critical), or a pod's sandbox",
                       path);
  const model::WorkloadRule& rule = rules_[*node->ignored_by];
  return fmt::format("{}: class \"ignored\" by {} (\"{}\")", path, rule.origin, rule.match);
}

void Tree::settle(Node& node, const Node* outer) {
  settle_one(node, outer);
  if (!outer && node.verdict) outer = &node;
  for (const auto& [name, child] : node.children) settle(*child, outer);
}

void Tree::settle_one(Node& node, const Node* outer) {
  if (outer && node.verdict) warn_nested(node, *outer);
  if (outer || !node.verdict || !node.populated) {
    if (node.active) deactivate(node);
    return;
  }
  if (!node.active) {
    if (node.verdict->matched_by == kQosMatch) {
      // It was judged when it was still empty.
      judge_node(node);
      if (!node.verdict || !node.populated) return;
      young_.emplace(node.path(), os::monotonic_s());
    }
    activate(node);
    return;
  }
  FoundWorkload& known = workloads_.at(node.path());
  FoundWorkload described = describe(node, known.cgroup);
  if (described == known) return;
  known = std::move(described);
  ++groups_version_;
  if (!appeared_.contains(known.identity.id)) changed_.insert(known.identity.id);
}

void Tree::activate(Node& node) {
  const std::string path = node.path();
  const auto user = user_of(node);
  const bool too_many_of_users = user && users_workloads_ >= max_workloads_ / 2;
  if (workloads_.size() >= max_workloads_ || too_many_of_users) {
    degraded_ = true;
    if (!said_count_) {
      warn(fmt::format("the limit of open files allows {} workloads{}; {} and others are left alone",
                       too_many_of_users ? max_workloads_ / 2 : max_workloads_,
                       too_many_of_users ? " of users" : "", path));
    }
    said_count_ = true;
    return;
  }
  if (user && shares_[*user].workloads >= kMostWorkloadsOfUser) {
    too_many(*user, kMostWorkloadsOfUser, "workloads", path);
    return;
  }
  auto cgroup = Cgroup::open(root_path_, path);
  if (!cgroup) {
    if (cgroup.error().kind() != model::ErrorKind::gone) cannot_look(path, cgroup.error().errno_value());
    return;
  }
  if ((*cgroup)->id() != node.id) return;  // another one by now; its events are on the way
  if (!node.created) {
    Creation created = created_at((*cgroup)->fd(), proc_root_, clock_);
    int aged = 0;
    for (const auto& [name, child] : node.children) {
      if (++aged > kMaxAgedChildren) break;
      const os::FileDescriptor fd = os::open_beneath(root_path_, child->path());
      const auto process = fd ? created_at(fd.get(), proc_root_, clock_).process : std::nullopt;
      if (process) created.process = std::min(created.process.value_or(*process), *process);
    }
    node.created = created.time();
  }
  workloads_.emplace(path, describe(node, std::move(*cgroup)));
  node.active = true;
  ++groups_version_;
  node.workload_of = user;
  if (user) ++shares_[*user].workloads;
  if (user) ++users_workloads_;
  appeared_.insert(path);
}

void Tree::deactivate(Node& node) {
  const std::string path = node.path();
  node.active = false;
  ++groups_version_;
  if (node.workload_of) {
    --shares_[*std::exchange(node.workload_of, std::nullopt)].workloads;
    --users_workloads_;
  }
  workloads_.erase(path);
  changed_.erase(path);
  // A workload that was never reported did not vanish either.
  if (appeared_.erase(path) == 0) vanished_.insert(path);
}

FoundWorkload Tree::describe(Node& node, std::shared_ptr<Cgroup> cgroup) const {
  const Verdict& verdict = *node.verdict;
  FoundWorkload found;
  found.cgroup = std::move(cgroup);
  Identity& identity = found.identity;
  identity.id = node.path();
  const std::string named = judged_path(node);
  if (named != identity.id) found.leaf_of = named;
  identity.service = service_name(named);
  identity.workload_class = verdict.workload_class;
  identity.vcpus = verdict.vcpus;
  identity.evictable = verdict.evictable;
  identity.created = node.created.value_or(0);
  if (verdict.rule) {
    const model::WorkloadRule& rule = rules_[*verdict.rule];
    identity.service = rule.service.value_or(identity.service);
    identity.memory_request_bytes = rule.memory_bytes.value_or(0);
    identity.priority = rule.priority.value_or(0);
    identity.isolation = rule.isolation;
    identity.force = rule.force.value_or(false);
    if (rule.deadline_s) identity.deadline = identity.created + *rule.deadline_s;
    found.progress_file = rule.progress_file.value_or("");
    found.kept_by_rule = !rule.evictable.value_or(true);
  }
  identity.priority = std::min(identity.priority, verdict.priority_at_most.value_or(identity.priority));
  // The rule's request and progress file belong to the whole.
  if (!found.leaf_of.empty()) {
    identity.vcpus.reset();
    identity.memory_request_bytes = 0;
    found.progress_file.clear();
  }
  found.matched_by = verdict.matched_by;
  describe_place(node, found);
  return found;
}

void Tree::describe_place(const Node& node, FoundWorkload& found) const {
  Identity& identity = found.identity;
  found.kind = kind_of(identity.id);
  found.systemd_unit = systemd_unit(identity.id);
  const Ownership owner = ownership(node);
  found.ground = {.user = user_of(node), .outermost = owner.ground().outermost};
  if (!model::may_favour_itself(found.ground, model::Word::limit)) identity.user = found.ground.user;
  if (!owner.trusted) {
    const Node* outermost = &node;
    while (outermost->depth > owner.foreign_depth) outermost = outermost->parent;
    found.confined_at = outermost->path();
  }
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

const Node* Tree::outer_verdict(const Node& node) {
  const Node* outermost = nullptr;
  for (const Node* each = node.parent; each; each = each->parent) {
    if (each->verdict) outermost = each;
  }
  return outermost;
}

}  // namespace berth::cgroup
