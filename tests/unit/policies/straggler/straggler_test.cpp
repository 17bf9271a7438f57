// SPDX-License-Identifier: Apache-2.0
// The share that stragglers are given, and the workloads that pay for it. The host has eight vCPUs and 64 GiB
// unless it is said.
#include "policies/decide.h"
#include "policies/straggler/policy.h"
#include "tests/unit/policies/hosts.h"
#include "tests/unit/policies/straggler/stragglers.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::policies {

namespace {

using model::HeldCause;
using testing::batch;
using ::testing::ElementsAre;
using testing::good_task;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kGiB;
using testing::late_and_pinned;
using testing::late_task;
using testing::limits;
using testing::moves;
using ::testing::UnorderedElementsAre;
using testing::with_memory;

model::Snapshot host(std::vector<model::Workload> workloads) {
  model::Snapshot snapshot = testing::snapshot_of(testing::host({}));
  snapshot.memory.total_bytes = snapshot.memory.available_bytes = 64 * kGiB;
  snapshot.workloads = std::move(workloads);
  return snapshot;
}

StragglerProposal help(const model::Snapshot& snapshot, const StragglerSettings& straggler = {}) {
  PolicySettings settings;
  settings.straggler = straggler;
  return propose_help(snapshot, settings);
}

model::Workload with_priority(model::Workload workload, int priority) {
  workload.priority = priority;
  return workload;
}

}  // namespace

TEST(Straggler, LimitsThatAUserWroteKeepNothingFromOthers) {
  model::Workload parked = batch("user/parked", 5, 0.5);
  const auto honest = batch("job", 3, 2.5);
  EXPECT_NEAR(help(host({late_task("web", 3), parked, honest})).findings.idle.cpu_cores, 0, 1e-9);
  parked.user = 1000;
  EXPECT_NEAR(help(host({late_task("web", 3), parked, honest})).findings.idle.cpu_cores, 1.5, 1e-9);
}

TEST(Straggler, AnIdleNodeHelpsAtOnce) {
  const auto proposal = help(host({late_task("web", 3)}));
  EXPECT_THAT(limits(proposal.actions), ElementsAre("web=4"));
  EXPECT_NEAR(proposal.findings.idle.cpu_cores, 5, 1e-9);
  EXPECT_NEAR(proposal.findings.needed.cpu_cores, 1, 1e-9);
  EXPECT_NEAR(proposal.findings.tasks.at("web").extension.cpu_cores, 1, 1e-9);
  EXPECT_NEAR(proposal.findings.tasks.at("web").granted.cpu_cores, 1, 1e-9);
  EXPECT_THAT(proposal.findings.moves, IsEmpty());
  EXPECT_THAT(proposal.findings.relocate, IsEmpty());
  EXPECT_THAT(proposal.actions.front().reason, HasSubstr("all of 1.33 times its 3 cores: 1 core more"));
}

TEST(Straggler, WhoDoesNotStraggleIsLeftAlone) {
  const auto proposal = help(host({batch("batch", 6, 1), good_task("web", 3)}));
  EXPECT_THAT(proposal.actions, IsEmpty());
  EXPECT_EQ(proposal.findings.needed, model::Resources{});
  EXPECT_FALSE(proposal.findings.tasks.at("web").straggler);
}

TEST(Straggler, WhatIsNotUsedIsLentLargestFirst) {
  // 3 + 2 + 3 allocated, nothing idle; 1 core is missing. a spares 2 - 0.6 / 0.6 = 1, b 3 - 0.3 / 0.6 = 2.5.
  const auto proposal = help(host({batch("a", 2, 0.6), batch("b", 3, 0.3), late_task("web", 3)}));
  EXPECT_THAT(limits(proposal.actions), UnorderedElementsAre("b=2", "web=4"));
  EXPECT_THAT(moves(proposal.findings), ElementsAre("reclaim b 1"));
  const auto& redundant = proposal.findings.redundant;
  EXPECT_NEAR(redundant.at("a").cpu->utilisation, 0.3, 1e-9);
  EXPECT_NEAR(redundant.at("a").cpu->reclaimable_cores, 1, 1e-9);
  EXPECT_NEAR(redundant.at("b").cpu->reclaimable_cores, 2.5, 1e-9);
}

TEST(Straggler, TheLargestUseInTheWindowCounts) {
  model::Workload bursty = batch("b", 3, 0.3);
  testing::change_samples(bursty, [](auto& samples) {
    samples.insert(samples.begin(), samples.front());
    samples.front().cpu_cores = 1.7;
  });
  const auto proposal = help(host({batch("a", 2, 0.6), bursty, late_task("web", 3)}));
  // b: 3 - 1.7 / 0.6 = 0.1667 to lend, a: 1.
  EXPECT_THAT(moves(proposal.findings), ElementsAre("reclaim a 1"));
}

TEST(Straggler, OneThatUsesItsShareIsNotRedundant) {
  const auto proposal = help(host({batch("b", 5, 3), late_task("web", 3)}));
  EXPECT_THAT(proposal.findings.redundant, IsEmpty());
  EXPECT_THAT(moves(proposal.findings), ElementsAre("preempt b 1"));
}

TEST(Straggler, TheOtherResourceOfARedundantTaskIsShownToo) {
  const auto proposal = help(host({with_memory(batch("b", 5, 0.5), 10 * kGiB, 9 * kGiB)}));
  EXPECT_NEAR(proposal.findings.redundant.at("b").memory->utilisation, 0.9, 1e-9);
  EXPECT_EQ(proposal.findings.redundant.at("b").memory->reclaimable_bytes, 0U);
}

TEST(Straggler, ThenTheLowestPriorityIsShrunkAndOfEqualOnesTheOneThatCanGiveMost) {
  // Nothing to lend: each uses what it has. 2 more cores are missing for web (max_growth 2, no speed).
  model::Workload web = late_task("web", 2);
  web.progress.back().fraction = 0.5;
  const auto proposal =
      help(host({with_priority(batch("a", 2.2, 1.9), 1), with_priority(batch("b", 2, 1.5), 1),
                 with_priority(batch("c", 1.8, 1.8), 0), web}));
  // 1.7 from c (down to 0.1), the rest from a.
  EXPECT_THAT(moves(proposal.findings), ElementsAre("preempt c 1.7", "preempt a 0.3"));
  EXPECT_THAT(limits(proposal.actions), UnorderedElementsAre("a=1.9", "c=0.1", "web=4"));
}

TEST(Straggler, ASmallHelperIsNotShrunkWhileABatchJobCanGiveEnough) {
  // The helper uses little, and cannot do with less.
  const auto proposal =
      help(host({batch("batch", 4.5, 4.5), batch("helper", 0.5, 0.4), late_task("web", 3)}));
  EXPECT_THAT(moves(proposal.findings), ElementsAre("preempt batch 1"));
}

TEST(Straggler, ALenderThatKeepsLittleIsNotPreemptedFirst) {
  // It lends 4 - 0.6 / 0.6 = 3 of 4, so it can give 0.9 more, and the other one 2.9.
  model::Workload web = late_task("web", 4);
  web.progress.back().fraction = 0.5;  // asks as much again, but 7 of 8 vCPUs at most
  model::Snapshot snapshot = host({batch("lender", 4, 0.6), batch("other", 3, 3), web});
  snapshot.pending = {testing::pending("new", 1)};
  EXPECT_THAT(moves(help(snapshot).findings), ElementsAre("reclaim lender 3", "preempt other 1"));
}

TEST(Straggler, NothingIsTakenForAPartThatNobodyCanUse) {
  // The straggler owns whole vCPUs and needs one more. 0.3 are idle, and the batch job could give 0.6.
  model::Workload db = testing::latency_sensitive("db", 4);
  db.cpu_quota_cores = 4;
  model::Snapshot snapshot = host({batch("batch", 0.7, 0.7), db, late_and_pinned("web", "0-2")});
  const auto proposal = help(snapshot);
  EXPECT_NEAR(proposal.findings.idle.cpu_cores, 0.3, 1e-9);
  EXPECT_EQ(proposal.findings.tasks.at("web").granted.cpu_cores, 0);
  EXPECT_THAT(moves(proposal.findings), IsEmpty());
  EXPECT_THAT(limits(proposal.actions), IsEmpty());
  // The batch job gives 0.8, and the vCPU is whole.
  snapshot.workloads[0] = batch("batch", 0.9, 0.9);
  snapshot.workloads[1].cpu_quota_cores = 3.9;
  EXPECT_THAT(moves(help(snapshot).findings), ElementsAre("preempt batch 0.8"));
}

TEST(Straggler, WhatIsLentFirstIsPartOfWhatIsPreempted) {
  model::Workload web = late_task("web", 3.5);
  web.progress.back().fraction = 0.5;  // asks as much again
  const auto proposal = help(host({batch("b", 4.5, 1.35), web}));
  // Lends 4.5 - 1.35 / 0.6 = 2.25, then gives 1.25 more.
  EXPECT_THAT(moves(proposal.findings), ElementsAre("preempt b 3.5"));
  EXPECT_THAT(limits(proposal.actions), UnorderedElementsAre("b=1", "web=7"));
}

TEST(Straggler, ManyAndTooLittleTheEarliestDeadlineFirst) {
  model::Workload first = late_task("z", 3);
  first.deadline = 1200;
  const auto proposal = help(host({late_task("a", 3), late_task("b", 1), first}));
  // 1 idle core; z lacks 3 (rho = 2), a 1, b 1/3.
  const auto& tasks = proposal.findings.tasks;
  EXPECT_NEAR(tasks.at("z").granted.cpu_cores, 1, 1e-9);
  EXPECT_EQ(tasks.at("a").granted.cpu_cores, 0);
  EXPECT_EQ(tasks.at("b").granted.cpu_cores, 0);
  EXPECT_THAT(tasks.at("z").reason, HasSubstr("a part of 2 times its 3 cores: 1 core more"));
  EXPECT_THAT(limits(proposal.actions), ElementsAre("z=4"));
  ASSERT_EQ(proposal.findings.relocate.size(), 3U);
  EXPECT_EQ(proposal.findings.relocate[0].workload, "a");
  EXPECT_NEAR(proposal.findings.relocate[0].lacks.cpu_cores, 1, 1e-9);
  EXPECT_NEAR(proposal.findings.relocate[2].lacks.cpu_cores, 2, 1e-9);
}

TEST(Straggler, EqualDeadlinesGoById) {
  const auto proposal = help(host({late_task("a", 3), late_task("b", 4)}));
  EXPECT_NEAR(proposal.findings.tasks.at("a").granted.cpu_cores, 1, 1e-9);
  EXPECT_EQ(proposal.findings.tasks.at("b").granted.cpu_cores, 0);
}

TEST(Straggler, WithoutBestEffortWorkNothingIsTaken) {
  const auto proposal = help(host({late_task("a", 4), late_task("b", 4)}));
  EXPECT_THAT(proposal.actions, IsEmpty());
  EXPECT_EQ(proposal.findings.relocate.size(), 2U);
}

TEST(Straggler, PendingRequestsAreCollectedForTooButServedLast) {
  model::Snapshot snapshot = host({batch("b", 5, 0.6), late_task("web", 3)});
  snapshot.pending = {testing::pending("new", 2)};
  const auto proposal = help(snapshot);
  EXPECT_NEAR(proposal.findings.needed.cpu_cores, 3, 1e-9);
  EXPECT_THAT(moves(proposal.findings), ElementsAre("reclaim b 3"));
  EXPECT_NEAR(proposal.findings.tasks.at("web").granted.cpu_cores, 1, 1e-9);
}

TEST(Straggler, PendingRequestsAloneReclaimToo) {
  model::Snapshot snapshot = host({batch("b", 8, 0.6)});
  snapshot.pending = {testing::pending("new", 2), testing::pending("other", 3)};
  snapshot.pending[1].workload_class = model::WorkloadClass::best_effort;
  EXPECT_THAT(moves(help(snapshot).findings), ElementsAre("reclaim b 2"));
}

TEST(Straggler, RoomIsMadeForPendingRequestsOnce) {
  // Promised are 12 cores of 8: what is taken leaves nothing idle.
  model::Snapshot snapshot = host({batch("b", 8, 0.6), batch("c", 4, 3)});
  snapshot.pending = {testing::pending("new", 2)};
  const auto first = help(snapshot);
  EXPECT_THAT(moves(first.findings), ElementsAre("reclaim b 2"));
  EXPECT_NEAR(first.findings.room.at("new").cpu_cores, 2, 1e-9);
  snapshot.pending[0].room_cpu_cores = 2;
  snapshot.workloads[0].cpu_quota_cores = 6;
  const auto then = help(snapshot);
  EXPECT_THAT(moves(then.findings), IsEmpty());
  EXPECT_NEAR(then.findings.needed.cpu_cores, 2, 1e-9);
  EXPECT_NEAR(then.findings.room.at("new").cpu_cores, 2, 1e-9);
}

TEST(Straggler, RoomThatIsMadeIsNobodyElses) {
  model::Snapshot snapshot = host({batch("b", 2, 2), late_task("web", 3)});
  snapshot.pending = {testing::pending("new", 3)};
  snapshot.pending[0].room_cpu_cores = 3;
  EXPECT_NEAR(help(snapshot).findings.idle.cpu_cores, 0, 1e-9);
}

TEST(Straggler, WhatIsRecalledIsTakenFromTheRoom) {
  model::Workload lender = testing::held(batch("b", 6, 6), model::HeldCause::lent, 8, 100);
  lender.cpu_throttled = 0.5;
  model::Snapshot snapshot = host({lender, batch("c", 4, 0.1)});
  snapshot.pending = {testing::pending("new", 2)};
  snapshot.pending[0].room_cpu_cores = 2;
  const auto proposal = help(snapshot);
  EXPECT_THAT(moves(proposal.findings), ElementsAre("recall b 2", "reclaim c 2"));
  EXPECT_NEAR(proposal.findings.room.at("new").cpu_cores, 2, 1e-9);
}

TEST(Straggler, BestEffortWorkWithoutAnyLimitCountsByItsUseAndCanBeShrunkFromThere) {
  const auto proposal = help(host({batch("b", std::nullopt, 5), late_task("web", 3)}));
  EXPECT_NEAR(proposal.findings.idle.cpu_cores, 0, 1e-9);
  EXPECT_THAT(proposal.findings.redundant, IsEmpty());
  EXPECT_THAT(limits(proposal.actions), UnorderedElementsAre("b=4", "web=4"));
}

TEST(Straggler, BestEffortWorkWithDeclaredVcpusLendsFromThese) {
  model::Workload declared = batch("b", std::nullopt, 0.6);
  declared.vcpus = 5;
  EXPECT_THAT(limits(help(host({declared, late_task("web", 3)})).actions),
              UnorderedElementsAre("b=4", "web=4"));
}

TEST(Straggler, AQuotaBeyondTheNodeCountsAsTheNode) {
  const auto proposal = help(host({batch("b", 100, 0.6), late_task("web", 1)}));
  // Of eight cores it can lend 8 - 0.6 / 0.6 = 7; 1/3 is missing. A lowered 98.67 would give no workload
  // anything.
  EXPECT_NEAR(proposal.findings.redundant.at("b").cpu->reclaimable_cores, 7, 1e-9);
  EXPECT_THAT(limits(proposal.actions), UnorderedElementsAre("b=7.66667", "web=1.33333"));
}

TEST(Straggler, WithoutSamplesNobodyIsRedundant) {
  model::Workload unknown = batch("b", 5, 0);
  unknown.usage.clear();
  const auto proposal = help(host({unknown, late_task("web", 3)}));
  EXPECT_THAT(proposal.findings.redundant, IsEmpty());
  EXPECT_THAT(moves(proposal.findings), ElementsAre("preempt b 1"));
}

TEST(Straggler, WorkReadInTurnIsNotTakenForIdleMeanwhile) {
  model::Workload unread = batch("b", 5, 0.1);
  model::Workload other = batch("c", 5, 0.1);
  unread.user = other.user = 1000;
  model::Snapshot snapshot = host({unread, other, late_task("web", 3)});
  testing::change_samples(other, [&](auto& samples) { samples.back().time = snapshot.time; });
  snapshot.workloads[1] = other;
  const auto proposal = help(snapshot);
  EXPECT_FALSE(proposal.findings.redundant.contains("b"));
  EXPECT_TRUE(proposal.findings.redundant.contains("c"));
}

TEST(Straggler, AQuotaIsNeverLoweredToNothing) {
  StragglerSettings settings;
  settings.preempt_floor_cores = 1;
  model::Workload web = late_task("web", 3.5);
  web.progress.back().fraction = 0.5;  // asks as much again
  EXPECT_THAT(limits(help(host({batch("a", 2, 0), batch("b", 2.5, 0), web}), settings).actions),
              UnorderedElementsAre("a=0.99", "b=0.01", "web=7"));
}

TEST(Straggler, GrowthEndsAtTheDomain) {
  // LLC domains of four vCPUs; one vCPU of the node stays with others.
  model::Snapshot snapshot = testing::snapshot_of(testing::host({.llcs_per_socket = 2, .cores_per_llc = 2}));
  model::Workload web = late_and_pinned("web", "0-1,4");
  web.progress.back().fraction = 0.5;  // wants twice its three
  snapshot.workloads = {web};
  const auto proposal = help(snapshot);
  const auto& task = proposal.findings.tasks.at("web");
  EXPECT_NEAR(task.extension.cpu_cores, 1, 1e-9);
  EXPECT_EQ(task.vcpus, 4);
  EXPECT_THAT(task.reason, HasSubstr("of the 3 cores that it lacks, its domain allows 1 core"));
  ASSERT_EQ(proposal.findings.relocate.size(), 1U);
  EXPECT_NEAR(proposal.findings.relocate[0].lacks.cpu_cores, 2, 1e-9);
}

TEST(Straggler, VcpusThatOthersOwnAreNoRoomToGrow) {
  // LLC domains 0-7 and 8-15; web and db fill the first one.
  model::Snapshot snapshot =
      testing::snapshot_of(testing::host({.llcs_per_socket = 2, .cores_per_llc = 8, .threads_per_core = 1}));
  model::Workload web = late_and_pinned("web", "0-3");
  web.cpu_quota_cores = 4;
  web.progress.back().fraction = 0.5;  // wants as much again
  model::Workload db = testing::pinned(testing::latency_sensitive("db", 4), "4-7");
  snapshot.workloads = {batch("c", 8, 7.5), db, web};
  const auto proposal = help(snapshot);
  EXPECT_THAT(proposal.actions, IsEmpty());
  EXPECT_EQ(proposal.findings.needed.cpu_cores, 0);
  ASSERT_EQ(proposal.findings.relocate.size(), 1U);
  EXPECT_NEAR(proposal.findings.relocate[0].lacks.cpu_cores, 4, 1e-9);
}

TEST(Straggler, OfADomainsRoomTheEarliestDeadlineTakesFirst) {
  // Each wants two more of the four that are free, of which one stays with best-effort work.
  model::Workload first = late_and_pinned("z", "0-1");
  model::Workload second = late_and_pinned("a", "2-3");
  first.deadline = 1299;
  first.progress.back().fraction = second.progress.back().fraction = 0.5;
  const auto proposal = help(host({second, first}));
  EXPECT_EQ(proposal.findings.tasks.at("z").vcpus, 4);
  EXPECT_EQ(proposal.findings.tasks.at("a").vcpus, 3);
  EXPECT_EQ(proposal.findings.needed.cpu_cores, 3);
  ASSERT_EQ(proposal.findings.relocate.size(), 1U);
  EXPECT_EQ(proposal.findings.relocate[0].workload, "a");
  EXPECT_NEAR(proposal.findings.relocate[0].lacks.cpu_cores, 1, 1e-9);
}

TEST(Straggler, OneThatIsNotPinnedMayHaveTheNodeLessWhatIsKept) {
  model::Workload web = late_task("web", 6);
  web.progress.back().fraction = 0.5;
  EXPECT_THAT(limits(help(host({web})).actions), ElementsAre("web=7"));
}

TEST(Straggler, OneWithoutAnyLimitCannotBeGivenMore) {
  model::Workload web = late_task("web", 1);
  web.cpu_quota_cores.reset();
  const auto proposal = help(host({web}));
  EXPECT_THAT(proposal.actions, IsEmpty());
  EXPECT_THAT(proposal.findings.relocate, IsEmpty());
  EXPECT_TRUE(proposal.findings.tasks.at("web").straggler);
  EXPECT_THAT(proposal.findings.tasks.at("web").reason,
              HasSubstr("its CPU allocation is not known, so berth cannot give it more"));
}

TEST(Straggler, APinnedOneOwnsMoreVcpus) {
  model::Snapshot snapshot = host({late_and_pinned("web", "0-2")});
  const model::Plan plan = decide(snapshot, {});
  EXPECT_EQ(plan.findings.straggler->tasks.at("web").vcpus, 4);
  EXPECT_THAT(testing::pins(plan), ElementsAre("web=0-3"));
  EXPECT_THAT(limits(plan.actions), IsEmpty());
}

TEST(Straggler, QuotaAndVcpusGoTogether) {
  model::Workload web = late_and_pinned("web", "0-2");
  web.cpu_quota_cores = 3;
  const model::Plan plan = decide(host({web}), {});
  EXPECT_THAT(testing::pins(plan), ElementsAre("web=0-3"));
  EXPECT_THAT(limits(plan.actions), ElementsAre("web=4"));
}

TEST(Straggler, AQuotaBelowItsVcpusGrowsWithoutMoreOfThem) {
  model::Workload web = late_and_pinned("web", "0-2");
  web.cpu_quota_cores = 1.5;
  const model::Plan plan = decide(host({web}), {});
  EXPECT_EQ(plan.findings.straggler->tasks.at("web").vcpus, std::nullopt);
  EXPECT_THAT(limits(plan.actions), ElementsAre("web=2"));
  EXPECT_THAT(testing::pins(plan), IsEmpty());
}

TEST(Straggler, GrowthTooSmallToBeWrittenMovesNoPin) {
  model::Workload web = late_and_pinned("web", "0-3");
  web.cpu_quota_cores = 4;
  web.deadline = 1398;  // rho is 400 / 398
  const model::Plan plan = decide(host({web}), {}, {"straggler", "interference"});
  EXPECT_THAT(plan.actions, IsEmpty());
  const auto& task = plan.findings.straggler->tasks.at("web");
  EXPECT_EQ(task.vcpus, std::nullopt);
  EXPECT_THAT(task.reason, HasSubstr("what it lacks is less than 0.01 of its quota (min_change)"));
  EXPECT_THAT(plan.findings.straggler->relocate, IsEmpty());
}

TEST(Straggler, APartTooSmallToBeWrittenIsNotGranted) {
  model::Workload web = late_and_pinned("web", "0-3");
  web.cpu_quota_cores = 2.5;
  // 0.02 cores are idle; the one that asks later can use them.
  const model::Plan plan = decide(host({web, late_task("xerox", 1), testing::task("z", 4.48, 1300, {})}), {});
  EXPECT_EQ(plan.findings.straggler->tasks.at("web").granted.cpu_cores, 0);
  EXPECT_EQ(plan.findings.straggler->tasks.at("web").vcpus, std::nullopt);
  EXPECT_THAT(limits(plan.actions), ElementsAre("xerox=1.02"));
  EXPECT_EQ(plan.findings.straggler->relocate.size(), 2U);
}

TEST(Straggler, WithoutAQuotaItAsksForWholeVcpus) {
  // 2 x 4/3 = 2.67 are three vCPUs, so that one core is missing.
  auto proposal = help(host({batch("b", 6, 6), late_and_pinned("web", "0-1")}));
  EXPECT_THAT(moves(proposal.findings), ElementsAre("preempt b 1"));
  EXPECT_EQ(proposal.findings.tasks.at("web").vcpus, 3);
  // A part of a vCPU is none.
  proposal = help(host({late_and_pinned("web", "0-1"), testing::task("x", 5.5, 1300, {})}));
  EXPECT_EQ(proposal.findings.tasks.at("web").granted.cpu_cores, 0);
  EXPECT_EQ(proposal.findings.tasks.at("web").vcpus, std::nullopt);
}

TEST(Straggler, LowersBeforeItRaises) {
  const model::Plan plan = decide(host({batch("b", 5, 0.5), late_task("web", 3)}), {});
  EXPECT_THAT(limits(plan.actions), ElementsAre("b=4", "web=4"));
}

TEST(Straggler, TheSameEvidenceIsNotAnsweredTwice) {
  model::Workload web = testing::held(late_task("web", 4), HeldCause::extended, 3, 50);
  const auto proposal = help(host({web}));
  EXPECT_THAT(proposal.actions, IsEmpty());
  EXPECT_EQ(proposal.findings.needed.cpu_cores, 0);
  EXPECT_TRUE(proposal.findings.tasks.at("web").straggler);
  EXPECT_THAT(proposal.findings.tasks.at("web").reason, HasSubstr("berth waits for two reports after that"));
  EXPECT_THAT(proposal.findings.relocate, IsEmpty());
}

TEST(Straggler, NewEvidenceExtendsItFurther) {
  // Its third report is as old as the change.
  model::Workload web = testing::held(late_task("web", 4), HeldCause::extended, 3, 100);
  EXPECT_THAT(limits(help(host({web})).actions), ElementsAre("web=5.33333"));
}

TEST(Straggler, AMoveOfItsPinAsksForEvidenceToo) {
  model::Workload web = late_task("web", 3);
  web.pinned_at = 950;
  EXPECT_THAT(help(host({web})).actions, IsEmpty());
  web.pinned_at = 900;
  EXPECT_EQ(help(host({web})).actions.size(), 1U);
}

TEST(Straggler, AClockThatWentBackHoldsNothing) {
  model::Workload web = late_task("web", 3);
  web.pinned_at = 5000;
  EXPECT_EQ(help(host({web})).actions.size(), 1U);
}

TEST(Straggler, WhileItWaitsItKeepsItsVcpus) {
  model::Workload web = late_and_pinned("web", "0-3");
  web.vcpus = 2;
  web.pinned_at = 950;
  EXPECT_EQ(help(host({web})).findings.tasks.at("web").vcpus, 4);
}

TEST(Straggler, MemoryIsExtendedWhereMemoryHighHoldsItBack) {
  const auto proposal = help(host({with_memory(late_task("web", 1), 3 * kGiB, 3 * kGiB - 1000)}));
  EXPECT_THAT(limits(proposal.actions),
              UnorderedElementsAre("web=1.33333", "web=" + std::to_string(4 * kGiB)));
  EXPECT_EQ(proposal.findings.tasks.at("web").granted.memory_bytes, kGiB);
}

TEST(Straggler, MemoryIsNotExtendedWhereSomethingElseHoldsItBack) {
  EXPECT_EQ(help(host({with_memory(late_task("web", 1), 3 * kGiB, 2 * kGiB)}))
                .findings.tasks.at("web")
                .extension.memory_bytes,
            0U);
  model::Workload requested = with_memory(late_task("web", 1), std::nullopt, 3 * kGiB);
  requested.memory_request_bytes = 3 * kGiB;
  EXPECT_EQ(help(host({requested})).findings.needed.memory_bytes, 0U);
}

TEST(Straggler, MemoryIsTakenDownToItsUseAndATenth) {
  model::Snapshot snapshot = host({with_memory(batch("a", 1, 1), 30 * kGiB, 10 * kGiB),
                                   with_memory(batch("b", 1, 1), 20 * kGiB, 18 * kGiB),
                                   with_memory(late_task("web", 1), 48 * kGiB, 48 * kGiB)});
  snapshot.memory.total_bytes = 98 * kGiB;
  const auto proposal = help(snapshot);
  // 16 GiB are missing. a lends 30 - 10 / 0.6 = 13.33, then gives up to 1.1 of its use; that is enough.
  ASSERT_EQ(proposal.findings.moves.size(), 1U);
  EXPECT_EQ(proposal.findings.moves[0].workload, "a");
  EXPECT_NEAR(static_cast<double>(proposal.findings.moves[0].amount.memory_bytes) / kGiB, 16, 1e-6);
  EXPECT_EQ(proposal.findings.tasks.at("web").granted.memory_bytes,
            proposal.findings.tasks.at("web").extension.memory_bytes);
}

TEST(Straggler, MemoryIsNotTakenBelowSixteenMebibytes) {
  const std::uint64_t mebibyte = std::uint64_t{1} << 20;
  model::Snapshot snapshot = host({with_memory(batch("lends", 1, 1), 40 * mebibyte, 0),
                                   with_memory(batch("used", 1, 1), 18 * mebibyte, 12 * mebibyte),
                                   with_memory(late_task("web", 1), 300 * mebibyte, 300 * mebibyte)});
  snapshot.memory.total_bytes = 358 * mebibyte;  // 100 MiB are missing
  const auto text = [&](const char* id) { return std::string(id) + "=" + std::to_string(16 * mebibyte); };
  EXPECT_THAT(limits(help(snapshot).actions), UnorderedElementsAre(text("lends"), text("used"), "web=1.33333",
                                                                   "web=" + std::to_string(326 * mebibyte)));
}

TEST(Straggler, MemoryThatIsUsedIsNotTaken) {
  model::Snapshot snapshot = host({with_memory(batch("a", 1, 1), 10 * kGiB, 10 * kGiB),
                                   with_memory(late_task("web", 1), 54 * kGiB, 54 * kGiB)});
  const auto proposal = help(snapshot);
  EXPECT_THAT(proposal.findings.moves, IsEmpty());
  EXPECT_THAT(limits(proposal.actions), ElementsAre("web=1.33333"));
  ASSERT_EQ(proposal.findings.relocate.size(), 1U);
  EXPECT_GT(proposal.findings.relocate[0].lacks.memory_bytes, 0U);
}

TEST(Straggler, NothingAtAllIsFine) {
  const auto proposal = help(host({}));
  EXPECT_THAT(proposal.actions, IsEmpty());
  EXPECT_EQ(proposal.findings.idle.cpu_cores, 8);
}

}  // namespace berth::policies
