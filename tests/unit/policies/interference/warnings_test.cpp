// SPDX-License-Identifier: Apache-2.0
// Services that a pin, or the lack of one, would harm; and vCPUs of other programs.
#include "policies/interference/warnings.h"

#include "policies/decide.h"
#include "policies/explain.h"
#include "policies/interference/policy.h"
#include "tests/unit/policies/hosts.h"
#include "tests/unit/policies/interference/random_node.h"
#include "tests/unit/policies/seeds.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::policies {

namespace {

using model::WarningCause;
using testing::best_effort;
using testing::cpus;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::host;
using ::testing::IsEmpty;
using testing::latency_sensitive;
using testing::pinned;
using testing::pins;
using ::testing::SizeIs;
using testing::snapshot_of;

model::Workload using_cores(model::Workload workload, double cores) {
  model::UsageSample sample;
  sample.cpu_cores = cores;
  for (int i = 0; i < 5; ++i) {
    sample.time = 995 + i;
    workload.usage.push_back(sample);
  }
  return workload;
}

// Six cores without SMT under one cache.
model::Snapshot six_cores(std::vector<model::Workload> workloads) {
  model::Snapshot snapshot = snapshot_of(host({.cores_per_llc = 6, .threads_per_core = 1}));
  snapshot.workloads = std::move(workloads);
  return snapshot;
}

std::vector<model::ServiceWarning> warnings(const model::Snapshot& snapshot) {
  return propose_pins(snapshot, {}).findings.warnings;
}

}  // namespace

TEST(Warnings, AServiceThatUsesMoreThanItsVcpusIsNotPinnedAndTheNumberThatWouldDoIsNamed) {
  const model::Snapshot snapshot = six_cores({using_cores(latency_sensitive("db", 2), 4.4)});
  const InterferenceProposal proposal = propose_pins(snapshot, {});
  EXPECT_THAT(proposal.actions, IsEmpty());
  ASSERT_THAT(proposal.findings.warnings, SizeIs(1));
  const model::ServiceWarning& warning = proposal.findings.warnings.front();
  EXPECT_EQ(warning.workload, "db");
  EXPECT_EQ(warning.cause, WarningCause::use);
  EXPECT_EQ(warning.vcpus, 5);
  EXPECT_THAT(warning.reason, HasSubstr("it uses 4.4 cores, more than its vcpus = 2"));
  EXPECT_THAT(warning.reason, HasSubstr("vcpus = 5 would do"));
  ASSERT_THAT(proposal.findings.unplaceable, SizeIs(1));
}

TEST(Warnings, NoNumberIsNamedThatFindsNoPlaceOrDoesNotCoverTheUse) {
  // One of six vCPUs has to stay for others.
  auto found = warnings(six_cores({using_cores(latency_sensitive("db", 2), 5.9)}));
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found.front().vcpus, std::nullopt);
  EXPECT_THAT(found.front().reason, HasSubstr("it needs 6, and there is no place for so many"));
  found = warnings(six_cores({using_cores(latency_sensitive("db", 6), 5.5)}));
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found.front().cause, WarningCause::place);
  EXPECT_EQ(found.front().vcpus, std::nullopt);
  EXPECT_THAT(found.front().reason, HasSubstr("no number of vCPUs that covers its use would find one"));
}

TEST(Warnings, ForceInTheRulePinsAServiceBelowItsUseAndSaysSo) {
  model::Snapshot snapshot = six_cores({using_cores(latency_sensitive("db", 2), 4.4)});
  snapshot.workloads.front().force = true;
  EXPECT_THAT(pins(propose_pins(snapshot, {}).actions), ElementsAre("db=0-1"));
  ASSERT_THAT(warnings(snapshot), SizeIs(1));
  EXPECT_THAT(warnings(snapshot).front().reason, HasSubstr("force = true lets the pin cut it"));
}

TEST(Warnings, AUseThatRoundingLiftsAboveTheVcpusIsNoMore) {
  EXPECT_THAT(warnings(six_cores({using_cores(latency_sensitive("db", 2), 2.03)})), IsEmpty());
  const model::Workload at_its_pin = pinned(using_cores(latency_sensitive("db", 2), 2.15), "0-1");
  EXPECT_THAT(warnings(six_cores({at_its_pin})), IsEmpty());
}

TEST(Warnings, WithoutSamplesTheCpuTimeSinceItsCreationTellsTheUse) {
  model::Workload db = latency_sensitive("db", 2, 900);
  db.cpu_time_s = 380;
  EXPECT_THAT(pins(propose_pins(six_cores({db}), {}).actions), IsEmpty());
  db.created = 995;  // too young to tell
  EXPECT_THAT(pins(propose_pins(six_cores({db}), {}).actions), ElementsAre("db=0-1"));
}

TEST(Warnings, APinBelowAUseThatWasMeasuredSinceIsTakenBack) {
  const model::Snapshot snapshot = six_cores({pinned(using_cores(latency_sensitive("db", 1), 3), "0-2")});
  EXPECT_THAT(pins(propose_pins(snapshot, {}).actions), ElementsAre("db="));
}

TEST(Warnings, APinnedServiceThatKeepsItsVcpusBusyWhileItsThreadsWaitMayNeedMore) {
  model::Workload db = pinned(using_cores(latency_sensitive("db", 2), 1.96), "0-1");
  db.cpu_pressure = 0.6;
  const InterferenceProposal proposal = propose_pins(six_cores({db}), {});
  EXPECT_THAT(proposal.actions, IsEmpty()) << "the pin stays";
  ASSERT_THAT(proposal.findings.warnings, SizeIs(1));
  EXPECT_EQ(proposal.findings.warnings.front().cause, WarningCause::use);
  EXPECT_EQ(proposal.findings.warnings.front().vcpus, std::nullopt);
  EXPECT_THAT(proposal.findings.warnings.front().reason,
              HasSubstr("its threads wait for a vCPU in 60 % of the time: it may need more than vcpus = 2"));
  db.cpu_throttled = 0.3;
  EXPECT_THAT(warnings(six_cores({db})), IsEmpty()) << "its quota keeps it waiting";
  db.cpu_throttled = 0;
  db.cpu_pressure = 0.1;
  EXPECT_THAT(warnings(six_cores({db})), IsEmpty()) << "its threads find a vCPU";
  model::Workload half_idle = pinned(using_cores(latency_sensitive("db", 2), 1.5), "0-1");
  half_idle.cpu_pressure = 0.6;
  EXPECT_THAT(warnings(six_cores({half_idle})), IsEmpty());
}

TEST(Warnings, AThrottledServiceIsNamedWithTheQuotaThatWouldDo) {
  model::Workload db = using_cores(latency_sensitive("db", 2), 1.45);
  db.cpu_quota_cores = 2;
  db.cpu_throttled = 0.5;
  db.cpu_lacked = 0.36;
  auto found = warnings(six_cores({db}));
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found.front().cause, WarningCause::quota);
  EXPECT_THAT(found.front().reason, HasSubstr("throttled it for 50 % of the last tick"));
  EXPECT_THAT(found.front().reason, HasSubstr("a quota of 2.8 cores would do"));
  db.vcpus.reset();
  EXPECT_THAT(warnings(six_cores({db})), SizeIs(1)) << "a service without vcpus, too";
  db.cpu_lacked.reset();
  found = warnings(six_cores({db}));
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found.front().reason, HasSubstr("does not tell"));
}

TEST(Warnings, AServiceUnderTheQuotaOfAStragglerIsNotNamedForItsOwners) {
  model::Workload db = using_cores(latency_sensitive("db", 2), 1.45);
  db.cpu_quota_cores = 3;
  db.original = model::OriginalLimits{.cpu_quota_cores = 2, .memory_high_bytes = {}};
  db.held_cpu = model::HeldLimit{.cause = model::HeldCause::extended, .since = 1, .changed_at = 1};
  db.cpu_throttled = 0.5;
  EXPECT_THAT(warnings(six_cores({db})), IsEmpty());
}

TEST(Warnings, AServiceThatItsQuotaThrottlesBelowItsVcpusIsNamedWithBothNumbers) {
  model::Workload db = using_cores(latency_sensitive("db", 3), 1.45);
  db.cpu_quota_cores = 1.5;
  db.cpu_throttled = 0.4;
  const auto found = warnings(six_cores({db}));
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found.front().cause, WarningCause::quota);
  EXPECT_EQ(found.front().vcpus, 2);
  EXPECT_THAT(found.front().reason, HasSubstr("its CPU quota of 1.5 cores is below its vcpus = 3"));
  EXPECT_THAT(found.front().reason, HasSubstr("40 %"));
  EXPECT_THAT(found.front().reason, HasSubstr("raise the quota to 3 cores, or set vcpus = 2"));
  db.cpu_throttled = 0;
  EXPECT_THAT(warnings(six_cores({db})), IsEmpty()) << "a quota that it does not reach does no harm";
}

TEST(Warnings, AServiceWithoutAPlaceStaysOffTheVcpusOfOthers) {
  // Three of two vCPUs on six: one vCPU has to stay for others.
  const model::Snapshot snapshot = six_cores({latency_sensitive("a", 2, 1), latency_sensitive("b", 2, 2),
                                              latency_sensitive("c", 2, 3), best_effort("batch", 1)});
  const InterferenceProposal proposal = propose_pins(snapshot, {});
  EXPECT_THAT(pins(proposal.actions), ElementsAre("a=0-1", "b=2-3", "c=4-5", "batch=4-5"));
  ASSERT_THAT(proposal.findings.warnings, SizeIs(1));
  EXPECT_EQ(proposal.findings.warnings.front().workload, "c");
  EXPECT_EQ(proposal.findings.warnings.front().cause, WarningCause::place);
  EXPECT_EQ(proposal.findings.warnings.front().vcpus, 1);
  EXPECT_THAT(proposal.findings.warnings.front().reason, HasSubstr("vcpus = 1 would find one"));
}

TEST(Warnings, AServiceWithoutAPlaceIsNotCutToKeepItOffTheVcpusOfOthers) {
  const model::Snapshot snapshot = six_cores({latency_sensitive("a", 2, 1), latency_sensitive("b", 2, 2),
                                              using_cores(latency_sensitive("c", 2, 3), 2.5)});
  const InterferenceProposal proposal = propose_pins(snapshot, {});
  EXPECT_THAT(pins(proposal.actions), ElementsAre("a=0-1", "b=2-3"));
  ASSERT_THAT(proposal.findings.warnings, SizeIs(1));
  EXPECT_THAT(proposal.findings.warnings.front().reason,
              HasSubstr("it may run on vCPUs that others own, because the 2 that none owns are fewer"));
}

TEST(Warnings, ServicesWithoutAPlaceAreNotCutTogetherByTheVcpusThatTheyShare) {
  model::Snapshot snapshot = snapshot_of(host({.cores_per_llc = 8, .threads_per_core = 1}));
  for (int i = 0; i < 3; ++i) {
    const std::string number = std::to_string(i);
    snapshot.workloads.push_back(using_cores(latency_sensitive("h" + number, 2, 10 + i), 1.5));
    snapshot.workloads.push_back(pinned(using_cores(latency_sensitive("s" + number, 2, i), 1),
                                        std::to_string(2 * i) + "-" + std::to_string(2 * i + 1)));
  }
  const InterferenceProposal proposal = propose_pins(snapshot, {});
  EXPECT_THAT(pins(proposal.actions), ElementsAre("h0=6-7")) << "1.5 of 2 cores, and 3 more do not fit";
  ASSERT_THAT(proposal.findings.warnings, SizeIs(3));
  EXPECT_THAT(proposal.findings.warnings[0].reason,
              HasSubstr("berth keeps it to vCPUs 6-7, which none owns"));
  EXPECT_THAT(proposal.findings.warnings[1].reason,
              HasSubstr("the 2 that none owns are fewer than the services without a place need"));
}

TEST(Warnings, AServiceWithoutAPlaceWhoseUseIsNotKnownCountsWithItsVcpus) {
  const model::Snapshot snapshot = six_cores({latency_sensitive("a", 2, 1), latency_sensitive("b", 2, 2),
                                              latency_sensitive("c", 2, 3), latency_sensitive("d", 2, 4)});
  EXPECT_THAT(pins(propose_pins(snapshot, {}).actions), ElementsAre("a=0-1", "b=2-3", "c=4-5"));
}

TEST(Warnings, TheForcedOnesOfThoseWithoutAPlaceComeFirst) {
  model::Snapshot snapshot =
      six_cores({latency_sensitive("a", 4, 1), using_cores(latency_sensitive("b", 4, 2), 1),
                 using_cores(latency_sensitive("c", 4, 3), 2)});
  snapshot.workloads.back().force = true;
  EXPECT_THAT(pins(propose_pins(snapshot, {}).actions), ElementsAre("a=0-3", "c=4-5"));
}

TEST(Warnings, AServiceThatUsesMoreThanItsVcpusIsToldOfTheVcpusThatItIsKeptTo) {
  const model::Snapshot snapshot =
      six_cores({latency_sensitive("a", 2, 1), using_cores(latency_sensitive("b", 2, 2), 3)});
  EXPECT_THAT(pins(propose_pins(snapshot, {}).actions), ElementsAre("a=0-1", "b=2-5"));
  EXPECT_THAT(warnings(snapshot).front().reason,
              HasSubstr("so it gets no vCPUs of its own (force = true would pin it all the same); vcpus = 3 "
                        "would do; berth keeps it to vCPUs 2-5"));
}

TEST(Warnings, ExplainNamesThem) {
  const model::Snapshot snapshot = six_cores({using_cores(latency_sensitive("db", 2), 4.4)});
  const model::Plan plan = decide(snapshot, {});
  const auto explained = explain_workload(snapshot, plan, {}, "db");
  ASSERT_TRUE(explained);
  EXPECT_EQ(explained->warnings, plan.findings.interference->warnings);
}

TEST(Warnings, ReservedVcpusThatTheHostLacksAreFound) {
  const auto findings = propose_pins(six_cores({}), {.reserved_cpus = cpus("5,8-9")}).findings;
  EXPECT_EQ(findings.absent_reserved, cpus("8-9"));
  EXPECT_EQ(propose_pins(six_cores({}), {.reserved_cpus = cpus("5")}).findings.absent_reserved, cpus(""));
}

TEST(OwnedCpus, AWorkloadThatIsLeftAloneIsNeitherPlacedNorConfinedNorNamed) {
  model::Workload radio = latency_sensitive("radio", 2);
  model::Workload crunch = best_effort("crunch", 2);
  radio.left_alone = crunch.left_alone = "vCPUs 4-5 belong to it";
  radio.allowed_cpus = crunch.allowed_cpus = cpus("4-5");
  const InterferenceProposal proposal =
      propose_pins(six_cores({crunch, radio, latency_sensitive("web", 2)}), {});
  EXPECT_THAT(pins(proposal.actions), ElementsAre("web=0-1"));
  EXPECT_THAT(proposal.findings.unplaceable, IsEmpty());
  EXPECT_THAT(proposal.findings.unconfined, IsEmpty());
}

TEST(OwnedCpus, APinOfAWorkloadThatIsLeftAloneNowIsTakenBack) {
  model::Workload radio = pinned(latency_sensitive("radio", 2), "0-1");
  model::Workload crunch = pinned(best_effort("crunch"), "2-5");
  radio.left_alone = crunch.left_alone = "vCPUs 4-5 belong to it";
  EXPECT_THAT(pins(propose_pins(six_cores({crunch, radio}), {}).actions), ElementsAre("radio=", "crunch="));
}

TEST(OwnedCpus, BestEffortWorkStaysOffTheVcpusOfContainersThatOtherProgramsPinned) {
  model::Snapshot snapshot = six_cores({best_effort("batch")});
  std::vector<model::Cpu> own = snapshot.topology.cpus();
  own[1].allowed = own[4].allowed = false;
  snapshot.topology = model::Topology::make(own).value();
  snapshot.owned_cpus = {{.owner = "pod", .cpus = cpus("1,4"), .how = model::OwnedHow::kubelet}};
  EXPECT_THAT(pins(propose_pins(snapshot, {}).actions), ElementsAre("batch=0,2-3,5"));
  snapshot.workloads.front().allowed_cpus = cpus("2-3");
  EXPECT_THAT(pins(propose_pins(snapshot, {}).actions), IsEmpty()) << "its owner keeps it off them";
  snapshot.workloads.front().allowed_cpus.reset();
  snapshot.owned_cpus.front().how = model::OwnedHow::partition;
  EXPECT_THAT(pins(propose_pins(snapshot, {}).actions), IsEmpty()) << "the kernel keeps it off them";
}

TEST(OwnedCpus, BestEffortWorkThatSharesNoVcpuWithAnInstanceNeedsNoConfinement) {
  model::Workload batch = best_effort("batch");
  batch.allowed_cpus = cpus("9");
  EXPECT_THAT(propose_pins(six_cores({batch, latency_sensitive("web", 2)}), {}).findings.unconfined,
              IsEmpty());
}

namespace {

model::Snapshot after_pins(model::Snapshot snapshot, const InterferenceProposal& proposal) {
  for (model::Workload& workload : snapshot.workloads) {
    for (const model::Action& action : proposal.actions) {
      if (*action.workload() != workload.id) continue;
      if (const auto* pin = action.sets<model::CpuSet>()) workload.cpus = *pin;
      if (action.gives_back(model::Attribute::cpus)) workload.cpus = {};
    }
    workload.shares = !workload.cpus.empty() && proposal.findings.instances.count(workload.id) == 0;
  }
  return snapshot;
}

}  // namespace

// The page says: without force, no service is bound to fewer vCPUs than it was measured to use.
RC_GTEST_PROP(WarningsProperty, NoServiceIsPinnedBelowItsMeasuredUseUnlessForced, ()) {
  testing::RandomCase node = testing::random_case(*testing::any_seed());
  for (model::Workload& workload : node.snapshot.workloads) workload.force = *rc::gen::arbitrary<bool>();
  const auto proposal = propose_pins(node.snapshot, node.settings.interference);
  for (const model::Action& action : proposal.actions) {
    const auto* pin = action.sets<model::CpuSet>();
    if (pin == nullptr) continue;
    const auto workload = std::find_if(node.snapshot.workloads.begin(), node.snapshot.workloads.end(),
                                       [&](const auto& it) { return it.id == *action.workload(); });
    if (workload->workload_class != model::WorkloadClass::latency_sensitive || workload->force) continue;
    double sum = 0;
    for (const auto& sample : workload->usage) sum += sample.cpu_cores;
    const double mean = workload->usage.empty() ? 0 : sum / static_cast<double>(workload->usage.size());
    RC_ASSERT(mean <= 1.1 * static_cast<double>(pin->size()) + 1e-9);
  }
}

// Once the others are where this plan puts them: before that, a larger request of an older service may push
// a younger one aside, and itself.
RC_GTEST_PROP(WarningsProperty, TheNumberThatIsNamedDoes, ()) {
  const testing::RandomCase node = testing::random_case(*testing::any_seed());
  if (node.settings.interference.search != Search::window) return;
  const auto proposal = propose_pins(node.snapshot, node.settings.interference);
  const model::Snapshot placed = after_pins(node.snapshot, proposal);
  for (const model::ServiceWarning& warning : proposal.findings.warnings) {
    if (!warning.vcpus || warning.cause == WarningCause::quota) continue;
    model::Snapshot changed = placed;
    const auto service = std::find_if(changed.workloads.begin(), changed.workloads.end(),
                                      [&](const auto& it) { return it.id == warning.workload; });
    service->vcpus = warning.vcpus;
    for (const model::ServiceWarning& left :
         propose_pins(changed, node.settings.interference).findings.warnings)
      RC_ASSERT(left.workload != warning.workload || left.cause == WarningCause::quota);
  }
}

// Those without vCPUs of their own may share some. They fit into these together.
RC_GTEST_PROP(WarningsProperty, ServicesThatShareVcpusUseNoMoreTogether, ()) {
  testing::RandomCase node = testing::random_case(*testing::any_seed());
  for (model::Workload& workload : node.snapshot.workloads) workload.force = *rc::gen::inRange(0, 8) == 0;
  const auto proposal = propose_pins(node.snapshot, node.settings.interference);
  std::map<std::string, model::CpuSet> after;
  for (const model::Workload& workload : node.snapshot.workloads) after[workload.id] = workload.cpus;
  for (const model::Action& action : proposal.actions) {
    if (const auto* pin = action.sets<model::CpuSet>()) after[*action.workload()] = *pin;
    if (action.gives_back(model::Attribute::cpus)) after[*action.workload()] = {};
  }
  std::vector<std::pair<model::CpuSet, double>> shared;
  for (const model::Workload& workload : node.snapshot.workloads) {
    const model::CpuSet& cpus = after.at(workload.id);
    const bool sensitive = workload.workload_class == model::WorkloadClass::latency_sensitive;
    if (!sensitive || cpus.empty() || workload.force) continue;
    if (proposal.findings.instances.count(workload.id) > 0) continue;
    shared.emplace_back(cpus, workload.usage.cpu().mean().value_or(0));
  }
  for (const auto& [whole, one] : shared) {
    double sum = 0;
    for (const auto& [cpus, cores] : shared) sum += cpus.is_subset_of(whole) ? cores : 0;
    RC_ASSERT(sum <= static_cast<double>(whole.size()) + 1e-6);
  }
}

}  // namespace berth::policies
