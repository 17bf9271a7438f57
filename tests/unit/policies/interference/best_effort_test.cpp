// SPDX-License-Identifier: Apache-2.0
// The vCPUs that are left to best-effort workloads.
#include "policies/interference/policy.h"
#include "tests/unit/policies/hosts.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::policies {

namespace {

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

// Four cores with two threads each; an instance of two vCPUs on 0-1.
model::Snapshot one_instance() {
  model::Snapshot snapshot = snapshot_of(host({.cores_per_llc = 4}));
  snapshot.workloads = {pinned(latency_sensitive("web", 2), "0-1")};
  return snapshot;
}

}  // namespace

TEST(BestEffort, RunsOnEveryVcpuThatNoInstanceOwns) {
  model::Snapshot snapshot = one_instance();
  snapshot.workloads.push_back(best_effort("batch", 3));
  const InterferenceProposal proposal = propose_pins(snapshot, {});
  EXPECT_THAT(pins(proposal.actions), ElementsAre("batch=2-7"));
  EXPECT_EQ(proposal.findings.best_effort.cpus, cpus("2-7"));
  EXPECT_DOUBLE_EQ(proposal.findings.best_effort.utilisation, 0.5);
  EXPECT_THAT(
      proposal.actions.front().reason,
      HasSubstr(
          "best-effort pool 2-7: 6 of 8 vCPUs, 2 owned by 1 latency-sensitive instance, utilisation 0.5"));
}

TEST(BestEffort, IsLeftAloneWhereItAlreadyStandsInThePool) {
  model::Snapshot snapshot = one_instance();
  snapshot.workloads.push_back(pinned(best_effort("batch"), "2-7"));
  EXPECT_THAT(propose_pins(snapshot, {}).actions, IsEmpty());
}

TEST(BestEffort, IsPressedIntoTheScoreByOverlapOnly) {
  model::Snapshot snapshot = one_instance();
  snapshot.workloads.push_back(best_effort("batch", 3));
  // Siblings 4, 5 and the four vCPUs of cores 2 and 3 all run at 0.5.
  const auto overlap = propose_pins(snapshot, {}).findings.instances.at("web");
  EXPECT_DOUBLE_EQ(overlap.cpu_sc, 0.5);
  EXPECT_DOUBLE_EQ(overlap.cpu_ss, 0.5);
  const auto request = propose_pins(snapshot, {.weighting = Weighting::request}).findings.instances.at("web");
  EXPECT_DOUBLE_EQ(request.cpu_sc, 0);
  EXPECT_DOUBLE_EQ(request.cpu_ss, 0);
}

TEST(BestEffort, CountsAsFullAtMost) {
  model::Snapshot snapshot = one_instance();
  snapshot.workloads.push_back(best_effort("batch", 40));
  EXPECT_DOUBLE_EQ(propose_pins(snapshot, {}).findings.best_effort.utilisation, 1);
}

TEST(BestEffort, KeepsToItsAllowedCpusInsideThePool) {
  model::Snapshot snapshot = one_instance();
  snapshot.workloads.push_back(best_effort("batch"));
  snapshot.workloads.back().allowed_cpus = cpus("0-3");
  EXPECT_THAT(pins(propose_pins(snapshot, {}).actions), ElementsAre("batch=2-3"));
}

TEST(BestEffort, IsReportedUnconfinedWhereThePoolHasNoneOfItsCpus) {
  model::Snapshot snapshot = one_instance();
  snapshot.workloads.push_back(best_effort("batch"));
  snapshot.workloads.back().allowed_cpus = cpus("0-1");
  const InterferenceProposal proposal = propose_pins(snapshot, {});
  EXPECT_THAT(proposal.actions, IsEmpty());
  ASSERT_EQ(proposal.findings.unconfined.size(), 1U);
  EXPECT_EQ(proposal.findings.unconfined.front().workload, "batch");
  EXPECT_EQ(proposal.findings.unconfined.front().reason,
            "its allowed CPUs 0-1 share none with the best-effort pool 2-7");
}

TEST(BestEffort, LosesABerthsPinThatThePoolLeftBehind) {
  model::Snapshot snapshot = one_instance();
  snapshot.workloads.push_back(pinned(best_effort("batch"), "1"));
  snapshot.workloads.back().allowed_cpus = cpus("0-1");
  EXPECT_THAT(pins(propose_pins(snapshot, {}).actions), ElementsAre("batch="));
}

TEST(BestEffort, IsFreedOnceNoInstanceOwnsAnything) {
  model::Snapshot snapshot = one_instance();
  snapshot.workloads = {best_effort("a"), pinned(best_effort("b"), "2-7")};
  const InterferenceProposal proposal = propose_pins(snapshot, {});
  EXPECT_THAT(pins(proposal.actions), ElementsAre("b="));
  EXPECT_EQ(proposal.findings.best_effort.cpus, cpus("0-7"));
}

TEST(BestEffort, IsConfinedByAPendingInstanceToo) {
  model::Snapshot snapshot = one_instance();
  snapshot.workloads = {best_effort("batch")};
  model::PendingWorkload pending;
  pending.id = "new";
  pending.service = "new";
  pending.vcpus = 2;
  pending.isolation = model::Isolation::vcpus;
  snapshot.pending = {pending};
  EXPECT_THAT(pins(propose_pins(snapshot, {}).actions), ElementsAre("batch=2-7"));
}

TEST(BestEffort, SparesTheSiblingsOfOwnedVcpusWhenToldTo) {
  model::Snapshot snapshot = one_instance();
  snapshot.workloads.push_back(best_effort("batch"));
  const InterferenceProposal proposal = propose_pins(snapshot, {.be_avoid_siblings = true});
  EXPECT_THAT(pins(proposal.actions), ElementsAre("batch=2-3,6-7"));
  EXPECT_THAT(proposal.actions.front().reason, HasSubstr("siblings of owned vCPUs are spared"));
}

TEST(BestEffort, GetsTheSiblingsAllTheSameWhereTooFewWouldBeLeft) {
  model::Snapshot snapshot = one_instance();
  snapshot.workloads.push_back(best_effort("batch"));
  const InterferenceProposal proposal = propose_pins(snapshot, {.be_min_cpus = 5, .be_avoid_siblings = true});
  EXPECT_THAT(pins(proposal.actions), ElementsAre("batch=2-7"));
  EXPECT_THAT(proposal.actions.front().reason,
              HasSubstr("siblings of owned vCPUs are not spared: 4 would be left, be_min_cpus is 5"));
}

TEST(BestEffort, MayUseReservedVcpusThatAreShared) {
  model::Snapshot snapshot = one_instance();
  snapshot.workloads.push_back(best_effort("batch"));
  const InterferenceSettings settings{.reserved_cpus = cpus("6-7"), .reserved = Reserved::shared};
  const InterferenceProposal proposal = propose_pins(snapshot, settings);
  EXPECT_THAT(pins(proposal.actions), ElementsAre("batch=2-7"));
  EXPECT_TRUE(proposal.findings.best_effort.reserved.empty());
  EXPECT_TRUE(proposal.findings.shared_reserved.empty());
}

TEST(BestEffort, IsKeptOffReservedVcpus) {
  model::Snapshot snapshot = one_instance();
  snapshot.workloads.push_back(best_effort("batch"));
  const InterferenceProposal proposal = propose_pins(snapshot, {.reserved_cpus = cpus("6-7")});
  EXPECT_THAT(pins(proposal.actions), ElementsAre("batch=2-5"));
  EXPECT_THAT(proposal.actions.front().reason, HasSubstr("vCPUs 6-7 are reserved"));
  EXPECT_EQ(proposal.findings.best_effort.reserved, cpus("6-7"));
}

TEST(BestEffort, IsKeptOffReservedVcpusWhileNoServiceRuns) {
  model::Snapshot snapshot = one_instance();
  snapshot.workloads = {best_effort("a"), pinned(best_effort("b"), "0-7")};
  snapshot.workloads.push_back(best_effort("elsewhere"));
  snapshot.workloads.back().allowed_cpus = cpus("2-3");
  EXPECT_THAT(pins(propose_pins(snapshot, {.reserved_cpus = cpus("0,4")}).actions),
              ElementsAre("a=1-3,5-7", "b=1-3,5-7"));
}

TEST(BestEffort, ThatMayRunOnReservedVcpusAloneIsNotConfined) {
  model::Snapshot snapshot = one_instance();
  snapshot.workloads.push_back(best_effort("batch"));
  snapshot.workloads.back().allowed_cpus = cpus("6");
  const InterferenceProposal proposal = propose_pins(snapshot, {.reserved_cpus = cpus("6-7")});
  EXPECT_THAT(pins(proposal.actions), IsEmpty());
  ASSERT_THAT(proposal.findings.unconfined, SizeIs(1));
  EXPECT_EQ(proposal.findings.unconfined.front().reason,
            "its allowed CPUs 6 share none with the best-effort pool 2-5; vCPUs 6-7 are reserved");
}

TEST(BestEffort, RunsOnReservedVcpusWhereThereAreNoOthers) {
  model::Snapshot snapshot = one_instance();
  snapshot.workloads = {best_effort("batch")};
  const InterferenceProposal proposal = propose_pins(snapshot, {.reserved_cpus = cpus("0-9")});
  EXPECT_THAT(pins(proposal.actions), IsEmpty());
  EXPECT_EQ(proposal.findings.best_effort.cpus, cpus("0-7"));
  EXPECT_EQ(proposal.findings.shared_reserved, cpus("0-7"));
}

TEST(BestEffort, KeepsBeMinCpusBesideReservedVcpus) {
  model::Snapshot snapshot = one_instance();
  snapshot.workloads = {latency_sensitive("web", 5), best_effort("batch")};
  const InterferenceSettings shared{
      .reserved_cpus = cpus("6-7"), .reserved = Reserved::shared, .be_min_cpus = 2};
  EXPECT_THAT(pins(propose_pins(snapshot, shared).actions), ElementsAre("web=0-4", "batch=5-7"));
  const InterferenceSettings strict{.reserved_cpus = cpus("6-7"), .be_min_cpus = 2};
  EXPECT_THAT(propose_pins(snapshot, strict).findings.unplaceable, SizeIs(1));
}

// They would be whole only by what nobody may use.
TEST(BestEffort, NoCoreWithAReservedThreadIsAWholeCore) {
  model::Snapshot snapshot = one_instance();
  snapshot.workloads = {latency_sensitive("web", 2)};
  snapshot.workloads.front().isolation = model::Isolation::cores;
  for (const Reserved reserved : {Reserved::strict, Reserved::shared}) {
    const InterferenceSettings settings{.reserved_cpus = cpus("4"), .reserved = reserved};
    snapshot.workloads.front().cpus = {};
    EXPECT_THAT(pins(propose_pins(snapshot, settings).actions), ElementsAre("web=1,5"));
    snapshot.workloads.front().cpus = cpus("0,5");
    EXPECT_THAT(pins(propose_pins(snapshot, settings).actions), ElementsAre("web=1,5"));
  }
}

// One tick: the plan is carried out as the daemon would.
int pins_of_batch(model::Snapshot& snapshot, double now) {
  snapshot.time = now;
  int written = 0;
  for (const model::Action& action : propose_pins(snapshot, {}, {}, {}, 10).actions) {
    for (model::Workload& workload : snapshot.workloads) {
      if (workload.id != *action.workload()) continue;
      const auto* pin = action.sets<model::CpuSet>();
      workload.cpus = pin != nullptr ? *pin : model::CpuSet();
      workload.pinned_at = now;
      written += workload.workload_class == model::WorkloadClass::best_effort ? 1 : 0;
    }
  }
  return written;
}

TEST(BestEffort, AServiceThatCrashesAgainAndAgainMovesItSeldom) {
  model::Snapshot snapshot = one_instance();
  const model::Workload web = snapshot.workloads.front();
  snapshot.workloads = {best_effort("batch")};
  int written = 0;
  for (int second = 0; second < 600; ++second) {
    std::erase_if(snapshot.workloads, [](const model::Workload& it) { return it.id == "web"; });
    if (second % 6 == 0)
      snapshot.workloads.push_back(web);  // it lives for a second, and is started 5 s later
    written += pins_of_batch(snapshot, 1000 + second);
  }
  EXPECT_LE(written, 2 * 600 / 30 + 2);
  EXPECT_GE(written, 2);
}

TEST(BestEffort, APinThatIsHeldStillLosesWhatAnInstanceOwnsNow) {
  model::Snapshot snapshot = one_instance();
  snapshot.workloads.push_back(pinned(best_effort("batch"), "0-3"));
  snapshot.workloads.back().pinned_at = 995;
  snapshot.time = 1000;
  const InterferenceProposal proposal = propose_pins(snapshot, {}, {}, {}, 10);
  EXPECT_THAT(pins(proposal.actions), ElementsAre("batch=2-3"));
  EXPECT_EQ(proposal.findings.best_effort.cpus, cpus("2-7"));
  snapshot.time = 995 + 30;
  EXPECT_THAT(pins(propose_pins(snapshot, {}, {}, {}, 10).actions), ElementsAre("batch=2-7"));
}

}  // namespace berth::policies
