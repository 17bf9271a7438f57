// SPDX-License-Identifier: Apache-2.0
// Which quotas are lifted, who gets a burst, and when both go back (policies/quota/README.md).
#include "policies/decide.h"
#include "policies/explain.h"
#include "policies/quota/policy.h"
#include "policies/share.h"
#include "tests/unit/policies/hosts.h"

#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::policies {
namespace {

using model::Attribute;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr QuotaSettings kBoth{.lift = true, .burst = true};
constexpr double kLifted_cores = model::kMaxCpu + 1;

class QuotaTest : public ::testing::Test {
 protected:
  QuotaTest() : snapshot_(testing::snapshot_of(testing::host({}))) {
    snapshot_.workloads = {testing::pinned(testing::latency_sensitive("web", 2), "0-1")};
    web().cpu_quota_cores = 2;
  }

  model::Workload& web() { return snapshot_.workloads.at(0); }
  QuotaProposal propose(const QuotaSettings& settings = {}, const OtherChanges& others = {}) const {
    return propose_quotas(snapshot_, settings, others);
  }
  void lift() {
    web().original = model::OriginalLimits{.cpu_quota_cores = web().cpu_quota_cores, .memory_high_bytes = {}};
    web().cpu_quota_cores = kLifted_cores;
    web().held_cpu = model::HeldLimit{.cause = model::HeldCause::lifted, .since = 900, .changed_at = 900};
  }
  // The quota that the only action sets; nullopt: none.
  static std::optional<double> quota_of(const QuotaProposal& proposal) {
    const auto* quota = proposal.actions.at(0).sets<model::CpuQuota>();
    return quota != nullptr ? quota->cores : std::nullopt;
  }

  model::Snapshot snapshot_;
};

TEST_F(QuotaTest, AQuotaOfAllOwnVcpusIsLifted) {
  const auto proposal = propose();
  ASSERT_THAT(proposal.actions, SizeIs(1));
  EXPECT_EQ(quota_of(proposal), kLifted_cores) << "more than any host has";
  EXPECT_THAT(proposal.actions[0].reason, HasSubstr("owns vCPUs 0-1"));
  EXPECT_THAT(proposal.findings.lifted, SizeIs(1));
}

TEST_F(QuotaTest, ALiftedQuotaStaysLiftedWithoutAnAction) {
  lift();
  const auto proposal = propose();
  EXPECT_THAT(proposal.actions, IsEmpty());
  EXPECT_THAT(proposal.findings.lifted, SizeIs(1));
}

TEST_F(QuotaTest, AQuotaWithABurstOfItsOwnerIsNotLifted) {
  web().fixed.others.insert(Attribute::cpu_burst);
  EXPECT_THAT(propose().actions, IsEmpty());
}

TEST_F(QuotaTest, AQuotaAsLargeAsTheHostNeedsNoLift) {
  web().cpu_quota_cores = 8;
  EXPECT_THAT(propose().actions, IsEmpty());
  EXPECT_THAT(propose().findings.lifted, IsEmpty());
}

TEST_F(QuotaTest, ASmallerQuotaIsTheOwnersWish) {
  web().cpu_quota_cores = 1.99;
  EXPECT_THAT(propose().actions, IsEmpty());
}

TEST_F(QuotaTest, SharedVcpusAreNotItsOwn) {
  web().shares = true;
  EXPECT_THAT(propose().actions, IsEmpty());
}

TEST_F(QuotaTest, AQuotaGoesBackInThePlanThatTakesTheVcpus) {
  lift();
  const auto proposal = propose({}, {.pins = {{"web", {}}}, .quotas = {}});
  ASSERT_THAT(proposal.actions, SizeIs(1));
  EXPECT_EQ(quota_of(proposal), 2);
  EXPECT_THAT(proposal.findings.lifted, IsEmpty());
}

TEST_F(QuotaTest, AQuotaGoesBackInThePlanThatGivesMoreVcpusThanItAllows) {
  lift();
  EXPECT_EQ(quota_of(propose({}, {.pins = {{"web", testing::cpus("0-2")}}, .quotas = {}})), 2);
}

TEST_F(QuotaTest, APinThatShrinksToTheQuotaDoesNotLiftItYet) {
  web().cpus = testing::cpus("0-3");
  const OtherChanges shrinks{.pins = {{"web", testing::cpus("0-1")}}, .quotas = {}};
  EXPECT_THAT(propose({}, shrinks).actions, IsEmpty());
}

TEST_F(QuotaTest, AUsersOwnGroupIsGivenNothing) {
  web().user = 1000;
  EXPECT_THAT(propose(kBoth).actions, IsEmpty());
  EXPECT_THAT(propose(kBoth).findings.lifted, IsEmpty());
}

TEST_F(QuotaTest, AQuotaGoesBackWhenTheSettingIsSwitchedOff) {
  lift();
  const auto proposal = propose({.lift = false, .burst = false});
  ASSERT_THAT(proposal.actions, SizeIs(1));
  EXPECT_EQ(quota_of(proposal), 2);
}

TEST_F(QuotaTest, AQuotaGoesBackWhenTheClassChanges) {
  lift();
  web().workload_class = model::WorkloadClass::best_effort;
  EXPECT_EQ(quota_of(propose()), 2);
}

TEST_F(QuotaTest, AQuotaThatAStragglerHoldsIsLeftToItsPolicy) {
  lift();
  web().held_cpu->cause = model::HeldCause::extended;
  EXPECT_THAT(propose().actions, IsEmpty());
}

TEST_F(QuotaTest, AQuotaGoesBackUnderAPinLargerThanIt) {
  lift();
  web().cpus = testing::cpus("0-3");
  EXPECT_EQ(quota_of(propose()), 2);
}

TEST_F(QuotaTest, ALiftedQuotaThatAnotherPolicySetsIsThatPolicys) {
  lift();
  const auto proposal = propose({}, {.pins = {{"web", testing::cpus("0-3")}}, .quotas = {"web"}});
  EXPECT_THAT(proposal.actions, IsEmpty());
  EXPECT_THAT(proposal.findings.lifted, IsEmpty()) << "or it would count as lifted still";
}

TEST_F(QuotaTest, ForOtherPoliciesALiftedQuotaIsThatOfItsOwner) {
  const Share before = share_of(web(), model::Resource::cpu, 8);
  lift();
  const Share lifted = share_of(web(), model::Resource::cpu, 8);
  EXPECT_EQ(lifted.limit, before.limit);
  EXPECT_EQ(lifted.allocation, before.allocation);
  EXPECT_EQ(lifted.held, std::nullopt);
}

TEST_F(QuotaTest, TheStragglerPolicyDoesNotGiveALiftedQuotaBack) {
  lift();
  const model::Plan plan = decide(snapshot_, {}, {"straggler", "quota"});
  EXPECT_THAT(plan.actions, IsEmpty());
}

TEST_F(QuotaTest, ABurstIsOffByDefault) {
  web().cpus = {};
  EXPECT_THAT(propose().actions, IsEmpty());
}

TEST_F(QuotaTest, WithoutVcpusOfItsOwnAServiceGetsItsQuotaAsBurst) {
  web().cpus = {};
  web().cpu_period_us = 20'000;
  const auto proposal = propose(kBoth);
  ASSERT_THAT(proposal.actions, SizeIs(1));
  ASSERT_NE(proposal.actions[0].sets<model::CpuBurst>(), nullptr);
  EXPECT_EQ(proposal.actions[0].sets<model::CpuBurst>()->us, 40'000U);
  EXPECT_THAT(proposal.findings.bursting, SizeIs(1));
}

TEST_F(QuotaTest, AQuotaBelowTheOwnVcpusStaysWithABurst) {
  web().cpu_quota_cores = 1;
  const auto proposal = propose(kBoth);
  ASSERT_THAT(proposal.actions, SizeIs(1));
  EXPECT_EQ(proposal.actions[0].sets<model::CpuBurst>()->us, 100'000U);
}

TEST_F(QuotaTest, ABurstThatStandsNeedsNoAction) {
  web().cpus = {};
  web().others[Attribute::cpu_burst] = model::CpuBurst{200'000};
  EXPECT_THAT(propose(kBoth).actions, IsEmpty());
  EXPECT_THAT(propose(kBoth).findings.bursting, SizeIs(1));
}

TEST_F(QuotaTest, ABurstGoesBackWhenTheQuotaIsLifted) {
  web().others[Attribute::cpu_burst] = model::CpuBurst{200'000};
  lift();
  const auto proposal = propose(kBoth);
  ASSERT_THAT(proposal.actions, SizeIs(1));
  EXPECT_TRUE(proposal.actions[0].gives_back(Attribute::cpu_burst));
}

TEST_F(QuotaTest, ABurstIsNeverAboveTheQuotaInForce) {
  web().cpus = {};
  lift();
  web().cpu_quota_cores = 0.5;
  web().held_cpu->cause = model::HeldCause::preempted;
  const auto proposal = propose(kBoth);
  ASSERT_THAT(proposal.actions, SizeIs(1));
  EXPECT_EQ(proposal.actions[0].sets<model::CpuBurst>()->us, 50'000U);
}

TEST_F(QuotaTest, BestEffortWorkGetsNeither) {
  web().workload_class = model::WorkloadClass::best_effort;
  EXPECT_THAT(propose(kBoth).actions, IsEmpty());
}

// In one plan the quota falls before the service leaves its vCPUs.
TEST_F(QuotaTest, TheQuotaGoesBackBeforeTheVcpus) {
  lift();
  web().vcpus.reset();
  const model::Plan plan = decide(snapshot_, {}, {"interference", "quota"});
  ASSERT_THAT(plan.actions, SizeIs(2));
  EXPECT_NE(plan.actions[0].sets<model::CpuQuota>(), nullptr);
  EXPECT_TRUE(plan.actions[1].gives_back(Attribute::cpus));
}

TEST_F(QuotaTest, AnExplanationSaysWhyTheQuotaIsLifted) {
  const model::Plan plan = decide(snapshot_, {}, {"quota"});
  const auto explained = explain_workload(snapshot_, plan, {}, "web");
  ASSERT_TRUE(explained);
  EXPECT_THAT(explained->lifted.value_or(""), HasSubstr("CPU quota of 2 cores"));
}

}  // namespace
}  // namespace berth::policies
