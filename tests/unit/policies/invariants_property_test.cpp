// SPDX-License-Identifier: Apache-2.0
// Properties of every plan, for any node.
#include "policies/decide.h"
#include "policies/pins.h"
#include "tests/unit/policies/draws.h"
#include "tests/unit/policies/hosts.h"
#include "tests/unit/policies/interference/random_node.h"
#include "tests/unit/policies/seeds.h"
#include "tests/unit/policies/straggler/random_straggler.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::policies {

namespace {

testing::RandomCase any_case() { return testing::random_case(*testing::any_seed()); }

const model::Workload* find(const model::Snapshot& snapshot, const std::string& id) {
  for (const model::Workload& workload : snapshot.workloads) {
    if (workload.id == id) return &workload;
  }
  return nullptr;
}

bool inside_one(const std::vector<model::Domain>& domains, const model::CpuSet& cpus) {
  return std::any_of(domains.begin(), domains.end(),
                     [&](const model::Domain& domain) { return cpus.is_subset_of(domain.cpus); });
}

std::size_t largest(const std::vector<model::Domain>& domains, const model::CpuSet& given) {
  std::size_t most = 0;
  for (const model::Domain& domain : domains) most = std::max(most, (domain.cpus & given).size());
  return most;
}

}  // namespace

// Admissions count on planned pins.
RC_GTEST_PROP(PlanProperty, GivesThePlannedPinsWhateverOthersOwn, ()) {
  testing::RandomCase node = any_case();
  model::CpuSet owned;
  for (const int cpu : node.snapshot.topology.usable()) {
    if (*rc::gen::arbitrary<bool>()) owned.insert(cpu);
  }
  if (*rc::gen::inRange(0, 3) == 0) owned = node.snapshot.topology.usable();
  if (!owned.empty())
    node.snapshot.owned_cpus = {{.owner = "pod", .cpus = owned, .how = model::OwnedHow::kubelet}};
  const auto plan = decide(node.snapshot, node.settings, {"straggler", "interference"});
  const auto pins = planned_pins(node.snapshot, node.settings);
  RC_ASSERT(pins == plan.findings.interference->instances);
  for (const auto& [id, instance] : pins) RC_ASSERT(!instance.cpus.intersects(owned));
}

RC_GTEST_PROP(PlanProperty, GivesEachInstanceItsOwnVcpusInOneDomain, ()) {
  const testing::RandomCase node = any_case();
  const InterferenceSettings& settings = node.settings.interference;
  const model::Topology& topology = node.snapshot.topology;
  const model::CpuSet given = testing::given_out(topology, settings);
  const auto findings = *decide(node.snapshot, node.settings).findings.interference;
  model::CpuSet owned;
  for (const auto& [id, instance] : findings.instances) {
    RC_ASSERT(!instance.cpus.intersects(owned));
    owned |= instance.cpus;
    RC_ASSERT(instance.cpus.is_subset_of(given));
    RC_ASSERT(!instance.cpus.intersects(settings.reserved_cpus));
    const std::size_t size = instance.cpus.size();
    if (const model::Workload* workload = find(node.snapshot, id)) {
      RC_ASSERT(workload->vcpus.value() == static_cast<int>(size));
      // In parentheses: the macro takes a bare || apart and evaluates both sides.
      RC_ASSERT((!workload->allowed_cpus || instance.cpus.is_subset_of(*workload->allowed_cpus)));
    }
    const auto& domains = topology.domains(settings.shared_domain);
    if (size <= largest(domains, given)) {
      RC_ASSERT(inside_one(domains, instance.cpus));
    } else if (size <= largest(topology.sockets(), given)) {
      RC_ASSERT(inside_one(topology.sockets(), instance.cpus));
    } else {
      RC_ASSERT(settings.allow_cross_socket);
    }
  }
  const model::CpuSet& pool = findings.best_effort.cpus;
  RC_ASSERT(!pool.intersects(owned));
  const std::size_t least = static_cast<std::size_t>(std::max(1, settings.be_min_cpus));
  RC_ASSERT(pool.is_subset_of(given));
  RC_ASSERT(pool.size() >= std::min(least, given.size()));
}

// By both searches.
RC_GTEST_PROP(PlanProperty, OnHybridProcessorsAnInstanceHasCoresOfOneKindAndTheFastOnesFillFirst, ()) {
  testing::RandomCase node = testing::random_hybrid_case(*testing::any_seed());
  InterferenceSettings& settings = node.settings.interference;
  settings.search = *rc::gen::element(Search::window, Search::optimal);
  settings.budget_s = 0.001;
  const model::Topology& topology = node.snapshot.topology;
  const auto findings = *decide(node.snapshot, node.settings).findings.interference;
  const auto capacity = [&](int cpu) { return topology.find(cpu)->efficiency.value_or(-1); };
  std::set<int> free;
  for (const int cpu : topology.usable()) {
    if (!settings.reserved_cpus.contains(cpu)) free.insert(cpu);
  }
  for (const auto& [id, instance] : findings.instances)
    for (const int cpu : instance.cpus) free.erase(cpu);
  for (const auto& [id, instance] : findings.instances) {
    const int own = capacity(instance.cpus.first());
    for (const int cpu : instance.cpus) RC_ASSERT(capacity(cpu) == own);
    // One vCPU always lies in one domain, so that no faster one stays free beside it.
    const model::Workload* workload = find(node.snapshot, id);
    // Pending work keeps to the NUMA node that its rank chose.
    const bool newcomer = workload != nullptr && workload->cpus.empty();
    if (!newcomer || instance.cpus.size() != 1 || workload->allowed_cpus) continue;
    for (const int cpu : free) RC_ASSERT(capacity(cpu) <= own);
  }
}

RC_GTEST_PROP(PlanProperty, ConfinesEveryBestEffortWorkloadToThePoolOrSaysWhyNot, ()) {
  testing::RandomCase node = any_case();
  const model::Plan plan = decide(node.snapshot, node.settings);
  const auto& findings = *plan.findings.interference;
  // Right after an owner went, pins stay as they are: it may start again.
  std::map<std::string, model::CpuSet> held;
  for (const model::Workload& workload : node.snapshot.workloads) {
    const double age = node.snapshot.time - workload.pinned_at.value_or(-INFINITY);
    if (age >= 0 && age < 3 * node.settings.safety.repin_cooldown_s) held[workload.id] = workload.cpus;
  }
  testing::apply(plan, node.snapshot);
  model::CpuSet owned = findings.best_effort.reserved;
  for (const auto& [id, instance] : findings.instances) owned |= instance.cpus;
  std::set<std::string> unconfined;
  for (const auto& finding : findings.unconfined) unconfined.insert(finding.workload);
  for (const model::Workload& workload : node.snapshot.workloads) {
    if (workload.workload_class != model::WorkloadClass::best_effort) continue;
    if (owned.empty() || unconfined.contains(workload.id)) {
      RC_ASSERT((workload.cpus.empty() || (owned.empty() && held[workload.id] == workload.cpus)));
    } else if (workload.cpus.empty()) {
      // It may run on no vCPU of an instance, and on no reserved one.
      RC_ASSERT(workload.allowed_cpus.has_value());
      RC_ASSERT(!workload.allowed_cpus->intersects(owned));
    } else {
      RC_ASSERT(workload.cpus.is_subset_of(findings.best_effort.cpus));
    }
  }
}

// With few or many of them, and by the search that places all instances together. No move waits: an instance
// that may not move yet can keep the last vCPU of the pool.
testing::RandomCase case_with_reserved_vcpus() {
  testing::RandomCase node = any_case();
  node.settings.safety.repin_cooldown_s = 0;
  InterferenceSettings& settings = node.settings.interference;
  const double share = *rc::gen::element(0.1, 0.4, 0.9);
  testing::Draws draws(*testing::any_seed());
  for (const int cpu : node.snapshot.topology.all()) {
    if (draws.chance(share)) settings.reserved_cpus.insert(cpu);
  }
  settings.reserved = Reserved::strict;
  settings.search = *rc::gen::element(Search::window, Search::optimal);
  settings.budget_s = 0.001;
  settings.isolation =
      *rc::gen::element(model::Isolation::shared, model::Isolation::vcpus, model::Isolation::cores);
  return node;
}

RC_GTEST_PROP(PlanProperty, KeepsAllWorkOffReservedVcpusWhileThereAreOthers, ()) {
  testing::RandomCase node = case_with_reserved_vcpus();
  const model::CpuSet reserved = node.settings.interference.reserved_cpus;
  const model::CpuSet given = testing::given_out(node.snapshot.topology, node.settings.interference);
  const model::Plan plan = decide(node.snapshot, node.settings);
  const auto& findings = *plan.findings.interference;
  const bool all = given.intersects(reserved);
  RC_CLASSIFY(all, "all are reserved");
  RC_ASSERT(findings.best_effort.reserved ==
            (all ? model::CpuSet() : reserved & node.snapshot.topology.usable()));
  RC_ASSERT(findings.shared_reserved == (all ? given : model::CpuSet()));
  for (const auto& [id, instance] : findings.instances) RC_ASSERT(!instance.cpus.intersects(reserved));
  for (const auto& [id, instance] : findings.shared) RC_ASSERT(!instance.cpus.intersects(reserved));
  std::set<std::string> unconfined;
  for (const auto& finding : findings.unconfined) unconfined.insert(finding.workload);
  testing::apply(plan, node.snapshot);
  for (const model::Workload& workload : node.snapshot.workloads) {
    if (all || workload.workload_class != model::WorkloadClass::best_effort) continue;
    const model::CpuSet may = workload.allowed_cpus.value_or(node.snapshot.topology.usable());
    const model::CpuSet runs = workload.cpus.empty() ? may : workload.cpus;
    if (unconfined.contains(workload.id)) {
      RC_ASSERT(workload.cpus.empty());
      RC_ASSERT(!may.intersects(findings.best_effort.cpus));
    } else {
      RC_ASSERT(!runs.intersects(findings.best_effort.reserved));
    }
  }
}

// In the state that follows as well.
RC_GTEST_PROP(PlanProperty, WithReservedVcpusHasNothingMoreToDoOnceItIsCarriedOut, ()) {
  testing::RandomCase node = case_with_reserved_vcpus();
  node.settings.interference.search = Search::window;
  node.settings.interference.isolation = model::Isolation::vcpus;
  const std::vector<std::string> only{"interference"};
  testing::apply(decide(node.snapshot, node.settings, only), node.snapshot);
  RC_ASSERT(decide(node.snapshot, node.settings, only).actions.empty());
}

RC_GTEST_PROP(PlanProperty, ReachesWhatItsFindingsShow, ()) {
  testing::RandomCase node = any_case();
  const model::Plan plan = decide(node.snapshot, node.settings);
  const auto& instances = plan.findings.interference->instances;
  testing::apply(plan, node.snapshot);
  model::CpuSet owned;
  for (const auto& [id, instance] : instances) owned |= instance.cpus;
  for (const model::Workload& workload : node.snapshot.workloads) {
    if (workload.workload_class != model::WorkloadClass::latency_sensitive) continue;
    const auto placed = instances.find(workload.id);
    if (placed != instances.end()) {
      RC_ASSERT(workload.cpus == placed->second.cpus);
    } else {
      // A service without a place has no pin, or one off the vCPUs that others own.
      RC_ASSERT(!workload.cpus.intersects(owned));
    }
  }
}

RC_GTEST_PROP(PlanProperty, HasNothingMoreToDoOnceItIsCarriedOut, ()) {
  testing::RandomCase node = any_case();
  // Of limits that change there is one of its own, in straggler_property_test.cpp: pending requests take
  // them.
  const std::vector<std::string> only{"interference"};
  testing::apply(decide(node.snapshot, node.settings, only), node.snapshot);
  RC_ASSERT(decide(node.snapshot, node.settings, only).actions.empty());
}

RC_GTEST_PROP(PlanProperty, IsTheSameForTheSameSnapshotInWhateverOrder, ()) {
  for (testing::RandomCase node : {any_case(), testing::random_straggler_case(*testing::any_seed())}) {
    const model::Plan plan = decide(node.snapshot, node.settings);
    RC_ASSERT(decide(node.snapshot, node.settings) == plan);
    std::mt19937_64 random(*testing::any_seed());
    std::shuffle(node.snapshot.workloads.begin(), node.snapshot.workloads.end(), random);
    RC_ASSERT(decide(node.snapshot, node.settings) == plan);
  }
}

}  // namespace berth::policies
