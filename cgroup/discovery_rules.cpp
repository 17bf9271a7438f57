// SPDX-License-Identifier: Apache-2.0
// What a cgroup is by the rules, its marks, and its kind: its verdict.
#include "cgroup/discovery_tree.h"
#include "cgroup/kubelet_state.h"
#include "cgroup/leaf.h"
#include "cgroup/recognise.h"
#include "cgroup/sampler_parse.h"
#include "cgroup/value.h"
#include "model/glob.h"
#include "model/number.h"
#include "model/path.h"
#include "model/text.h"
#include "os/beneath.h"
#include "os/proc_files.h"
#include "os/read_file.h"

#include <array>
#include <cerrno>
#include <iterator>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

namespace berth::cgroup {

namespace {

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

void Tree::judge_all(Node& node) {
  judge_node(node);
  for (const auto& [name, child] : node.children) judge_all(*child);
}

const Node* Tree::outer_verdict(const Node& node) {
  const Node* outermost = nullptr;
  for (const Node* each = node.parent; each; each = each->parent) {
    if (each->verdict) outermost = each;
  }
  return outermost;
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

}  // namespace berth::cgroup
