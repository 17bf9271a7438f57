// SPDX-License-Identifier: Apache-2.0
// Makes workloads of cgroups that have a verdict and processes.
#include "cgroup/discovery_tree.h"
#include "cgroup/recognise.h"
#include "os/beneath.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

namespace berth::cgroup {

namespace {

// Groups inside a workload whose processes tell its age.
constexpr int kMaxAgedChildren = 16;

}  // namespace

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

}  // namespace berth::cgroup
