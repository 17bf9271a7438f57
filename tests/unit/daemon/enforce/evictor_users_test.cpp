// SPDX-License-Identifier: Apache-2.0
// Groups that a user owns, who wants no eviction.
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

TEST_F(EvictorTest, TheOwnerOfAGroupCannotMakeItsRunLookLikeAnother) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives a directory away";
  name_invocation("11111111111111111111111111111111");
  ASSERT_EQ(chown((tree.root() / kId).c_str(), 65534, 65534), 0);
  Child first([] { std::signal(SIGTERM, SIG_IGN); });
  run_in_it({&first});
  EXPECT_EQ(begin(), (Told{"terminate SIGTERM applied"}));
  name_invocation("22222222222222222222222222222222");
  Child second;
  run_in_it({&second});
  EXPECT_EQ(after(0.2), Told());
  EXPECT_EQ(after(30), (Told{"kill cgroup.kill applied"}));
}

// Of a user whose outermost group is "batch".
class EvictorMovesTest : public EvictorTest {
 protected:
  EvictorMovesTest() {
    target.ground.user = 1000;
    target.confined_at = "batch";
  }
  Evictor evictor{
      {.proc_root = tree.proc(), .units = [this] { return &units; }, .monotonic = [this] { return now; }}};
  std::vector<std::string> begin() {
    const auto begun = evictor.begin(target, workload, action_of(), now);
    return begun ? told(*begun) : std::vector<std::string>{begun.error().message()};
  }
  std::vector<std::string> after(double seconds) {
    now += seconds;
    return told(evictor.advance(now));
  }
};

TEST_F(EvictorMovesTest, ProcessesThatAUserMovesOutOfAVictimEndWithIt) {
  Child early([] { std::signal(SIGTERM, SIG_IGN); });
  Child late([] { std::signal(SIGTERM, SIG_IGN); });
  run_in_it({&early, &late});
  EXPECT_EQ(begin(), (Told{"terminate SIGTERM applied"}));
  run_in_it({&late});
  EXPECT_EQ(after(0.2), Told());
  EXPECT_EQ(early.died_of(), 0);
  for (const Child* child : {&early, &late}) runs_in(*child, "batch/y");
  run_in_it({});
  empty_group();
  EXPECT_EQ(after(0.2), (Told{"kill SIGKILL applied", "end applied"}));
  EXPECT_TRUE(dies_of(early, SIGKILL));
  EXPECT_TRUE(dies_of(late, SIGKILL));
}

TEST_F(EvictorMovesTest, ProcessesThatRootMovedElsewhereAndThoseThatAreAboutToEndAreLeft) {
  Child by_root([] { std::signal(SIGTERM, SIG_IGN); });
  Child exiting([] { std::signal(SIGTERM, SIG_IGN); });
  Child of_removed([] { std::signal(SIGTERM, SIG_IGN); });
  run_in_it({&by_root, &exiting, &of_removed});
  EXPECT_EQ(begin(), (Told{"terminate SIGTERM applied"}));
  runs_in(by_root, "system.slice/web.service");
  runs_in(exiting, kId);
  runs_in(of_removed, std::string(kId) + " (deleted)");
  run_in_it({});
  empty_group();
  EXPECT_EQ(after(0.2), (Told{"end applied"}));
  for (Child* child : {&by_root, &exiting, &of_removed}) EXPECT_EQ(child->died_of(), 0);
}

TEST_F(EvictorTest, ProcessesThatRootMovesOutOfItsOwnGroupAreLeft) {
  Child child([] { std::signal(SIGTERM, SIG_IGN); });
  run_in_it({&child});
  EXPECT_EQ(begin(), (Told{"terminate SIGTERM applied"}));
  run_in_it({});
  empty_group();
  EXPECT_EQ(after(0.2), (Told{"end applied"}));
  EXPECT_EQ(child.died_of(), 0);
}

TEST_F(EvictorTest, ANewRunInARootsGroupIsLeftForALimitedTime) {
  name_invocation("11111111111111111111111111111111");
  Child first;
  run_in_it({&first});
  EXPECT_EQ(begin(), (Told{"terminate SIGTERM applied"}));
  EXPECT_TRUE(dies_of(first, SIGTERM));
  name_invocation("22222222222222222222222222222222");
  Child second;
  run_in_it({&second});
  EXPECT_EQ(after(0.2), (Told{"end left"}));
  now += Evictor::kComesBack_s - 1;
  evictor.forget_departed({{kId, target}});
  const auto* mark = evictor.marks().of(kId, target.cgroup->id());
  ASSERT_NE(mark, nullptr);
  EXPECT_EQ(mark->evicted_at, std::nullopt);
  now += 2;
  evictor.forget_departed({{kId, target}});
  EXPECT_EQ(evictor.marks().of(kId, target.cgroup->id()), nullptr);
  EXPECT_EQ(second.died_of(), 0);
}

TEST_F(EvictorTest, ANameThatAUserGaveSparesNobody) {
  target.ground = {.user = 1000};
  for (const char* id : {"user/batch.slice", "user/berthd.service"}) {
    EXPECT_FALSE(is_never_evicted(id, target.ground)) << id;
    EXPECT_TRUE(is_never_evicted(id, {})) << id;
  }
  Child child;
  run_in_it({&child});
  workload.id = "user/batch.slice";
  EXPECT_EQ(evictor.refusal(target, workload), std::nullopt);
  tree.write(kId, "cgroup.procs", std::to_string(getpid()) + "\n");
  EXPECT_NE(evictor.refusal(target, workload), std::nullopt) << "berthd itself is known by its process";
}

// The list of its processes cannot be read, and neither cgroup.kill nor its memory is there.
TEST_F(EvictorTest, AThreadedGroupOfAUserEnds) {
  target.ground = {.user = 1000};
  Child child([] { std::signal(SIGTERM, SIG_IGN); });
  for (const char* file : {"cgroup.procs", "cgroup.kill"}) {
    std::filesystem::remove(tree.root() / kId / file);
    std::filesystem::create_directory(tree.root() / kId / file);
  }
  tree.write(kId, "cgroup.threads", std::to_string(child.pid()) + "\n");
  tree.write(kId, "cgroup.type", "threaded\n");
  EXPECT_EQ(begin(), (Told{"terminate SIGTERM applied"}));
  EXPECT_EQ(child.died_of(), 0);
  EXPECT_EQ(after(30), (Told{"kill cgroup.kill applied"}));
  EXPECT_TRUE(dies_of(child, SIGKILL));
}

TEST_F(EvictorTest, WhatEscapesFromAThreadedGroupEndsWithTheUsersGroupAboveIt) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives a directory away";
  target.ground = {.user = 1000};
  tree.write("batch", "cgroup.kill", "");
  tree.write("batch", "cgroup.type", "domain threaded\n");
  tree.write(kId, "cgroup.type", "threaded\n");
  ASSERT_EQ(chown((tree.root() / "batch").c_str(), 65534, 65534), 0);
  Child child([] { std::signal(SIGTERM, SIG_IGN); });
  run_in_it({&child});
  begin(EvictionStep::kill);
  (void)after(1);
  EXPECT_EQ(tree.read("batch", "cgroup.kill"), "");
  (void)after(3);
  EXPECT_EQ(tree.read("batch", "cgroup.kill"), "1");
}

TEST_F(EvictorTest, AUsersGroupThatDoesNotEndIsSparedForALimitedTime) {
  target.ground = {.user = 1000};
  const Evictor::Found found{{kId, target}};
  Child child([] { std::signal(SIGTERM, SIG_IGN); });
  run_in_it({&child});
  begin(EvictionStep::kill);
  for (int i = 0; i < 100 && evictor.due_s(); ++i) (void)after(1);
  evictor.forget_departed(found);
  ASSERT_NE(evictor.marks().of(kId, target.cgroup->id()), nullptr);
  now += Evictor::kComesBack_s + 1;
  evictor.forget_departed(found);
  EXPECT_EQ(evictor.marks().of(kId, target.cgroup->id()), nullptr);
}

}  // namespace
}  // namespace berth::daemon
