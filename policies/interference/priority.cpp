// SPDX-License-Identifier: Apache-2.0
#include "policies/interference/priority.h"

#include "model/count_text.h"
#include "model/path.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace berth::policies {

namespace {

using model::BestEffortGroup;
using model::LowPriority;

std::optional<LowPriority> low_priority(BestEffortPriority priority) {
  if (priority == BestEffortPriority::leave) return std::nullopt;
  return priority == BestEffortPriority::idle ? LowPriority::idle : LowPriority::weight;
}

std::optional<model::Action> change_of(const BestEffortGroup& group, std::optional<LowPriority> wanted,
                                       const std::string& why) {
  if (group.fixed) return std::nullopt;
  // It needs nothing then. berth holds it only if it wrote before it had read the owner's.
  const bool is_idle_by_its_owner = group.owner == LowPriority::idle;
  model::Action action{.what = {},
                       .policy = "interference",
                       .decision = {},
                       .reason = is_idle_by_its_owner ? "its owner made it idle" : why};
  if (wanted && !is_idle_by_its_owner) {
    if (model::priority_of(group) == wanted) return std::nullopt;
    action.what = model::Set{.workload = group.id, .value = *wanted};
  } else {
    if (!group.held) return std::nullopt;
    action.what = model::GiveBack{.workload = group.id, .attribute = model::Attribute::cpu_idle};
  }
  return action;
}

// "a/b" of "a/b/c" and "a/b/d/e". It is neither of the two.
std::string_view common_ancestor(std::string_view a, std::string_view b) {
  std::string_view common = model::parent_path(a);
  while (!common.empty() && (b == common || !model::is_within(b, common)))
    common = model::parent_path(common);
  return common;
}

// The component of `path` below `ancestor`.
std::string_view branch_of(std::string_view path, std::string_view ancestor) {
  const std::size_t begin = ancestor.empty() ? 0 : ancestor.size() + 1;
  return path.substr(begin, path.substr(begin).find('/'));
}

std::string why_unprotected(const BestEffortGroup& group, const std::string& service, std::size_t others) {
  const std::string more =
      others > 0 ? fmt::format(" and {}", model::count_text(others, "other group")) : std::string();
  if (yields_to(group.id, service))
    return fmt::format(
        "best-effort work in {}{} keeps its usual priority beside it, because berth cannot change that",
        group.id, more);
  const std::string_view common = common_ancestor(group.id, service);
  return fmt::format(
      "best-effort work in {}{} competes with it as an equal: in /{} the kernel compares {} with {}, and the "
      "former has other work, too",
      group.id, more, common, branch_of(group.id, common), branch_of(service, common));
}

// Groups with one parent are alike to every service.
struct Siblings {
  const BestEffortGroup* first = nullptr;
  std::size_t count = 0;
};

// Adds the warnings about services, ascending.
void warn_of_equals(const model::Snapshot& snapshot, model::InterferenceFindings& findings) {
  std::map<std::string_view, Siblings> by_parent;  // of a low priority, by berth or their owner
  Siblings usual;                                  // of the usual one
  for (const BestEffortGroup& group : snapshot.groups) {
    const bool low = !group.fixed || group.owner;
    Siblings& siblings = low ? by_parent[model::parent_path(group.id)] : usual;
    if (siblings.count++ == 0) siblings.first = &group;
  }
  for (const model::Workload& workload : snapshot.workloads) {
    if (workload.workload_class != model::WorkloadClass::latency_sensitive || workload.left_alone) continue;
    Siblings equals = usual;
    for (const auto& [parent, siblings] : by_parent) {
      if (yields_to(siblings.first->id, workload.id)) continue;
      if (equals.first == nullptr) equals.first = siblings.first;
      equals.count += siblings.count;
    }
    if (equals.count == 0) continue;
    findings.warnings.push_back({.workload = workload.id,
                                 .cause = model::WarningCause::priority,
                                 .vcpus = {},
                                 .reason = why_unprotected(*equals.first, workload.id, equals.count - 1)});
  }
  std::sort(findings.warnings.begin(), findings.warnings.end(), [](const auto& a, const auto& b) {
    return std::tie(a.workload, a.cause) < std::tie(b.workload, b.cause);
  });
}

}  // namespace

bool yields_to(std::string_view group, std::string_view other) {
  const std::string_view parent = model::parent_path(group);
  return parent.empty() || model::is_within(other, parent);
}

void propose_priorities(const model::Snapshot& snapshot, BestEffortPriority priority, const Hold& hold,
                        InterferenceProposal& proposal) {
  const auto services = static_cast<std::size_t>(
      std::count_if(snapshot.workloads.begin(), snapshot.workloads.end(), [](const model::Workload& it) {
        return it.workload_class == model::WorkloadClass::latency_sensitive;
      }));
  auto wanted = low_priority(priority);
  if (services == 0) wanted.reset();
  std::string why = "no latency-sensitive workload runs";
  if (services > 0) why = "interference.best_effort_priority is \"leave\"";
  if (wanted)
    why = fmt::format("it has {} while latency-sensitive work runs here ({})", model::words(*wanted),
                      model::count_text(services, "workload"));
  for (const BestEffortGroup& group : snapshot.groups) {
    if (services == 0 && hold.holds(group.changed_at)) continue;
    if (auto action = change_of(group, wanted, why)) proposal.actions.push_back(*std::move(action));
  }
  if (wanted) warn_of_equals(snapshot, proposal.findings);
}

}  // namespace berth::policies
