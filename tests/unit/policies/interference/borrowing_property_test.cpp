// SPDX-License-Identifier: Apache-2.0
// Borrowing on random nodes over many ticks, against a restatement of docs/decisions/borrowing.md.
#include "model/json.h"
#include "policies/decide.h"
#include "tests/unit/policies/draws.h"
#include "tests/unit/policies/hosts.h"
#include "tests/unit/policies/interference/random_node.h"
#include "tests/unit/policies/seeds.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::policies {

namespace {

using model::CpuSet;
using model::Workload;
using model::WorkloadClass;

constexpr int kTicks = 60;

bool is_lender_class(const Workload& workload) {
  return workload.workload_class == WorkloadClass::latency_sensitive;
}

// A node whose instances wait for long at random, mostly while they lend.
class Host {
 public:
  explicit Host(std::uint64_t seed) : draws_(seed + 1) {
    auto random = testing::random_case(seed);
    snapshot = std::move(random.snapshot);
    settings = std::move(random.settings);
    settings.interference.borrow = true;
    settings.interference.borrow_step = draws_.number(1, 3);
    settings.interference.max_runq_latency_s = draws_.chance(0.3) ? 0.001 : 0;
    snapshot.time = 100000;
    for (Workload& workload : snapshot.workloads) {
      workload.usage = {};
      workload.created = draws_.chance(0.1) ? snapshot.time - 30 : 0;
      workload.borrow = !draws_.chance(0.1);
      workload.fixed.cpu_idle = draws_.chance(0.1);
      workload.pinned_at = std::nullopt;
    }
    calm_ = draws_.fraction();
  }

  void sample() {
    snapshot.time += 1;
    for (Workload& workload : snapshot.workloads) {
      model::UsageSample sample;
      sample.time = snapshot.time;
      const auto size = static_cast<double>(std::max<std::size_t>(1, workload.cpus.size()));
      sample.cpu_cores = is_lender_class(workload) ? 0.3 * size * draws_.fraction() : size;
      const bool lends = workload.lending && !workload.lending->cpus.empty();
      const bool waits = draws_.chance(lends ? 0.1 * calm_ : 0.01);
      if (!draws_.chance(0.02))
        sample.runq_latency_us = waits ? 3000.F : 300.F + 50.F * static_cast<float>(draws_.fraction());
      workload.usage.add(sample, 60);
      if (is_lender_class(workload))
        workload.straggled_at = draws_.chance(0.005) ? std::optional(snapshot.time) : workload.straggled_at;
    }
  }
  model::Plan plan() const { return decide(snapshot, settings, {"interference"}); }

  model::Snapshot snapshot;
  PolicySettings settings;

 private:
  testing::Draws draws_;
  double calm_ = 1;
};

const Workload& find(const model::Snapshot& snapshot, const std::string& id) {
  return *std::find_if(snapshot.workloads.begin(), snapshot.workloads.end(),
                       [&](const Workload& workload) { return workload.id == id; });
}

CpuSet lent_before(const Workload& workload) { return workload.lending ? workload.lending->cpus : CpuSet(); }

bool may_not_lend(const Workload& workload, double now) {
  return !workload.borrow || now - workload.created < 60 ||
         (workload.straggled_at && now - *workload.straggled_at < 60);
}

// The target, where it is known and the newest sample is of a time after the last change.
bool misses(const Workload& workload, const PolicySettings& settings) {
  if (lent_before(workload).empty() || workload.usage.empty()) return false;
  const model::LendingState& state = *workload.lending;
  const auto newest = workload.usage.back();
  const std::optional<double> delay_us = newest.runq_latency_us;
  if (newest.time <= *state.changed_at) return false;
  if (!delay_us) {
    // Nobody knows how long its threads wait, and they run.
    if (workload.usage.size() < 3) return true;
    auto sample = workload.usage.end();
    for (int i = 0; i < 3; ++i) {
      --sample;
      if (std::optional<double>(sample->runq_latency_us) || sample->cpu_cores <= 0.001) return false;
    }
    return true;
  }
  const double limit_s = settings.interference.max_runq_latency_s > 0
                             ? settings.interference.max_runq_latency_s
                             : std::max(1e-4, 1.2 * *state.usual_delay_s);
  return *delay_us * 1e-6 > limit_s;
}

void check_lender(const std::string& id, const model::Lender& lender, const Host& host,
                  const model::InterferenceFindings& findings) {
  const Workload& workload = find(host.snapshot, id);
  const double now = host.snapshot.time;
  const CpuSet before = lent_before(workload);
  const CpuSet& after = lender.state.cpus;
  const CpuSet& owned = findings.instances.at(id).cpus;
  RC_ASSERT(after.is_subset_of(owned));
  RC_ASSERT(after.size() < owned.size() || owned.empty());
  RC_ASSERT((before - after) == lender.withdrawn);
  if (may_not_lend(workload, now)) RC_ASSERT(after.empty());
  if (workload.cpus != owned) RC_ASSERT(after.empty());
  const auto& paused_until = lender.state.paused_until;
  if (paused_until && now < *paused_until) RC_ASSERT(after.empty());
  RC_ASSERT(lender.state.pause_s <= 600);
  const bool judged = !may_not_lend(workload, now) && workload.cpus == owned;
  RC_ASSERT(lender.missed == (judged && misses(workload, host.settings)));
  if (!lender.missed) return;
  RC_ASSERT(after.empty());
  const auto& former = workload.lending->paused_until;
  const bool forgiven = former && now - *former >= 600;
  const double last = forgiven ? 0 : workload.lending->pause_s;
  RC_ASSERT(lender.state.pause_s == (last > 0 ? std::min(600.0, 2 * last) : 10.0));
  RC_ASSERT(*paused_until == now + lender.state.pause_s);
}

void check_plan(const Host& host, const model::Plan& plan) {
  const auto& findings = *plan.findings.interference;
  const auto& borrowing = *findings.borrowing;
  CpuSet lent;
  std::size_t sum = 0;
  std::size_t added = 0;
  bool missed = false;
  for (const auto& [id, lender] : borrowing.lenders) {
    check_lender(id, lender, host, findings);
    lent |= lender.state.cpus;
    sum += lender.state.cpus.size();
    added += (lender.state.cpus - lent_before(find(host.snapshot, id))).size();
    missed = missed || lender.missed;
  }
  RC_ASSERT(lent.size() == sum);
  RC_ASSERT(added <= static_cast<std::size_t>(host.settings.interference.borrow_step));
  if (missed) RC_ASSERT(added == 0U);
  CpuSet owned;
  CpuSet occupied;  // of instances that run; pending ones have no threads yet
  for (const auto& [id, instance] : findings.instances) {
    owned |= instance.cpus;
    const bool runs = std::any_of(host.snapshot.workloads.begin(), host.snapshot.workloads.end(),
                                  [&name = id](const Workload& workload) { return workload.id == name; });
    if (runs) occupied |= instance.cpus;
  }
  RC_ASSERT(!owned.intersects(findings.best_effort.cpus));
  for (const auto& [id, borrower] : borrowing.borrowers) {
    const Workload& workload = find(host.snapshot, id);
    RC_ASSERT(borrower.cpus.is_subset_of(lent));
    if (!borrower.cpus.empty()) RC_ASSERT(workload.cpu_idle && workload.borrow);
  }
  for (const model::Action& action : plan.actions) {
    if (const auto* pin = action.sets<model::CpuSet>()) {
      const Workload& workload = find(host.snapshot, *action.workload());
      if (is_lender_class(workload)) continue;
      RC_ASSERT((*pin & owned).is_subset_of(borrowing.borrowers.at(*action.workload()).cpus));
    }
    if (action.attribute() == model::Attribute::cpu_idle) {
      const Workload& workload = find(host.snapshot, *action.workload());
      RC_ASSERT(!is_lender_class(workload) && !workload.fixed.cpu_idle);
      if (action.gives_back(model::Attribute::cpu_idle)) RC_ASSERT(!workload.cpus.intersects(occupied));
    }
  }
}

RC_GTEST_PROP(Borrowing, FollowsItsRulesTickByTick, ()) {
  Host host(*testing::any_seed());
  bool any_lent = false;
  bool any_missed = false;
  for (int i = 0; i < kTicks; ++i) {
    host.sample();
    const model::Plan plan = host.plan();
    check_plan(host, plan);
    RC_ASSERT(model::to_json(host.plan()) == model::to_json(plan));
    for (const auto& [id, lender] : plan.findings.interference->borrowing->lenders) {
      any_lent = any_lent || !lender.state.cpus.empty();
      any_missed = any_missed || lender.missed;
    }
    testing::apply(plan, host.snapshot);
  }
  RC_CLASSIFY(any_lent, "lent");
  RC_CLASSIFY(any_missed, "missed");
}

// Switched off, a plan has no trace of it: where nothing is idle, it is the plan of a host that never lent.
RC_GTEST_PROP(Borrowing, SwitchedOffItChangesNothing, ()) {
  Host host(*testing::any_seed());
  for (int i = 0; i < kTicks / 2; ++i) {
    host.sample();
    testing::apply(host.plan(), host.snapshot);
  }
  host.settings.interference.borrow = false;
  for (Workload& workload : host.snapshot.workloads) workload.cpu_idle = workload.fixed.cpu_idle;
  model::Snapshot plain = host.snapshot;
  for (Workload& workload : plain.workloads) {
    workload.lending.reset();
    workload.borrow = true;
    workload.cpu_idle = false;
  }
  const model::Plan plan = host.plan();
  RC_ASSERT(!plan.findings.interference->borrowing);
  RC_ASSERT(model::to_json(plan) == model::to_json(decide(plain, host.settings, {"interference"})));
}

}  // namespace
}  // namespace berth::policies
