// SPDX-License-Identifier: Apache-2.0
// How everything that was changed for stragglers goes back. Eight vCPUs, time 1000.
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
using testing::held;
using ::testing::IsEmpty;
using testing::kGiB;
using testing::late_task;
using testing::limits;
using testing::moves;

model::Snapshot host(std::vector<model::Workload> workloads, std::optional<double> seen_at = 900) {
  model::Snapshot snapshot = testing::snapshot_of(testing::host({}));
  snapshot.memory.total_bytes = 64 * kGiB;
  snapshot.workloads = std::move(workloads);
  snapshot.straggler_seen_at = seen_at;
  return snapshot;
}

// The rest of the host is allocated to another task, except for so many cores.
model::Snapshot full_host(std::vector<model::Workload> workloads, std::optional<double> seen_at = 900,
                          double idle_cores = 0) {
  double others = 0;
  for (const model::Workload& workload : workloads) others += workload.cpu_quota_cores.value_or(0);
  workloads.push_back(testing::task("zz", 8 - others - idle_cores, 1300, {}));
  workloads.back().memory_request_bytes = 64 * kGiB;
  return host(std::move(workloads), seen_at);
}

StragglerProposal help(const model::Snapshot& snapshot) { return propose_help(snapshot, {}); }

model::Workload memory_held(model::Workload workload, std::uint64_t high, HeldCause cause,
                            std::optional<std::uint64_t> original) {
  workload.memory_high_bytes = high;
  workload.original = model::OriginalLimits{workload.cpu_quota_cores, original};
  workload.held_memory = model::HeldLimit{cause, 900, 900};
  return workload;
}

}  // namespace

TEST(StragglerReturn, InStepsOfTheNodePreemptedFirstThenTheOldest) {
  // A step is 0.8 cores.
  const auto proposal = help(full_host({held(batch("a", 1, 0), HeldCause::lent, 3, 300),
                                        held(batch("b", 1, 0), HeldCause::preempted, 1.3, 100),
                                        held(batch("c", 1, 0), HeldCause::preempted, 1.2, 200)}));
  EXPECT_THAT(moves(proposal.findings), ElementsAre("restore c 0.2", "restore b 0.3", "restore a 0.3"));
  EXPECT_THAT(limits(proposal.actions), ElementsAre("c=1.2", "b=1.3", "a=1.3"));
}

TEST(StragglerReturn, NotBeforeTheHold) {
  EXPECT_THAT(help(full_host({held(batch("a", 1, 0), HeldCause::lent, 3)}, 971)).actions, IsEmpty());
  EXPECT_EQ(help(full_host({held(batch("a", 1, 0), HeldCause::lent, 3)}, 970)).actions.size(), 1U);
}

TEST(StragglerReturn, WhatIsIdleBeyondExtensionsAndMarginGoesBackInTheSameTick) {
  // The straggler gets its third of 3 cores. Of the 4 idle cores 2.6 are left, beyond 0.4 of the margin.
  const std::vector<model::Workload> workloads{held(batch("a", 1, 0), HeldCause::lent, 6),
                                               late_task("web", 3)};
  const auto proposal = help(host(workloads, 1000));
  EXPECT_THAT(limits(proposal.actions), ElementsAre("web=4", "a=3.6"));
  ASSERT_THAT(moves(proposal.findings), ElementsAre("restore a 2.6"));
  EXPECT_EQ(proposal.findings.moves[0].reason,
            "2.6 cores is idle beyond all extensions and 5 % of the host: 2.6 cores of what was lent goes "
            "back; the limit is 3.6 cores of 6 cores");
  // 0.4 cores beyond the extension are the margin alone; 0.08 more are the least that is given back.
  EXPECT_THAT(limits(help(full_host(workloads, 1000, 1.47)).actions), ElementsAre("web=4"));
  EXPECT_THAT(limits(help(full_host(workloads, 1000, 1.49)).actions), ElementsAre("web=4", "a=1.09"));
}

TEST(StragglerReturn, IdleMemoryGoesBackInTheSameTick) {
  model::Workload filler = testing::task("x", 1, 1300, {});
  filler.memory_request_bytes = 50 * kGiB;
  const auto proposal =
      help(host({memory_held(batch("a", 1, 0), 4 * kGiB, HeldCause::preempted, 40 * kGiB), filler}, 1000));
  // 10 GiB are idle, and the margin is 3.2 GiB.
  ASSERT_EQ(proposal.findings.moves.size(), 1U);
  EXPECT_NEAR(static_cast<double>(proposal.findings.moves[0].amount.memory_bytes) / kGiB, 6.8, 1e-6);
}

TEST(StragglerReturn, AtOnceWhereNoneWasEverSeenOrTheClockWentBack) {
  const std::vector<model::Workload> lender{held(batch("a", 1, 0), HeldCause::lent, 3)};
  EXPECT_EQ(help(full_host(lender, std::nullopt)).actions.size(), 1U);
  EXPECT_EQ(help(full_host(lender, 2000)).actions.size(), 1U);
}

TEST(StragglerReturn, NotWhileThereIsAStraggler) {
  model::Workload waiting = late_task("web", 1);
  waiting.pinned_at = 999;  // so that it asks for nothing
  EXPECT_THAT(help(full_host({held(batch("a", 1, 0), HeldCause::lent, 3), waiting})).actions, IsEmpty());
}

TEST(StragglerReturn, NotWhilePendingRequestsWait) {
  model::Snapshot snapshot = full_host({held(batch("a", 1, 0.6), HeldCause::lent, 3)}, 900, 1);
  snapshot.pending = {testing::pending("new", 1)};
  EXPECT_THAT(help(snapshot).actions, IsEmpty());
}

TEST(StragglerReturn, NeverAboveTheOriginal) {
  EXPECT_THAT(limits(help(host({held(batch("a", 1, 0), HeldCause::preempted, 1.5)})).actions),
              ElementsAre("a=1.5"));
}

TEST(StragglerReturn, WithoutALimitBeforeItIsLiftedOnceItIsAsLargeAsTheNode) {
  EXPECT_THAT(limits(help(full_host({held(batch("a", 1, 0), HeldCause::preempted, std::nullopt)})).actions),
              ElementsAre("a=1.8"));
  EXPECT_THAT(limits(help(host({held(batch("a", 7.5, 0), HeldCause::preempted, std::nullopt)})).actions),
              ElementsAre("a=none"));
}

TEST(StragglerReturn, ALimitBeyondTheNodeIsBackAtOnceFromTheNodesSizeOn) {
  EXPECT_THAT(limits(help(host({held(batch("a", 7.5, 0), HeldCause::preempted, 100)})).actions),
              ElementsAre("a=100"));
}

TEST(StragglerReturn, MemoryInStepsOfItsOwn) {
  const auto proposal = help(full_host({memory_held(batch("a", 1, 0), kGiB, HeldCause::lent, 20 * kGiB)}));
  // A tenth of 64 GiB.
  ASSERT_EQ(proposal.findings.moves.size(), 1U);
  EXPECT_NEAR(static_cast<double>(proposal.findings.moves[0].amount.memory_bytes) / kGiB, 6.4, 1e-6);
}

TEST(StragglerReturn, MemoryAtOnceWhereItsSizeIsNotKnown) {
  model::Snapshot snapshot = host({memory_held(batch("a", 1, 0), kGiB, HeldCause::lent, 20 * kGiB)});
  snapshot.memory.total_bytes = 0;
  EXPECT_THAT(limits(help(snapshot).actions), ElementsAre("a=" + std::to_string(20 * kGiB)));
}

TEST(StragglerReturn, TheLastBitIsWrittenHoweverSmall) {
  model::Workload nearly = held(batch("a", 2.995, 0), HeldCause::preempted, 3);
  const model::Plan plan = decide(host({nearly}), {});
  EXPECT_THAT(limits(plan.actions), ElementsAre("a=3"));
}

TEST(StragglerReturn, AStepBackIsWrittenHoweverSmall) {
  PolicySettings settings;
  settings.safety.be_quota_rise = 0.004;
  model::Workload shrunk = held(batch("a", 4, 0), HeldCause::preempted, 8);
  EXPECT_THAT(limits(decide(host({shrunk}), settings).actions), ElementsAre("a=4.032"));
  shrunk.original->cpu_quota_cores.reset();
  EXPECT_THAT(limits(decide(host({shrunk}), settings).actions), ElementsAre("a=4.032"));
}

TEST(StragglerReturn, AboveTheNodesSizeALimitGoesBackInOneStep) {
  const model::Workload shrunk = held(batch("a", 85, 0), HeldCause::preempted, 100);
  EXPECT_THAT(limits(decide(host({shrunk}), {}).actions), ElementsAre("a=100"));
  const model::Workload nearly = held(batch("a", 7.5, 0), HeldCause::preempted, 100);
  EXPECT_THAT(limits(decide(host({nearly}), {}).actions), ElementsAre("a=100"));
}

TEST(StragglerReturn, WhatWasLentComesBackAtOnceToWhoIsThrottled) {
  model::Workload lender = held(batch("a", 1, 0.3), HeldCause::lent, 3);
  lender.cpu_throttled = 0.06;
  const auto proposal = help(host({lender, late_task("web", 3)}, 1000));
  EXPECT_THAT(limits(proposal.actions), ElementsAre("a=3", "web=4"));
  EXPECT_THAT(moves(proposal.findings), ElementsAre("recall a 2"));
  // It is not redundant meanwhile, however little it used.
  EXPECT_THAT(proposal.findings.redundant, IsEmpty());
  EXPECT_THAT(proposal.findings.moves[0].reason, HasSubstr("throttled for 6 % of the time"));
}

TEST(StragglerReturn, WhoWantedItBackIsNotRedundantForTheHold) {
  model::Workload bursty = batch("a", 3, 0.3);
  bursty.pressed_at = 971;
  auto proposal = help(host({bursty, batch("b", 2, 0.6), late_task("web", 3)}, 1000));
  // Without that it could lend more than b, and would be asked first.
  EXPECT_THAT(limits(proposal.actions), ElementsAre("b=1", "web=4"));
  EXPECT_FALSE(proposal.findings.redundant.contains("a"));
  EXPECT_EQ(proposal.findings.keeping.at("a"),
            "it needed its share back 29.0 s ago, and lends nothing for 30 s (restore_hold)");
  bursty.pressed_at = 970;
  proposal = help(host({bursty, batch("b", 2, 0.6), late_task("web", 3)}, 1000));
  EXPECT_THAT(limits(proposal.actions), ElementsAre("a=2", "web=4"));
  EXPECT_THAT(proposal.findings.keeping, IsEmpty());
}

TEST(StragglerReturn, WhoWantedItBackLendsNoMemoryAgain) {
  // The last minute shows nothing of the phase before, in which the job allocated.
  model::Workload phased = testing::with_memory(batch("a", std::nullopt, 0.1), 40 * kGiB, kGiB);
  model::Workload web = testing::with_memory(late_task("web", 1), 30 * kGiB, 29 * kGiB);
  EXPECT_THAT(moves(help(host({phased, web})).findings), ElementsAre(::testing::StartsWith("reclaim a")));
  phased.pressed_at = 100;
  const auto proposal = help(host({phased, web}));
  EXPECT_THAT(proposal.findings.keeping.at("a"), HasSubstr("900 s ago, and lends no memory again"));
  // It can still be preempted.
  EXPECT_THAT(moves(proposal.findings), ElementsAre(::testing::StartsWith("preempt a")));
}

TEST(StragglerReturn, OneThatUsesWhatItHoldsHasNothingToKeep) {
  model::Workload busy = batch("a", 3, 2.5);
  busy.pressed_at = 999;
  EXPECT_THAT(help(host({busy}, 1000)).findings.keeping, IsEmpty());
}

TEST(StragglerReturn, AClockThatWentBackKeepsNothing) {
  model::Workload bursty = batch("a", 3, 0.3);
  bursty.pressed_at = 2000;
  EXPECT_THAT(limits(help(host({bursty, batch("b", 2, 2), late_task("web", 3)}, 1000)).actions),
              ElementsAre("a=2", "web=4"));
}

TEST(StragglerReturn, WhoWantedItBackCanStillBePreempted) {
  model::Workload bursty = batch("a", 5, 0.3);
  bursty.pressed_at = 999;
  EXPECT_THAT(moves(help(host({bursty, late_task("web", 3)}, 1000)).findings), ElementsAre("preempt a 1"));
}

TEST(StragglerReturn, WhatNeverHadALimitIsWantedBackTooWhereTheNodeLimitsIt) {
  model::Workload wide = held(batch("a", 8, 7.9), HeldCause::lent, std::nullopt);
  EXPECT_THAT(moves(help(host({wide}, 1000)).findings), ElementsAre("recall a 0"));
}

TEST(StragglerReturn, OrToWhoUsesAllItHas) {
  EXPECT_THAT(limits(help(host({held(batch("a", 1, 0.95), HeldCause::lent, std::nullopt)}, 1000)).actions),
              ElementsAre("a=none"));
  EXPECT_THAT(help(full_host({held(batch("a", 1, 0.94), HeldCause::lent, 3)}, 1000)).actions, IsEmpty());
}

TEST(StragglerReturn, AndTheArbiterDampsIt) {
  model::Workload lender = held(batch("a", 1, 1), HeldCause::lent, std::nullopt);
  EXPECT_THAT(limits(decide(host({lender}, 1000), {}).actions), ElementsAre("a=1.8"));
}

TEST(StragglerReturn, APreemptedOneWaitsHoweverItPresses) {
  model::Workload shrunk = held(batch("a", 1, 1), HeldCause::preempted, 3);
  shrunk.cpu_throttled = 1;
  EXPECT_THAT(help(full_host({shrunk}, 1000)).actions, IsEmpty());
}

TEST(StragglerReturn, WhatGoesBackIsNotIdleInTheSameTick) {
  // Of eight cores two are idle, and the lender wants just these.
  model::Workload lender = held(batch("l", 1, 0.3), HeldCause::lent, 3);
  lender.cpu_throttled = 0.06;
  model::Workload web = late_task("a", 4);
  web.progress = {{700, 0.3}, {800, 0.4}, {900, 0.4}, {1000, 0.4}};  // asks for as much again
  const auto proposal = help(host({web, lender, testing::task("x", 1, 1300, {})}, 1000));
  EXPECT_EQ(proposal.findings.idle.cpu_cores, 0);
  EXPECT_THAT(limits(proposal.actions), ElementsAre("l=3"));
  ASSERT_EQ(proposal.findings.relocate.size(), 1U);
}

TEST(StragglerReturn, WhatATaskGivesBackIsIdleInTheSameTick) {
  model::Workload done = held(good_task("done", 4), HeldCause::extended, 3);
  done.straggled_at = 900;
  const auto proposal = help(host({done, late_task("web", 3), testing::task("x", 1, 1300, {})}, 1000));
  EXPECT_NEAR(proposal.findings.idle.cpu_cores, 1, 1e-9);
  EXPECT_THAT(limits(proposal.actions), ElementsAre("done=3", "web=4"));
}

TEST(StragglerReturn, WhoGetsItsShareBackIsNotTakenFromInTheSameTick) {
  model::Workload lender = held(batch("a", 5, 5), HeldCause::lent, 6);
  const auto proposal = help(host({lender, late_task("web", 3)}, 1000));
  EXPECT_THAT(moves(proposal.findings), ElementsAre("recall a 1"));
  EXPECT_EQ(proposal.findings.relocate.size(), 1U);
}

TEST(StragglerReturn, MemoryThatWasLentComesBackToo) {
  model::Workload lender = memory_held(batch("a", 1, 0), 10 * kGiB, HeldCause::lent, std::nullopt);
  testing::change_samples(lender, [](auto& samples) { samples.back().memory_bytes = 10 * kGiB - kGiB / 4; });
  EXPECT_THAT(limits(help(host({lender}, 1000)).actions), ElementsAre("a=none"));
}

TEST(StragglerReturn, WhoUsesNoMemoryWantsNoneBack) {
  model::Workload lender = memory_held(batch("a", 1, 0), 0, HeldCause::lent, std::nullopt);
  testing::change_samples(lender, [](auto& samples) { samples.back().memory_bytes = 0; });
  EXPECT_THAT(help(full_host({lender}, 1000)).actions, IsEmpty());
}

TEST(StragglerReturn, AGrownTaskKeepsItForTheHold) {
  model::Workload web = held(good_task("web", 4), HeldCause::extended, 3);
  web.straggled_at = 971;
  EXPECT_THAT(help(host({web}, 971)).actions, IsEmpty());
  web.straggled_at = 970;
  const auto proposal = help(host({web}, 970));
  EXPECT_THAT(limits(proposal.actions), ElementsAre("web=3"));
  EXPECT_THAT(moves(proposal.findings), ElementsAre("release web 1"));
  EXPECT_THAT(proposal.actions[0].reason, HasSubstr("has not straggled for 30 s"));
}

TEST(StragglerReturn, ADoneTaskGivesItBackAtOnce) {
  model::Workload web = held(good_task("web", 4), HeldCause::extended, std::nullopt);
  web.straggled_at = 999;
  web.progress.push_back({1000, 1});
  const auto proposal = help(host({web}, 999));
  EXPECT_THAT(limits(proposal.actions), ElementsAre("web=none"));
  EXPECT_THAT(proposal.actions[0].reason, HasSubstr("it is done"));
}

TEST(StragglerReturn, SoDoesOneThatIsNoTaskAnyMore) {
  model::Workload web = held(good_task("web", 4), HeldCause::extended, 3);
  web.straggled_at = 999;
  web.deadline.reset();
  EXPECT_THAT(limits(help(host({web}, 999)).actions), ElementsAre("web=3"));
  web.deadline = 1300;
  web.progress.clear();
  EXPECT_THAT(limits(help(host({web}, 999)).actions), ElementsAre("web=3"));
  web.deadline.reset();
  EXPECT_THAT(limits(help(host({web}, 999)).actions), ElementsAre("web=3"));
}

TEST(StragglerReturn, GrownMemoryGoesBackToo) {
  model::Workload web = memory_held(good_task("web", 4), 4 * kGiB, HeldCause::extended, 3 * kGiB);
  EXPECT_THAT(limits(help(host({web})).actions), ElementsAre("web=" + std::to_string(3 * kGiB)));
}

TEST(StragglerReturn, GrownVcpusGoBackToo) {
  model::Workload web = testing::pinned(good_task("web", 1), "0-3");
  web.cpu_quota_cores.reset();
  web.vcpus = 2;
  web.straggled_at = 999;
  model::Plan plan = decide(host({web}, 999), {});
  EXPECT_THAT(testing::pins(plan), IsEmpty());
  EXPECT_EQ(plan.findings.straggler->tasks.at("web").vcpus, 4);
  web.straggled_at = 900;
  plan = decide(host({web}), {});
  EXPECT_THAT(testing::pins(plan), ElementsAre("web=0-1"));
  EXPECT_THAT(moves(*plan.findings.straggler), ElementsAre("release web 2"));
}

TEST(StragglerReturn, APinTooLargeOfOneThatNeverWasATaskIsNoGrowth) {
  model::Workload web = testing::pinned(testing::latency_sensitive("web", 2), "0-3");
  const model::Plan plan = decide(host({web}, std::nullopt), {});
  EXPECT_THAT(testing::pins(plan), ElementsAre("web=0-1"));
  EXPECT_THAT(moves(*plan.findings.straggler), IsEmpty());
}

TEST(StragglerReturn, AStragglerKeepsWhatItWasGiven) {
  model::Workload web = held(late_task("web", 4), HeldCause::extended, 3, 50);
  web.straggled_at = 10;
  EXPECT_THAT(help(host({web}, 10)).actions, IsEmpty());
}

TEST(StragglerReturn, LimitsOfTheOtherClassGoBackAtOnce) {
  model::Workload was_batch = held(late_task("web", 1), HeldCause::preempted, 3);
  EXPECT_THAT(limits(help(host({was_batch}, 1000)).actions), ElementsAre("web=3"));
  model::Workload was_task = held(batch("b", 4, 3), HeldCause::extended, 2);
  const auto proposal = help(host({was_task}, 1000));
  EXPECT_THAT(limits(proposal.actions), ElementsAre("b=2"));
  EXPECT_THAT(moves(proposal.findings), ElementsAre("release b 2"));
}

TEST(StragglerReturn, WithoutAnOriginalNothingIsDone) {
  model::Workload unknown = held(batch("a", 1, 1), HeldCause::lent, 3);
  unknown.original.reset();
  EXPECT_THAT(help(host({unknown})).actions, IsEmpty());
}

TEST(StragglerReturn, AReporterThatDiedHoldsUpNobodysRestore) {
  model::Workload dead = late_task("dead", 2);
  dead.progress = {{597, 0.3}, {598, 0.4}, {599, 0.5}, {600, 0.6}};
  dead.straggled_at = 900;
  model::Snapshot snapshot = host({held(batch("b", 1, 0.1), HeldCause::lent, 1.5), dead});
  snapshot.straggler_seen_at = 900;
  EXPECT_THAT(moves(help(snapshot).findings), ElementsAre("restore b 0.5"));
}

TEST(StragglerReturn, WhatIsBeyondTheNodesSizeGoesBackWithoutAnAmount) {
  model::Workload b = held(batch("b", 12, 0.1), HeldCause::lent, 20);
  const auto proposal = help(host({b}));
  ASSERT_EQ(proposal.actions.size(), 1U);
  EXPECT_EQ(proposal.actions[0].reason,
            "no straggler for 30 s (restore_hold): its limit, which was lent, goes back to 20 cores");
}

}  // namespace berth::policies
