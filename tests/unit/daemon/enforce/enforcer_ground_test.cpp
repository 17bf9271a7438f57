// SPDX-License-Identifier: Apache-2.0
// The owner of a group writes to its control files, or keeps berth from writing there.
#include "daemon/enforce/enforcer.h"
#include "policies/victim.h"
#include "tests/unit/daemon/enforce/enforcer_fixture.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <unistd.h>

namespace berth::daemon {
namespace {

using config::ForeignWriter;
using model::CpuSet;

constexpr const char* kGround = "user.slice/u1000";
constexpr const char* kJob = "user.slice/u1000/app/job1.service";
constexpr const char* kNext = "user.slice/u1000/app/job9.service";
constexpr const char* kHonest = "batch/job2.service";

class EnforcerGroundTest : public test::EnforcerFixture {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root to give directories away";
    node.configure(R"(
[[workload]]
match = "web/*"
class = "latency-sensitive"
vcpus = 2
isolation = "vcpus"
[[workload]]
match = "**/job*.service"
class = "best-effort"
evictable = true
)");
    node.add_group("web/a");
    node.add_group(kGround);
    node.add_group("user.slice/u1000/app");
    node.add_group(kJob);
    node.add_group(kHonest);
    for (const char* group : {kGround, "user.slice/u1000/app"})
      node.put(group, "cgroup.events", "populated 0");
    // As systemd delegates: the directories below, and their files, but not the files of the outermost one.
    for (const char* path : {kGround, "user.slice/u1000/app", kJob})
      ASSERT_EQ(chown((node.tree() / path).c_str(), 1000, 1000), 0);
  }
  std::string pool() const { return node.cpus(kHonest); }
  const model::Workload& job() const {
    const auto* found = find_workload(observer->snapshot(), kJob);
    EXPECT_NE(found, nullptr);
    return *found;
  }
  void write_again_and_again() {
    start();
    tick();
    ASSERT_EQ(node.cpus(kJob), pool());
    ASSERT_NE(pool(), "");
    for (int i = 0; i < 6; ++i) {
      node.put(kJob, "cpuset.cpus", "0-7");
      for (unsigned wait = 0; wait < cgroup::Sampler::kSettingsPeriod + 2; ++wait) tick();
    }
  }
  // The user's work goes on in a group of another name.
  void replace_job_by(const std::string& path) {
    const std::string other = path == kJob ? kNext : kJob;
    node.put(other, "cgroup.events", "populated 0");
    node.remove_group(other);
    node.add_group(path);
    ASSERT_EQ(chown((node.tree() / path).c_str(), 1000, 1000), 0);
    const auto is_seen = [&] {
      return find_workload(observer->snapshot(), path) != nullptr &&
             find_workload(observer->snapshot(), other) == nullptr;
    };
    for (int i = 0; i < 50 && !is_seen(); ++i) {
      usleep(20'000);
      tick();
    }
    ASSERT_TRUE(is_seen());
    tick();
    tick();
  }
  void expect_confined_and_evictable() {
    tick();
    tick();
    EXPECT_TRUE(enforcer->left_alone().empty());
    EXPECT_EQ(node.cpus(kGround), pool());
    EXPECT_TRUE(policies::may_be_ended(job()));
    EXPECT_EQ(job().cpus.to_string(), pool());
    const auto before = node.tree_bytes();
    tick();
    EXPECT_TRUE(plan.actions.empty()) << "what holds is not planned again";
    EXPECT_EQ(node.tree_bytes(), before);
  }
};

TEST_F(EnforcerGroundTest, WhatAUserWritesIsWrittenAgainAndThenItsOutermostGroupIsConfined) {
  write_again_and_again();
  EXPECT_EQ(node.cpus(kJob), "0-7");
  expect_confined_and_evictable();
}

TEST_F(EnforcerGroundTest, AnAlarmAboutAUsersWriteIsNoExemptionEither) {
  on_foreign = ForeignWriter::alarm;
  write_again_and_again();
  expect_confined_and_evictable();
}

TEST_F(EnforcerGroundTest, WorkWithoutTheControllerIsConfinedAtTheUsersOutermostGroup) {
  std::filesystem::remove(node.tree() / kJob / "cpuset.cpus");
  node.put("user.slice/u1000/app", "cgroup.subtree_control", "cpu memory");
  start();
  tick();
  expect_confined_and_evictable();
}

TEST_F(EnforcerGroundTest, ANewGroupOfTheUserIsConfinedThereForTenMinutesAfterTheLastOffence) {
  write_again_and_again();
  replace_job_by(kNext);
  EXPECT_EQ(node.cpus(kGround), pool());
  EXPECT_EQ(node.cpus(kNext), "") << "it is not even tried";
  now += Enforcer::kRemembered_s;
  replace_job_by(kJob);
  EXPECT_EQ(node.cpus(kJob), pool());
}

TEST_F(EnforcerGroundTest, AGroupThatItsUserMakesAnewUnderTheSameNameIsConfinedThereToo) {
  write_again_and_again();
  node.restart_group(kJob);
  ASSERT_EQ(chown((node.tree() / kJob).c_str(), 1000, 1000), 0);
  for (int i = 0; i < 3; ++i) tick();
  EXPECT_EQ(node.cpus(kGround), pool());
  EXPECT_EQ(node.cpus(kJob), "");
}

TEST_F(EnforcerGroundTest, WritesInANewGroupAreCountedWithThoseInFormerOnes) {
  start();
  tick();
  const auto write_once = [this](const char* path) {
    ASSERT_EQ(node.cpus(path), pool());
    node.put(path, "cpuset.cpus", "0-7");
    for (unsigned wait = 0; wait < cgroup::Sampler::kSettingsPeriod + 2; ++wait) tick();
  };
  for (int i = 0; i < 3; ++i) {
    write_once(i % 2 == 0 ? kJob : kNext);
    replace_job_by(i % 2 == 0 ? kNext : kJob);
  }
  write_once(kNext);
  EXPECT_EQ(node.cpus(kNext), "0-7");
  tick();
  EXPECT_EQ(node.cpus(kGround), pool());
}

TEST_F(EnforcerGroundTest, TheOutermostGroupHasTheVcpusOfAllPinsInIt) {
  make_unwritable(kJob);
  const std::string other = "user.slice/u1000/app/job3.service";
  node.add_group(other);
  start();
  look();
  carry_out(plan_of({pin_of(kJob, {2, 3}), pin_of(other, {5})}));
  look();
  carry_out(plan_of({pin_of(kJob, {2, 3})}));
  EXPECT_EQ(node.cpus(other), "5");
  EXPECT_EQ(node.cpus(kGround), "2-3,5");
}

TEST_F(EnforcerGroundTest, TheOutermostGroupGetsItsVcpusBackWithTheLastWorkThatNeedsThat) {
  node.put(kGround, "cpuset.cpus", "0-6");
  make_unwritable(kJob);
  start();
  tick();
  tick();
  EXPECT_EQ(node.cpus(kGround), pool());
  node.put(kJob, "cgroup.events", "populated 0");
  node.remove_group(kJob);
  for (int i = 0; i < 50 && node.cpus(kGround) != "0-6"; ++i) {
    usleep(20'000);
    tick();
  }
  EXPECT_EQ(node.cpus(kGround), "0-6");
  EXPECT_EQ(actuators->journal().size(), 2U) << "the pins of the service and of the honest work";
}

TEST_F(EnforcerGroundTest, AnOutermostGroupWhoseFilesAreTheUsersIsNotWritten) {
  make_unwritable(kJob);
  ASSERT_EQ(chown((node.tree() / kGround / "cpuset.cpus").c_str(), 1000, 1000), 0);
  start();
  tick();
  tick();
  tick();
  EXPECT_EQ(node.cpus(kGround), "");
  EXPECT_TRUE(policies::may_be_ended(job())) << "it still can be ended";
}

TEST_F(EnforcerGroundTest, AUsersOwnCpulistKeepsItsWorkOffNoBound) {
  node.put(kJob, "cpuset.cpus", "0-1");
  start();
  tick();
  ASSERT_FALSE(pool().empty());
  ASSERT_EQ(pool().find('0'), std::string::npos) << "the service has vCPU 0";
  EXPECT_EQ(node.cpus(kJob), pool());
}

TEST_F(EnforcerGroundTest, LimitsThatAUserKeepsFromBeingWrittenDoNotSpareItsWork) {
  make_unwritable(kJob, "cpu.max");
  make_unwritable(kJob, "memory.high");
  start();
  look();
  carry_out(
      plan_of({{model::Set{kJob, model::CpuQuota{0.5}}, "straggler", "d-000000000003", "because"},
               {model::Set{kJob, model::MemoryHigh{1 << 20}}, "straggler", "d-000000000004", "because"}}));
  look();
  EXPECT_TRUE(job().fixed.cpu && job().fixed.memory);
  EXPECT_TRUE(policies::may_be_ended(job()));
}

}  // namespace
}  // namespace berth::daemon
