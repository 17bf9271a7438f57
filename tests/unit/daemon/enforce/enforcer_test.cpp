// SPDX-License-Identifier: Apache-2.0
#include "daemon/enforce/enforcer.h"

#include "os/clock.h"
#include "tests/unit/daemon/enforce/enforcer_fixture.h"

#include <filesystem>

#include <gtest/gtest.h>

namespace berth::daemon {
namespace {

using config::ForeignWriter;
using model::CpuSet;

using EnforcerTest = test::EnforcerFixture;
using Results = std::vector<std::string>;

TEST_F(EnforcerTest, PinsExactlyAsThePlanSays) {
  node.add_group("web/a");
  node.add_group("web/b");
  node.add_group("batch/x");
  start();
  tick();
  ASSERT_FALSE(plan.actions.empty());
  for (const auto& action : plan.actions) {
    const auto& cpus = *action.sets<model::CpuSet>();
    const std::string& id = *action.workload();
    EXPECT_EQ(node.cpus(id), cpus.to_string()) << id;
    EXPECT_EQ(enforcer->pins().at(id).cpus(), cpus);
  }
  EXPECT_EQ(enforcer->pins().size(), 3U);
  EXPECT_EQ(entries.size(), plan.actions.size());
  for (const auto& entry : entries) EXPECT_EQ(entry.result, "applied");
  EXPECT_EQ(actuators->journal().size(), 3U);

  tick();
  EXPECT_TRUE(plan.actions.empty()) << "what holds is not planned again";
}

TEST_F(EnforcerTest, EntriesTellOldAndNewValueAndDecision) {
  node.add_group("web/a", "0-5");
  start();
  look();
  carry_out(plan_of({pin_of("web/a", {2, 3})}));
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].old_value, "0-5");
  EXPECT_EQ(entries[0].new_value, "2-3");
  EXPECT_EQ(entries[0].attribute, "cpuset.cpus");
  EXPECT_EQ(entries[0].decision, "d-000000000001");
  EXPECT_EQ(entries[0].reason, "because");
  EXPECT_EQ(entries[0].mode, "enforce");
  EXPECT_EQ(enforcer->pins().at("web/a").original_cpus(), CpuSet::range(0, 5));
  EXPECT_DOUBLE_EQ(enforcer->pins().at("web/a").changed_at, now);
}

TEST_F(EnforcerTest, UnpinPutsTheOriginalBack) {
  node.add_group("web/a", "0-5");
  start();
  look();
  carry_out(plan_of({pin_of("web/a", {2, 3})}));
  look();
  carry_out(plan_of({unpin_of("web/a")}));
  EXPECT_EQ(node.cpus("web/a"), "0-5");
  EXPECT_TRUE(enforcer->pins().empty());
  EXPECT_EQ(actuators->journal().size(), 0U);
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].old_value, "2-3");
  EXPECT_EQ(entries[0].new_value, "0-5");
}

TEST_F(EnforcerTest, UnpinOfWhatBerthNeverWroteWritesNothing) {
  node.add_group("web/a", "2-3");
  start();
  look();
  carry_out(plan_of({pin_of("web/a", {2, 3})}));
  EXPECT_EQ(enforcer->pins().count("web/a"), 1U);
  EXPECT_EQ(actuators->journal().size(), 0U);
  const auto before = node.tree_bytes();
  look();
  carry_out(plan_of({unpin_of("web/a")}));
  EXPECT_EQ(results(), (Results{"unpin web/a applied"}));
  EXPECT_EQ(node.tree_bytes(), before);
  EXPECT_TRUE(enforcer->pins().empty());
}

TEST_F(EnforcerTest, GivingBackStopsWithTheTicksBudget) {
  node.add_group("web/a", "0-5");
  start();
  look();
  carry_out(plan_of({pin_of("web/a", {2, 3})}));
  look();
  EXPECT_TRUE(enforcer
                  ->apply(plan_of({unpin_of("web/a")}), observer->snapshot(), observer->found(),
                          observer->groups(), observer->others(), std::chrono::milliseconds(0))
                  .empty());
  EXPECT_EQ(node.cpus("web/a"), "2-3");
  EXPECT_EQ(enforcer->pins().count("web/a"), 1U) << "the next plan has it again";
}

TEST_F(EnforcerTest, WorkloadThatVanishesBeforeTheWriteIsGone) {
  node.add_group("web/a");
  node.add_group("web/b");
  start();
  look();
  node.remove_group("web/a");
  carry_out(plan_of({pin_of("web/a", {0, 1}), pin_of("web/b", {2, 3})}));
  EXPECT_EQ(results(), (Results{"pin web/a gone", "pin web/b applied"}));
  EXPECT_TRUE(enforcer->left_alone().empty());
}

TEST_F(EnforcerTest, WorkloadUnknownToDiscoveryIsGone) {
  start();
  look();
  carry_out(plan_of({pin_of("web/never", {0, 1})}));
  EXPECT_EQ(results(), (Results{"pin web/never gone"}));
}

TEST_F(EnforcerTest, AfterAPermanentErrorTheWorkloadIsLeftAloneAndThatIsSaidOnce) {
  node.add_group("web/a");
  start();
  look();
  make_unwritable("web/a");
  carry_out(plan_of({pin_of("web/a", {0, 1})}));
  EXPECT_EQ(results(), (Results{"pin web/a failed"}));
  ASSERT_EQ(enforcer->left_alone().count("web/a"), 1U);
  EXPECT_EQ(enforcer->left_alone().at("web/a").cause, LeftAlone::Cause::error);
  EXPECT_NE(enforcer->left_alone().at("web/a").reason.find("cpuset.cpus"), std::string::npos);

  look();
  EXPECT_EQ(observer->snapshot().workloads.at(0).vcpus, std::nullopt);
  carry_out(plan_of({pin_of("web/a", {0, 1})}));
  EXPECT_TRUE(entries.empty()) << "said once";

  std::filesystem::remove(node.tree() / "web/a/cpuset.cpus");
  node.put("web/a", "cpuset.cpus", "");
  enforcer->retry_failed();
  look();
  carry_out(plan_of({pin_of("web/a", {0, 1})}));
  EXPECT_EQ(results(), (Results{"pin web/a applied"}));
}

TEST_F(EnforcerTest, MissingControllerIsPermanentAndNamed) {
  node.add_group("web/a");
  std::filesystem::remove(node.tree() / "web/a/cpuset.cpus");
  node.put("web", "cgroup.subtree_control", "cpu memory");
  start();
  look();
  carry_out(plan_of({pin_of("web/a", {0, 1})}));
  ASSERT_EQ(enforcer->left_alone().count("web/a"), 1U);
  EXPECT_NE(enforcer->left_alone().at("web/a").reason.find("cpuset controller"), std::string::npos)
      << enforcer->left_alone().at("web/a").reason;
}

TEST_F(EnforcerTest, VcpusThatTheParentDoesNotGrantAreAnError) {
  node.add_group("web/a");
  node.put("web", "cpuset.cpus", "0-3");
  node.put("web/a", "cpuset.cpus.effective", "0-3");
  start();
  look();
  carry_out(plan_of({pin_of("web/a", {3, 4})}));
  EXPECT_EQ(results(), (Results{"pin web/a failed"}));
  EXPECT_NE(entries[0].error->find("/web is limited to 0-3"), std::string::npos) << *entries[0].error;
  EXPECT_EQ(node.cpus("web/a"), "") << "nothing is left half done";
  EXPECT_EQ(actuators->journal().size(), 0U);
}

TEST_F(EnforcerTest, NoVcpusAreHandedOutThatAnotherStillHolds) {
  node.add_group("web/a");
  node.add_group("web/b");
  start();
  look();
  carry_out(plan_of({pin_of("web/a", {0, 1})}));
  look();
  make_unwritable("web/a");
  carry_out(plan_of({pin_of("web/a", {2, 3}), pin_of("web/b", {0, 1})}));
  ASSERT_EQ(enforcer->pins().count("web/b"), 0U);
  EXPECT_EQ(node.cpus("web/b"), "");
  EXPECT_NE(entries.back().error->find("still held"), std::string::npos) << *entries.back().error;
}

TEST_F(EnforcerTest, AServiceThatCannotLeaveSharedVcpusKeepsNobodyFromThem) {
  for (const char* id : {"web/a", "web/b", "batch/a"}) node.add_group(id);
  standing.sharing = {"web/a", "web/b"};
  start();
  look();
  carry_out(plan_of({pin_of("web/a", {0, 1})}));
  look();
  make_unwritable("web/a");
  carry_out(plan_of({unpin_of("web/a"), pin_of("web/b", {0, 1}), pin_of("batch/a", {1})}));
  EXPECT_EQ(node.cpus("web/b"), "0-1");
  EXPECT_EQ(node.cpus("batch/a"), "1");
}

TEST_F(EnforcerTest, WhatAnEarlierDaemonCouldNotRestoreIsPutBack) {
  node.add_group("web/a", "0-5");
  start();
  look();
  ASSERT_TRUE(actuators->writer().set(observer->found().at("web/a"), CpuSet{2, 3}));
  enforcer->take_over(actuators->journal().records());
  look();
  carry_out(plan_of({}));
  EXPECT_EQ(node.cpus("web/a"), "0-5");
  EXPECT_EQ(actuators->journal().size(), 0U);
}

TEST_F(EnforcerTest, AChainOfMovesInOneTick) {
  for (const char* id : {"web/a", "web/b", "web/c"}) node.add_group(id);
  start();
  look();
  carry_out(plan_of({pin_of("web/a", {0, 1}), pin_of("web/b", {2, 3}), pin_of("web/c", {4, 5})}));
  look();
  carry_out(plan_of({pin_of("web/a", {6, 7}), pin_of("web/b", {0, 1}), pin_of("web/c", {2, 3})}));
  EXPECT_EQ(node.cpus("web/a"), "6-7");
  EXPECT_EQ(node.cpus("web/b"), "0-1");
  EXPECT_EQ(node.cpus("web/c"), "2-3");
}

TEST_F(EnforcerTest, WithoutTimeLeftNothingIsBegun) {
  node.add_group("web/a");
  start();
  look();
  const auto before = node.tree_bytes();
  entries = enforcer->apply(plan_of({pin_of("web/a", {0, 1})}), observer->snapshot(), observer->found(),
                            observer->groups(), observer->others(), std::chrono::milliseconds(0));
  EXPECT_TRUE(entries.empty());
  EXPECT_EQ(node.tree_bytes(), before);
}

TEST_F(EnforcerTest, EvictionsAreNotItsWork) {
  node.add_group("batch/x");
  start();
  look();
  carry_out(plan_of({{model::Evict{"batch/x", model::EvictionStep::kill, 1}, "eviction", "d-1", "why"}}));
  EXPECT_TRUE(entries.empty());
}

// A foreign writer, for each setting.

TEST_F(EnforcerTest, YieldLeavesTheForeignValueAndTheWorkloadAlone) {
  node.add_group("web/a");
  start();
  tick();
  node.put("web/a", "cpuset.cpus", "7");
  several_ticks();
  EXPECT_EQ(node.cpus("web/a"), "7");
  EXPECT_EQ(results(), (Results{"foreign web/a left"}));
  EXPECT_EQ(enforcer->left_alone().at("web/a").cause, LeftAlone::Cause::foreign_writer);
  EXPECT_EQ(actuators->journal().size(), 0U);
  tick();
  EXPECT_TRUE(entries.empty());
  EXPECT_EQ(node.cpus("web/a"), "7");
}

TEST_F(EnforcerTest, ACpusetThatARuntimeWritesAfterTheFirstPinIsTheWorkloadsOwn) {
  now = os::epoch_s();
  node.add_group("web/a");
  start();
  tick();
  ASSERT_EQ(enforcer->pins().count("web/a"), 1U);
  node.put("web/a", "cpuset.cpus", "4-7");
  several_ticks();
  EXPECT_TRUE(enforcer->left_alone().empty());
  EXPECT_TRUE(model::CpuSet({4, 5, 6, 7}).contains(enforcer->pins().at("web/a").cpus().first()));
  EXPECT_EQ(enforcer->pins().at("web/a").original_cpus().to_string(), "4-7");
  node.put("web/a", "cpuset.cpus", "0");
  several_ticks();
  EXPECT_EQ(enforcer->left_alone().count("web/a"), 1U) << "from then on it is meddling";
}

TEST_F(EnforcerTest, YieldEndsWithTheRun) {
  node.add_group("web/a");
  start();
  tick();
  node.put("web/a", "cpuset.cpus", "7");
  several_ticks();
  node.restart_group("web/a");
  ASSERT_TRUE(test::eventually([&] {
    tick();
    return enforcer->pins().count("web/a") == 1;
  }));
  EXPECT_TRUE(enforcer->left_alone().empty());
  EXPECT_EQ(node.cpus("web/a"), enforcer->pins().at("web/a").cpus().to_string());
}

TEST_F(EnforcerTest, ReassertWritesAgainAndSaysItEverMoreRarely) {
  node.add_group("web/a");
  start();
  on_foreign = ForeignWriter::reassert;
  tick();
  const auto pinned = node.cpus("web/a");
  std::size_t said = 0;
  for (int i = 0; i < 10; ++i) {
    node.put("web/a", "cpuset.cpus", "7");
    several_ticks();
    EXPECT_EQ(node.cpus("web/a"), pinned);
    said += entries.size();
  }
  EXPECT_EQ(said, 4U) << "after 1, 2, 4 and 8 times";
  EXPECT_TRUE(enforcer->left_alone().empty());
  actuators->writer().restore_all();
  EXPECT_EQ(node.cpus("web/a"), "") << "the original is still known";
}

TEST_F(EnforcerTest, AlarmLeavesTheValueAndComesBackWithIt) {
  node.add_group("web/a");
  start();
  on_foreign = ForeignWriter::alarm;
  tick();
  const auto pinned = node.cpus("web/a");
  node.put("web/a", "cpuset.cpus", "7");
  several_ticks();
  EXPECT_EQ(node.cpus("web/a"), "7");
  ASSERT_EQ(results(), (Results{"foreign web/a left"}));
  EXPECT_TRUE(entries[0].error);
  EXPECT_EQ(enforcer->left_alone().at("web/a").cause, LeftAlone::Cause::alarm);
  EXPECT_EQ(actuators->journal().size(), 1U) << "so that a restore says what was left";
  node.put("web/a", "cpuset.cpus", pinned);
  several_ticks();
  EXPECT_TRUE(enforcer->left_alone().empty());
  EXPECT_EQ(enforcer->pins().at("web/a").cpus().to_string(), pinned);
}

TEST_F(EnforcerTest, AfterSwitchingToReassertForeignValuesAreTakenOver) {
  node.add_group("web/a");
  start();
  tick();
  const auto pinned = node.cpus("web/a");
  node.put("web/a", "cpuset.cpus", "0-7");
  several_ticks();
  ASSERT_EQ(enforcer->left_alone().count("web/a"), 1U);
  enforcer->retry_foreign();
  tick();
  EXPECT_TRUE(enforcer->left_alone().empty());
  EXPECT_EQ(node.cpus("web/a"), pinned);
}

TEST_F(EnforcerTest, AUnitsValueMustBeForeignForTwoTicks) {
  node.configure(
      "[[workload]]\nmatch = \"system.slice/*\"\nclass = \"latency-sensitive\"\nvcpus = 2\nisolation = "
      "\"vcpus\"\n");
  node.add_group("system.slice/web.service");
  start();
  tick();
  const auto pinned = node.cpus("system.slice/web.service");
  ASSERT_FALSE(pinned.empty());
  node.put("system.slice/web.service", "cpuset.cpus", "7");
  observer->read_again("system.slice/web.service");
  tick();
  EXPECT_TRUE(entries.empty()) << "may be systemd on its way to the value";
  node.put("system.slice/web.service", "cpuset.cpus", pinned);
  several_ticks();
  EXPECT_TRUE(entries.empty());
  node.put("system.slice/web.service", "cpuset.cpus", "7");
  several_ticks();
  EXPECT_EQ(results(), (Results{"foreign system.slice/web.service left"}));
}

TEST_F(EnforcerTest, ADepartedWorkloadIsForgotten) {
  node.add_group("web/a");
  node.add_group("web/b");
  start();
  tick();
  node.remove_group("web/a");
  ASSERT_TRUE(test::eventually([&] {
    tick();
    return enforcer->pins().count("web/a") == 0;
  }));
  EXPECT_EQ(actuators->journal().size(), 1U);
  EXPECT_EQ(enforcer->pins().count("web/b"), 1U);
}

TEST_F(EnforcerTest, WhatIsNoWorkloadAnyMoreGetsItsValueBack) {
  node.add_group("web/a", "0-5");
  start();
  look();
  carry_out(plan_of({pin_of("web/a", {2, 3})}));
  observer->set_rules({});
  look();
  EXPECT_EQ(node.cpus("web/a"), "0-5");
  EXPECT_EQ(results(), (Results{"restore web/a restored"}));
  EXPECT_TRUE(enforcer->pins().empty());
}

}  // namespace
}  // namespace berth::daemon
