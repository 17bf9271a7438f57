// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/daemon/enforce/evictor_fixture.h"

#include <csignal>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace berth::daemon {
namespace {

using cgroup::test::Child;
using model::EvictionStep;
using test::EvictorTest;

TEST_F(EvictorTest, WhoHeedsSigtermIsNotKilled) {
  Child child;
  run_in_it({&child});
  EXPECT_EQ(begin(), (Told{"terminate SIGTERM applied"}));
  EXPECT_TRUE(dies_of(child, SIGTERM));
  EXPECT_EQ(evictor.marks().of(kId, target.cgroup->id())->evicted_at, 1000);
  empty_group();
  EXPECT_EQ(after(0.2), (Told{"end applied"}));
  EXPECT_EQ(evictor.marks().of(kId, target.cgroup->id()), nullptr);
  EXPECT_EQ(evictor.marks().ended_at, now);
  EXPECT_FALSE(was_killed());
  EXPECT_EQ(evictor.due_s(), std::nullopt);
  EXPECT_EQ(evictor.counts().ended, 1U);
  ASSERT_EQ(evictor.take_durations().size(), 1U) << "from the first step to the end";
  EXPECT_TRUE(evictor.take_durations().empty());
}

TEST_F(EvictorTest, TellsHowLongAnEvictionTook) {
  Child child;
  run_in_it({&child});
  ASSERT_EQ(begin(), (Told{"terminate SIGTERM applied"}));
  EXPECT_TRUE(dies_of(child, SIGTERM));
  now += 7;
  empty_group();
  EXPECT_EQ(after(0.5), (Told{"end applied"}));
  EXPECT_EQ(evictor.take_durations(), (std::vector<double>{7.5}));
}

TEST_F(EvictorTest, WhoDoesNotIsKilledByItsGroupOnceItsGraceIsOver) {
  Child child([] { std::signal(SIGTERM, SIG_IGN); });
  run_in_it({&child});
  EXPECT_EQ(begin(EvictionStep::terminate, 30), (Told{"terminate SIGTERM applied"}));
  EXPECT_EQ(after(29.9), Told{});
  EXPECT_FALSE(was_killed());
  EXPECT_EQ(after(0.1), (Told{"kill cgroup.kill applied"}));
  EXPECT_TRUE(was_killed());
  EXPECT_EQ(after(1), Told{}) << "killed again, said once";
  child.kill_and_reap();
  empty_group();
  EXPECT_EQ(after(0.2), (Told{"end applied"}));
}

TEST_F(EvictorTest, AUnitIsStoppedThroughSystemdAndNotSignalled) {
  Child child;
  run_in_it({&child});
  target.systemd_unit = "x.service";
  EXPECT_EQ(begin(), (Told{"terminate StopUnit applied"}));
  EXPECT_EQ(units.asked, (Told{"x.service"}));
  EXPECT_EQ(child.died_of(), 0);
  EXPECT_EQ(after(30), (Told{"kill cgroup.kill applied"})) << "its stop job keeps it from coming back";
}

TEST_F(EvictorTest, AUnitThatSystemdDoesNotStopIsLeftAndSpared) {
  Child child;
  run_in_it({&child});
  target.systemd_unit = "x.service";
  units.answer = model::fail(model::ErrorKind::refused, "it is bound to others");
  EXPECT_EQ(begin(), (Told{"terminate StopUnit failed"}));
  EXPECT_EQ(after(60), Told{});
  EXPECT_FALSE(was_killed());
  EXPECT_EQ(child.died_of(), 0);
  const auto* mark = evictor.marks().of(kId, target.cgroup->id());
  ASSERT_NE(mark, nullptr);
  EXPECT_EQ(mark->evicted_at, std::nullopt);
  evictor.retry_failed();
  EXPECT_EQ(evictor.marks().of(kId, target.cgroup->id()), nullptr);
}

TEST_F(EvictorTest, AUnitIsLeftWhereItsSystemdCannotBeAsked) {
  Child child;
  run_in_it({&child});
  target.systemd_unit = "x.service";
  Evictor alone{{.proc_root = "/proc",
                 .units = [] { return nullptr; },
                 .systemd_runs = true,
                 .monotonic = [this] { return now; }}};
  const auto begun = alone.begin(target, workload, action_of(), now);
  ASSERT_TRUE(begun);
  EXPECT_EQ(begun->front().result, "failed");
  EXPECT_EQ(child.died_of(), 0);
  EXPECT_FALSE(was_killed());
}

TEST_F(EvictorTest, AUnitThatSystemdHasForgottenIsSignalled) {
  Child child;
  run_in_it({&child});
  target.systemd_unit = "x.service";
  units.answer = model::fail(model::ErrorKind::gone, "no such unit");
  EXPECT_EQ(begin(), (Told{"terminate SIGTERM applied"}));
  EXPECT_TRUE(dies_of(child, SIGTERM));
}

TEST_F(EvictorTest, ASilentSystemdIsAskedAgainAndThenLeft) {
  Child child;
  run_in_it({&child});
  target.systemd_unit = "x.service";
  units.answer = model::fail(model::ErrorKind::transient, "no answer");
  EXPECT_EQ(begin(), Told{});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(after(1), Told{});
  EXPECT_EQ(after(1), (Told{"terminate StopUnit failed"}));
  EXPECT_EQ(units.asked.size(), 5U);
  EXPECT_FALSE(was_killed());
}

TEST_F(EvictorTest, OneThatAnswersLaterIsStopped) {
  Child child;
  run_in_it({&child});
  target.systemd_unit = "x.service";
  units.answer = model::fail(model::ErrorKind::transient, "no answer");
  begin();
  units.answer = {};
  EXPECT_EQ(after(1), (Told{"terminate StopUnit applied"}));
  EXPECT_EQ(after(29), Told{}) << "its grace begins with the answer";
}

TEST_F(EvictorTest, OneThatSystemdStoppedWithoutAnAnswerInTimeIsTold) {
  Child child;
  run_in_it({&child});
  target.systemd_unit = "x.service";
  units.answer = model::fail(model::ErrorKind::transient, "no answer");
  EXPECT_EQ(begin(), Told{});
  empty_group();
  EXPECT_EQ(after(0.2), (Told{"terminate StopUnit applied", "end applied"}));
}

TEST_F(EvictorTest, AGroupThatTookOverThePathIsNotHit) {
  Child child;
  run_in_it({&child});
  begin();
  std::filesystem::rename(tree.root() / kId, tree.root() / "batch/old");
  Child successor;
  make_group();
  run_in_it({&successor});
  EXPECT_EQ(after(30), (Told{"end applied"}));
  EXPECT_EQ(after(60), Told{});
  EXPECT_FALSE(was_killed());
  EXPECT_EQ(successor.died_of(), 0);
}

TEST_F(EvictorTest, WhatItForksBelongsToIt) {
  Child parent([] { std::signal(SIGTERM, SIG_IGN); });
  run_in_it({&parent});
  begin();
  Child forked;
  run_in_it({&parent, &forked});
  EXPECT_EQ(after(0.2), Told{});
  parent.kill_and_reap();
  run_in_it({&forked});
  EXPECT_EQ(after(0.2), Told{});
  EXPECT_EQ(after(30), (Told{"kill cgroup.kill applied"}));
}

TEST_F(EvictorTest, AVictimThatForksOnSigtermIsKilledWithAllThatItStarted) {
  Child first;
  Child second;
  Child third;
  run_in_it({&first});
  EXPECT_EQ(begin(), (Told{"terminate SIGTERM applied"}));
  EXPECT_TRUE(dies_of(first, SIGTERM));
  run_in_it({&second});  // between two looks
  EXPECT_EQ(after(0.2), Told());
  second.kill_and_reap();
  run_in_it({&third});
  EXPECT_EQ(after(0.2), Told());
  EXPECT_EQ(after(30), (Told{"kill cgroup.kill applied"}));
  EXPECT_TRUE(was_killed());
}

TEST_F(EvictorTest, AVictimThatComesBackIsSparedSoThatTheNextOneGoes) {
  evict_it();
  evictor.forget_departed({{kId, target}});
  EXPECT_EQ(evictor.marks().of(kId, target.cgroup->id()), nullptr) << "nothing runs there";
  tree.remove(kId);
  make_group();
  Child again;
  run_in_it({&again});
  now += 5;
  evictor.forget_departed({{kId, target}});
  const auto* mark = evictor.marks().of(kId, target.cgroup->id());
  ASSERT_NE(mark, nullptr);
  EXPECT_EQ(mark->evicted_at, std::nullopt);
}

TEST_F(EvictorTest, ALaterRunOfAVictimIsLikeAnyOther) {
  evict_it();
  tree.remove(kId);
  make_group();
  Child again;
  run_in_it({&again});
  now += Evictor::kComesBack_s + 1;
  evictor.forget_departed({{kId, target}});
  EXPECT_EQ(evictor.marks().of(kId, target.cgroup->id()), nullptr);
}

TEST_F(EvictorTest, LatencySensitiveWorkSlicesAndBerthItselfAreRefused) {
  Child child;
  run_in_it({&child});
  workload.workload_class = model::WorkloadClass::latency_sensitive;
  EXPECT_NE(begin().front().find("latency-sensitive"), std::string::npos);
  workload.workload_class = model::WorkloadClass::best_effort;
  for (const char* id : {"batch.slice", "berth.slice/berthd.service", "system.slice/berthd.service"}) {
    workload.id = id;
    EXPECT_NE(begin().front().find("is not evicted"), std::string::npos) << id;
  }
  workload.id = kId;
  workload.spared = "its cgroup is shared by Worker (pid 5)";
  EXPECT_NE(begin().front().find("shared by Worker"), std::string::npos);
  workload.spared.reset();
  tree.write(kId, "cgroup.procs", std::to_string(getpid()) + "\n");
  EXPECT_NE(begin().front().find("berthd itself"), std::string::npos);
  tree.write(kId, "cgroup.procs", "1\n" + std::to_string(child.pid()) + "\n");
  EXPECT_NE(begin().front().find("process 1"), std::string::npos);
  EXPECT_EQ(child.died_of(), 0);
  EXPECT_FALSE(was_killed());
}

TEST_F(EvictorTest, NobodyIsEvictedTwiceAtOnce) {
  Child child([] { std::signal(SIGTERM, SIG_IGN); });
  run_in_it({&child});
  begin();
  EXPECT_NE(begin().front().find("already"), std::string::npos);
}

TEST_F(EvictorTest, AnEmptyGroupIsGone) {
  empty_group();
  const auto begun = evictor.begin(target, workload, action_of(), now);
  ASSERT_FALSE(begun);
  EXPECT_EQ(begun.error().kind(), model::ErrorKind::gone);
}

TEST_F(EvictorTest, WhatIsAbandonedGoesNoFurther) {
  Child child([] { std::signal(SIGTERM, SIG_IGN); });
  run_in_it({&child});
  begin();
  EXPECT_EQ(told(evictor.abandon(now, "berthd stops")), (Told{"kill left"}));
  EXPECT_EQ(after(100), Told{});
  EXPECT_FALSE(was_killed());
  EXPECT_TRUE(evictor.marks().by_workload.empty());
}

TEST_F(EvictorTest, WhoIsLetGoGetsNoFurtherStep) {
  Child child([] { std::signal(SIGTERM, SIG_IGN); });
  run_in_it({&child});
  begin();
  EXPECT_EQ(told(evictor.let_go(kId, now, "it is latency-sensitive now")), (Told{"kill left"}));
  EXPECT_EQ(after(100), Told{});
  EXPECT_FALSE(was_killed());
  EXPECT_EQ(evictor.marks().of(kId, target.cgroup->id()), nullptr);
  EXPECT_TRUE(evictor.let_go(kId, now, "again").empty());
}

TEST_F(EvictorTest, OneThatEvenKillingDoesNotEndIsGivenUp) {
  Child child([] { std::signal(SIGTERM, SIG_IGN); });
  run_in_it({&child});
  begin(EvictionStep::kill);
  EXPECT_TRUE(was_killed());
  Told all;
  for (int i = 0; i < 100; ++i) {
    for (const auto& line : after(1)) all.push_back(line);
  }
  EXPECT_EQ(all, (Told{"kill cgroup.kill failed"}));
  EXPECT_EQ(evictor.due_s(), std::nullopt);
}

TEST_F(EvictorTest, IsDueSoonWhileAnybodyEndsAndInTimeForItsNextStep) {
  Child child([] { std::signal(SIGTERM, SIG_IGN); });
  run_in_it({&child});
  begin(EvictionStep::terminate, 1);
  EXPECT_DOUBLE_EQ(*evictor.due_s(), 0.2);
  now += 0.9;
  EXPECT_NEAR(*evictor.due_s(), 0.1, 1e-9);
  now += 5;
  EXPECT_EQ(*evictor.due_s(), 0);
}

TEST_F(EvictorTest, MarksOfRunsThatAreOverAreForgotten) {
  evictor.spare(target);
  std::map<std::string, cgroup::FoundWorkload> found{{kId, target}};
  evictor.forget_departed(found);
  EXPECT_NE(evictor.marks().of(kId, target.cgroup->id()), nullptr);
  evictor.forget_departed({});
  EXPECT_TRUE(evictor.marks().by_workload.empty());
}

}  // namespace
}  // namespace berth::daemon
