// SPDX-License-Identifier: Apache-2.0
// Workloads without anything that berth can change, as lender and as straggler. Eight vCPUs, time 1000.
#include "policies/straggler/policy.h"
#include "tests/unit/policies/hosts.h"
#include "tests/unit/policies/straggler/stragglers.h"

#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::policies {

namespace {

using model::HeldCause;
using testing::batch;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::held;
using ::testing::IsEmpty;
using testing::late_and_pinned;
using testing::late_task;
using testing::moves;

model::Snapshot host(std::vector<model::Workload> workloads) {
  model::Snapshot snapshot = testing::snapshot_of(testing::host({}));
  snapshot.workloads = std::move(workloads);
  return snapshot;
}

StragglerProposal help(const model::Snapshot& snapshot) { return propose_help(snapshot, {}); }

}  // namespace

TEST(StragglerFixed, WhoseLimitCannotBeChangedLendsNothingAndSaysSo) {
  model::Workload b = batch("b", 3, 0.3);
  b.fixed.cpu = true;
  const auto proposal = help(host({batch("a", 2, 0.6), b, late_task("web", 3)}));
  EXPECT_THAT(moves(proposal.findings), ElementsAre("reclaim a 1"));
  EXPECT_EQ(proposal.findings.keeping.at("b"), "berth cannot change its CPU quota");
  EXPECT_FALSE(proposal.findings.redundant.contains("b"));
  b.fixed = {.cpu = false, .memory = true};
  EXPECT_THAT(moves(help(host({batch("a", 2, 0.6), b, late_task("web", 3)})).findings),
              ElementsAre("reclaim b 1"));
}

TEST(StragglerFixed, WhoseLimitCannotBeChangedIsNotShrunk) {
  model::Workload b = batch("b", 5, 3);
  b.fixed.cpu = true;
  const auto proposal = help(host({b, late_task("web", 3)}));
  EXPECT_THAT(proposal.actions, IsEmpty());
  EXPECT_THAT(proposal.findings.moves, IsEmpty());
  ASSERT_EQ(proposal.findings.relocate.size(), 1U);
  EXPECT_NEAR(proposal.findings.relocate[0].lacks.cpu_cores, 1, 1e-9);
}

TEST(StragglerFixed, OneWhoseQuotaCannotBeChangedClaimsNothing) {
  model::Workload fixed = late_task("fixed", 3);
  fixed.fixed.cpu = true;
  const auto proposal = help(host({batch("b", 5, 3), fixed}));
  EXPECT_THAT(proposal.actions, IsEmpty());
  EXPECT_EQ(proposal.findings.needed, model::Resources{});
  EXPECT_THAT(proposal.findings.relocate, IsEmpty()) << "the node may have it";
  EXPECT_TRUE(proposal.findings.tasks.at("fixed").straggler);
  EXPECT_THAT(proposal.findings.tasks.at("fixed").reason, HasSubstr("berth cannot change its CPU quota"));
}

TEST(StragglerFixed, VcpusOfItsOwnGrowThoughAQuotaCouldNotBeSet) {
  model::Workload web = late_and_pinned("web", "0-1");
  web.fixed.cpu = true;
  const auto proposal = help(host({web}));
  EXPECT_EQ(proposal.findings.tasks.at("web").vcpus, 3);
}

TEST(StragglerFixed, ALimitThatCannotBeChangedIsNotGivenBackEither) {
  model::Workload b = held(batch("b", 1, 0.1), HeldCause::lent, 3);
  EXPECT_THAT(moves(help(host({b})).findings), ElementsAre("restore b 2"));
  b.fixed.cpu = true;
  EXPECT_THAT(help(host({b})).actions, IsEmpty());
  EXPECT_THAT(help(host({b})).findings.moves, IsEmpty());
}

TEST(StragglerFixed, OneWithNothingThatCouldGrowYetTakesNothingFromOthers) {
  model::Workload web = late_task("web", 1);
  web.cpu_quota_cores.reset();
  web.vcpus = 3;  // and no pin
  const auto proposal = help(host({batch("b", 5, 3), web}));
  EXPECT_THAT(proposal.findings.moves, IsEmpty());
  EXPECT_EQ(proposal.findings.needed, model::Resources{});
  EXPECT_THAT(proposal.findings.tasks.at("web").reason, HasSubstr("neither a quota nor vCPUs of its own"));
}

}  // namespace berth::policies
