// SPDX-License-Identifier: Apache-2.0
// The straggler policy against its plain restatement, and what holds of it whatever the node.
#include "policies/decide.h"
#include "policies/straggler/policy.h"
#include "tests/unit/policies/hosts.h"
#include "tests/unit/policies/seeds.h"
#include "tests/unit/policies/straggler/naive_straggler.h"
#include "tests/unit/policies/straggler/random_straggler.h"
#include "tests/unit/policies/straggler/stragglers.h"
#include "tests/unit/rounding.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::policies {

namespace {

using naive::What;
using Key = std::pair<What, std::string>;

testing::RandomCase any_case() { return testing::random_straggler_case(*testing::any_seed()); }

// How far amounts may be from each other. Each is a sum with a few terms of each workload and request: a
// limit, an original, vCPUs or a use, at most max_growth of them. An amount of memory is made whole, so that
// the last bit may decide on a byte of each.
class Bounds {
 public:
  explicit Bounds(const testing::RandomCase& node) {
    const model::Snapshot& snapshot = node.snapshot;
    double cores = static_cast<double>(snapshot.topology.usable().size());
    double bytes = static_cast<double>(snapshot.memory.total_bytes);
    for (const model::Workload& it : snapshot.workloads) {
      double used_cores = 0;
      double used_bytes = 0;
      for (const auto& sample : it.usage) {
        used_cores += sample.cpu_cores;
        used_bytes += static_cast<double>(sample.memory_bytes.value_or(0));
      }
      const model::OriginalLimits original = it.original.value_or(model::OriginalLimits());
      cores += it.cpu_quota_cores.value_or(0) + original.cpu_quota_cores.value_or(0) + it.vcpus.value_or(0) +
               static_cast<double>(it.cpus.size()) + used_cores;
      bytes += static_cast<double>(it.memory_high_bytes.value_or(0)) +
               static_cast<double>(original.memory_high_bytes.value_or(0)) +
               static_cast<double>(it.memory_request_bytes) + used_bytes;
    }
    for (const model::PendingWorkload& it : snapshot.pending) {
      cores += it.vcpus.value_or(0) + it.room_cpu_cores;
      bytes += static_cast<double>(it.memory_request_bytes) + static_cast<double>(it.room_memory_bytes);
    }
    const auto count = static_cast<double>(snapshot.workloads.size() + snapshot.pending.size());
    const double growth = node.settings.straggler.max_growth;
    cores_ = berth::testing::rounding(20 * count, growth * cores);
    bytes_ = count + berth::testing::rounding(20 * count, growth * bytes);
  }

  double of(What what) const { return what == What::cpu ? cores_ : bytes_; }
  bool near(What what, double a, double b) const { return std::abs(a - b) <= of(what); }
  bool near(What what, const std::optional<double>& a, const std::optional<double>& b) const {
    return a && b ? near(what, *a, *b) : a.has_value() == b.has_value();
  }

 private:
  double cores_ = 0;
  double bytes_ = 0;
};

// Speeds are quotients of differences of given figures. The time of the end adds a quotient of them to a
// time.
bool same_figure(const std::optional<double>& a, const std::optional<double>& b) {
  return a && b ? berth::testing::same_sum(*a, *b, 8) : a.has_value() == b.has_value();
}

// A missing amount up to this counts as none.
constexpr double kNothing_cores = 1e-9;

double at(const std::map<What, double>& amounts, What what) {
  const auto found = amounts.find(what);
  return found == amounts.end() ? 0 : found->second;
}

// Limits by workload; each at most once.
std::map<Key, std::optional<double>> limits_of(const std::vector<model::Action>& actions) {
  std::map<Key, std::optional<double>> limits;
  for (const model::Action& action : actions) {
    if (const auto* quota = action.sets<model::CpuQuota>()) {
      RC_ASSERT(limits.emplace(Key{What::cpu, *action.workload()}, quota->cores).second);
    } else if (const auto* high = action.sets<model::MemoryHigh>()) {
      std::optional<double> bytes;
      if (high->bytes) bytes = static_cast<double>(*high->bytes);
      RC_ASSERT(limits.emplace(Key{What::memory, *action.workload()}, bytes).second);
    } else {
      RC_FAIL("not a limit");
    }
  }
  return limits;
}

void expect_resources(const model::Resources& resources, const std::map<What, double>& expected,
                      const Bounds& bounds) {
  RC_ASSERT(bounds.near(What::cpu, resources.cpu_cores, at(expected, What::cpu)));
  RC_ASSERT(
      bounds.near(What::memory, static_cast<double>(resources.memory_bytes), at(expected, What::memory)));
}

const model::Workload& find(const model::Snapshot& snapshot, const std::string& id) {
  return *std::find_if(snapshot.workloads.begin(), snapshot.workloads.end(),
                       [&](const auto& workload) { return workload.id == id; });
}

bool sensitive(const model::Workload& workload) {
  return workload.workload_class == model::WorkloadClass::latency_sensitive;
}

}  // namespace

RC_GTEST_PROP(StragglerProperty, IsWhatItsRestatementSays, ()) {
  const testing::RandomCase node = any_case();
  const StragglerProposal real = propose_help(node.snapshot, node.settings);
  const naive::Help expected = naive::help(node.snapshot, node.settings);
  const auto moved = [&](model::LimitMove::Kind kind) {
    return std::any_of(real.findings.moves.begin(), real.findings.moves.end(),
                       [kind](const model::LimitMove& move) { return move.kind == kind; });
  };
  RC_CLASSIFY(moved(model::LimitMove::Kind::reclaim), "lent");
  RC_CLASSIFY(moved(model::LimitMove::Kind::preempt), "preempted");
  RC_CLASSIFY(moved(model::LimitMove::Kind::recall), "recalled");
  RC_CLASSIFY(moved(model::LimitMove::Kind::restore), "restored");
  RC_CLASSIFY(moved(model::LimitMove::Kind::release), "released");
  RC_CLASSIFY(!real.findings.relocate.empty(), "something lacks");
  const Bounds bounds(node);
  expect_resources(real.findings.idle, expected.idle, bounds);
  expect_resources(real.findings.needed, expected.needed, bounds);
  RC_ASSERT(real.findings.tasks.size() == expected.tasks.size());
  for (const auto& [id, task] : real.findings.tasks) {
    RC_ASSERT(expected.tasks.contains(id));
    const naive::Judged& same = expected.tasks.at(id);
    RC_ASSERT(task.straggler == same.straggler);
    RC_ASSERT(same_figure(task.v1, same.v1));
    RC_ASSERT(same_figure(task.v2, same.v2));
    RC_ASSERT(same_figure(task.finish, same.finish));
    expect_resources(task.extension, same.extension, bounds);
    expect_resources(task.granted, same.granted, bounds);
  }
  for (const What what : {What::cpu, What::memory}) {
    const auto found = expected.reclaimable.find(what);
    const auto reclaimable =
        found == expected.reclaimable.end() ? std::map<std::string, double>() : found->second;
    for (const model::Workload& workload : node.snapshot.workloads) {
      double amount = 0;
      if (const auto shown = real.findings.redundant.find(workload.id);
          shown != real.findings.redundant.end()) {
        if (what == What::cpu && shown->second.cpu) amount = shown->second.cpu->reclaimable_cores;
        if (what == What::memory && shown->second.memory)
          amount = static_cast<double>(shown->second.memory->reclaimable_bytes);
      }
      RC_ASSERT(
          bounds.near(what, amount, reclaimable.contains(workload.id) ? reclaimable.at(workload.id) : 0.0));
    }
  }
  for (const auto& [what, by_id] : expected.room) {
    for (const auto& [id, amount] : by_id) {
      RC_CLASSIFY(amount > 0, "room is made");
      const model::Resources& room = real.findings.room.at(id);
      RC_ASSERT(bounds.near(what, what == What::cpu ? room.cpu_cores : static_cast<double>(room.memory_bytes),
                            amount));
    }
  }
  std::set<std::string> keeping;
  for (const auto& [id, reason] : real.findings.keeping) keeping.insert(id);
  RC_CLASSIFY(!keeping.empty(), "somebody keeps its share");
  RC_ASSERT(keeping == expected.keeping);
  std::map<Key, double> lacks;
  for (const model::Relocation& it : real.findings.relocate) {
    if (it.lacks.cpu_cores > 0) lacks[{What::cpu, it.workload}] = it.lacks.cpu_cores;
    if (it.lacks.memory_bytes > 0)
      lacks[{What::memory, it.workload}] = static_cast<double>(it.lacks.memory_bytes);
  }
  std::size_t lacking = 0;
  for (const auto& [what, by_id] : expected.lacks) {
    for (const auto& [id, amount] : by_id) RC_ASSERT(bounds.near(what, lacks[{what, id}], amount));
    lacking += by_id.size();
  }
  RC_ASSERT(lacks.size() == lacking);
  const auto limits = limits_of(real.actions);
  std::size_t changes = 0;
  for (const auto& [what, by_id] : expected.limits) {
    for (const auto& [id, limit] : by_id) {
      RC_ASSERT(limits.contains({what, id}));
      RC_ASSERT(bounds.near(what, limits.at({what, id}), limit));
    }
    changes += by_id.size();
  }
  RC_ASSERT(limits.size() == changes);
}

RC_GTEST_PROP(StragglerProperty, HandsOutNoMoreThanIsIdleAndTaken, ()) {
  const testing::RandomCase node = any_case();
  const StragglerProposal proposal = propose_help(node.snapshot, node.settings);
  const model::StragglerFindings& findings = proposal.findings;
  double granted_cores = 0;
  double granted_bytes = 0;
  for (const auto& [id, task] : findings.tasks) {
    granted_cores += task.granted.cpu_cores;
    granted_bytes += static_cast<double>(task.granted.memory_bytes);
    RC_ASSERT(task.granted.cpu_cores <= task.extension.cpu_cores + kNothing_cores);
    RC_ASSERT(task.granted.memory_bytes <= task.extension.memory_bytes);
  }
  double taken_cores = 0;
  double taken_bytes = 0;
  std::set<std::pair<bool, std::string>> moved;
  for (const model::LimitMove& move : findings.moves) {
    // A limit that comes back beyond the node's size gives nothing.
    if (move.amount == model::Resources{}) continue;
    RC_ASSERT(moved.emplace(move.amount.memory_bytes > 0, move.workload).second);
    if (move.kind != model::LimitMove::Kind::reclaim && move.kind != model::LimitMove::Kind::preempt)
      continue;
    RC_ASSERT(!sensitive(find(node.snapshot, move.workload)));
    taken_cores += move.amount.cpu_cores;
    taken_bytes += static_cast<double>(move.amount.memory_bytes);
  }
  const Bounds bounds(node);
  // A claim that lacks next to nothing is granted in full.
  const double nothing = kNothing_cores * static_cast<double>(findings.tasks.size());
  RC_ASSERT(granted_cores <= findings.idle.cpu_cores + taken_cores + nothing + bounds.of(What::cpu));
  RC_ASSERT(granted_bytes <=
            static_cast<double>(findings.idle.memory_bytes) + taken_bytes + bounds.of(What::memory));
  // And takes no more than is missing.
  RC_ASSERT(taken_cores <=
            std::max(0.0, findings.needed.cpu_cores - findings.idle.cpu_cores) + bounds.of(What::cpu));
  RC_ASSERT(taken_bytes <= std::max(0.0, static_cast<double>(findings.needed.memory_bytes) -
                                             static_cast<double>(findings.idle.memory_bytes)) +
                               bounds.of(What::memory));
}

RC_GTEST_PROP(StragglerProperty, LowersNobodyBelowItsFloor, ()) {
  const testing::RandomCase node = any_case();
  const StragglerProposal proposal = propose_help(node.snapshot, node.settings);
  const auto limits = limits_of(proposal.actions);
  for (const model::LimitMove& move : proposal.findings.moves) {
    const bool cpu = move.amount.cpu_cores > 0;
    const model::Workload& workload = find(node.snapshot, move.workload);
    const bool preempted = move.kind == model::LimitMove::Kind::preempt;
    if (!preempted && move.kind != model::LimitMove::Kind::reclaim) continue;
    const double limit = *limits.at({cpu ? What::cpu : What::memory, move.workload});
    if (cpu) {
      // What is above the floor is taken off the amount before.
      const double bound = Bounds(node).of(What::cpu);
      RC_ASSERT(limit >= 0.01 - bound);
      if (preempted) RC_ASSERT(limit >= node.settings.straggler.preempt_floor_cores - bound);
    } else {
      RC_ASSERT(limit >= 16.0 * 1024 * 1024);
      RC_ASSERT(limit >= 1.1 * static_cast<double>(workload.usage.back().memory_bytes.value()) - 1);
    }
  }
}

RC_GTEST_PROP(StragglerProperty, GivesNothingBackAboveItsOriginal, ()) {
  const testing::RandomCase node = any_case();
  const StragglerProposal proposal = propose_help(node.snapshot, node.settings);
  const auto limits = limits_of(proposal.actions);
  for (const model::LimitMove& move : proposal.findings.moves) {
    if (move.kind == model::LimitMove::Kind::reclaim || move.kind == model::LimitMove::Kind::preempt)
      continue;
    const model::Workload& workload = find(node.snapshot, move.workload);
    if (!workload.original) continue;
    for (const auto& [key, limit] : limits) {
      if (key.second != move.workload || (key.first == What::cpu) != (move.amount.cpu_cores > 0)) continue;
      if (key.first == What::cpu && workload.original->cpu_quota_cores)
        RC_ASSERT(limit.value() <= *workload.original->cpu_quota_cores);
      if (key.first == What::memory && workload.original->memory_high_bytes && move.amount.memory_bytes > 0)
        RC_ASSERT(limit.value() <= static_cast<double>(*workload.original->memory_high_bytes));
    }
  }
}

RC_GTEST_PROP(StragglerProperty, GrownInstancesKeepTheirVcpusAndShareNone, ()) {
  testing::RandomCase node = any_case();
  const model::Plan plan = decide(node.snapshot, node.settings);
  const auto& findings = *plan.findings.interference;
  model::CpuSet owned;
  for (const auto& [id, instance] : findings.instances) {
    RC_ASSERT(!instance.cpus.intersects(owned));
    owned |= instance.cpus;
    if (id.starts_with("pending")) continue;
    const model::Workload& workload = find(node.snapshot, id);
    const int own = static_cast<int>(instance.cpus.size());
    const auto task = plan.findings.straggler->tasks.find(id);
    const bool grown = task != plan.findings.straggler->tasks.end() && task->second.vcpus;
    if (!grown) {
      RC_ASSERT(own == *workload.vcpus);
    } else {
      RC_ASSERT(own >= *workload.vcpus);
      RC_ASSERT(own <= *task->second.vcpus);
      if (own > *workload.vcpus) {
        // It grew where it was, or gave up some of what it had.
        RC_ASSERT(workload.cpus.is_subset_of(instance.cpus) || instance.cpus.is_subset_of(workload.cpus));
      }
    }
  }
  RC_ASSERT(!findings.best_effort.cpus.intersects(owned));
  const auto left =
      testing::given_out(node.snapshot.topology, node.settings.interference).size() - owned.size();
  RC_ASSERT((owned.empty() ||
             left >= static_cast<std::size_t>(std::max(1, node.settings.interference.be_min_cpus))));
}

// Carried out again and again with nothing else happening, it comes to rest.
RC_GTEST_PROP(StragglerProperty, ComesToRestWhereNothingChanges, ()) {
  testing::RandomCase node = any_case();
  // A workload that is throttled with any quota never stops asking.
  for (model::Workload& workload : node.snapshot.workloads) workload.cpu_throttled.reset();
  std::string last;
  // Each step back is a hundredth of the node at least, and each workload may have as much to get back as the
  // node has.
  const std::size_t ticks = 60 + 100 * node.snapshot.workloads.size();
  for (std::size_t tick = 0; tick < ticks; ++tick) {
    const model::Plan plan = decide(node.snapshot, node.settings);
    testing::carry_out(plan, node.snapshot);
    node.snapshot.time += 100;
    last.clear();
    for (const model::Action& action : plan.actions) {
      if (action.workload() == nullptr) continue;  // what the node advertises
      last += fmt::format("{} {}: {}\n", action.kind(), *action.workload(), action.reason);
    }
    if (last.empty()) break;
  }
  if (!last.empty()) RC_FAIL(last);
}

}  // namespace berth::policies
