// SPDX-License-Identifier: Apache-2.0
// The priority of groups of best-effort work: set, followed, and given back.
#include "tests/unit/daemon/enforce/enforcer_fixture.h"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace berth::daemon {
namespace {

using config::ForeignWriter;
using model::Attribute;
using model::LowPriority;
using Results = std::vector<std::string>;

constexpr const char* kRules = R"(
[[workload]]
match = "web/*"
class = "latency-sensitive"
vcpus = 2
isolation = "vcpus"
[[workload]]
match = "batch/x"
class = "best-effort"
[[workload]]
match = "batch/y"
class = "best-effort"
[[workload]]
match = "system.slice/*"
class = "best-effort"
[[workload]]
match = "batch/inner/*"
class = "best-effort"
[[workload]]
match = "user/**/w"
class = "best-effort"
[[workload]]
match = "kubepods.slice/*/*/*.scope"
class = "best-effort"
[[workload]]
match = "kubepods/*/*/*"
class = "best-effort"
)";

class EnforcerPriorityTest : public test::EnforcerFixture {
 protected:
  EnforcerPriorityTest() { node.configure(kRules); }
  // A populated cgroup that no rule matches.
  void add_other(const std::string& path) const {
    std::filesystem::create_directories(node.tree() / path);
    node.put(path, "cgroup.events", "populated 1");
  }
  // batch/ with work in it; its weight is 250.
  void start_batch() {
    node.add_group("batch/x");
    node.add_group("batch/y");
    for (const char* path : {"batch", "batch/x", "batch/y"}) give_files(path);
    node.put("batch", "cpu.weight", "250");
    start();
    observer->want(Attribute::cpu_idle, true);
    look();
  }
  // The cgroup belongs to a user, with all that is made in it later.
  void start_user() const {
    add_other("user");
    std::filesystem::permissions(node.tree() / "user", std::filesystem::perms::others_write,
                                 std::filesystem::perm_options::add);
    add_other("user/other");
  }
  void give_files(const std::string& path) const {
    node.put(path, "cpu.idle", "0");
    node.put(path, "cpu.weight", "100");
  }
  void give(const std::string& group, std::optional<LowPriority> priority) {
    model::Action::What what = model::GiveBack{group, Attribute::cpu_idle};
    if (priority) what = model::Set{group, *priority};
    entries.clear();
    carry_out(plan_of({{what, "interference", "d-000000000004", "because"}}));
  }
  std::string idle(const std::string& path) const { return node.get(path, "cpu.idle"); }
  std::string weight(const std::string& path) const { return node.get(path, "cpu.weight"); }
  std::vector<std::string> groups() const {
    std::vector<std::string> ids;
    for (const auto& group : observer->snapshot().groups) ids.push_back(group.id);
    return ids;
  }
  const model::BestEffortGroup& group(const std::string& id) const {
    return *find_group(observer->snapshot(), id);
  }
};

TEST_F(EnforcerPriorityTest, AGroupGetsItWatchedAndBackWithTheWeight) {
  start_batch();
  ASSERT_EQ(groups(), std::vector<std::string>{"batch"});
  EXPECT_EQ(group("batch"), (model::BestEffortGroup{.id = "batch", .cgroup_id = group("batch").cgroup_id}));
  give("batch", LowPriority::idle);
  EXPECT_EQ(idle("batch"), "1");
  ASSERT_EQ(results(), Results{"set-cpu-priority batch applied"});
  EXPECT_EQ(entries[0].attribute, "cpu.idle");
  EXPECT_EQ(entries[0].old_value, "0 250");
  EXPECT_EQ(entries[0].new_value, "1");
  look();
  EXPECT_TRUE(entries.empty());
  EXPECT_EQ(group("batch").held, LowPriority::idle);
  EXPECT_EQ(group("batch").owner, std::nullopt);
  give("batch", std::nullopt);
  EXPECT_EQ(idle("batch"), "0");
  EXPECT_EQ(weight("batch"), "250");
  EXPECT_EQ(actuators->journal().size(), 0U);
  look();
  EXPECT_EQ(group("batch").held, std::nullopt);
  for (const char* member : {"batch/x", "batch/y"}) {
    EXPECT_EQ(idle(member), "0");
    EXPECT_EQ(weight(member), "100");
  }
}

TEST_F(EnforcerPriorityTest, TheLeastWeightIsSetAndPutBack) {
  start_batch();
  give("batch", LowPriority::weight);
  EXPECT_EQ(idle("batch"), "0");
  EXPECT_EQ(weight("batch"), "1");
  look();
  EXPECT_EQ(group("batch").held, LowPriority::weight);
  give("batch", LowPriority::idle);
  EXPECT_EQ(idle("batch"), "1");
  give("batch", std::nullopt);
  EXPECT_EQ(idle("batch"), "0");
  EXPECT_EQ(weight("batch"), "250");
}

TEST_F(EnforcerPriorityTest, WhenOtherWorkComesTheGroupGivesItBackInTheTickInWhichItsPartsGetIt) {
  start_batch();
  give("batch", LowPriority::idle);
  add_other("batch/other");
  look();
  ASSERT_EQ(groups(), (std::vector<std::string>{"batch/x", "batch/y"}));
  give("batch/x", LowPriority::idle);
  EXPECT_EQ(results(), (Results{"restore batch restored", "set-cpu-priority batch/x applied"}));
  EXPECT_EQ(idle("batch"), "0");
  EXPECT_EQ(weight("batch"), "250");
  EXPECT_EQ(idle("batch/x"), "1");
  node.remove_group("batch/other");
  look();
  ASSERT_EQ(groups(), std::vector<std::string>{"batch"});
  give("batch", LowPriority::idle);
  EXPECT_EQ(results(), (Results{"restore batch/x restored", "set-cpu-priority batch applied"}));
  EXPECT_EQ(idle("batch/x"), "0");
}

TEST_F(EnforcerPriorityTest, AWorkloadThatIsMadeLatencySensitiveOrIsLeftAloneNarrowsItsGroup) {
  start_batch();
  ASSERT_TRUE(overrides->set("batch/y", observer->cgroup_id("batch/y"), {{"class", "latency-sensitive"}}));
  look();
  EXPECT_EQ(groups(), std::vector<std::string>{"batch/x"});
  ASSERT_TRUE(overrides->set("batch/y", observer->cgroup_id("batch/y"), {{"class", ""}}));
  look();
  EXPECT_EQ(groups(), std::vector<std::string>{"batch"});
  LeftAloneWorkloads left_alone;
  left_alone["batch/y"].reason = "a foreign writer";
  observer->assemble({.left_alone = left_alone, .overrides = *overrides});
  EXPECT_EQ(groups(), std::vector<std::string>{"batch/x"});
}

TEST_F(EnforcerPriorityTest, AProcessThatIsMovedIntoTheGroupNarrowsIt) {
  start_batch();
  node.put("batch", "cgroup.procs", "7");
  look();
  EXPECT_EQ(groups(), (std::vector<std::string>{"batch/x", "batch/y"}));
}

TEST_F(EnforcerPriorityTest, AProcessThatIsMovedToACgroupInsideTheGroupNarrowsIt) {
  node.add_group("batch/inner/z");
  start_batch();
  ASSERT_EQ(groups(), std::vector<std::string>{"batch"});
  node.put("batch/inner", "cgroup.procs", "7");
  look();
  EXPECT_EQ(groups(), (std::vector<std::string>{"batch/inner/z", "batch/x", "batch/y"}));
  std::filesystem::remove(node.tree() / "batch/inner/cgroup.procs");
  look();
  EXPECT_EQ(groups(), std::vector<std::string>{"batch"});
}

TEST_F(EnforcerPriorityTest, FormerGroupsOfATickWithoutTimeAreGivenBackInTheNext) {
  start_batch();
  give("batch", LowPriority::idle);
  add_other("batch/other");
  look();
  EXPECT_TRUE(enforcer
                  ->apply(plan_of({}), observer->snapshot(), observer->found(), observer->groups(),
                          observer->others(), std::chrono::milliseconds(0))
                  .empty());
  EXPECT_EQ(idle("batch"), "1");
  look();
  carry_out(plan_of({}));
  EXPECT_EQ(results(), Results{"restore batch restored"});
  EXPECT_EQ(idle("batch"), "0");
  EXPECT_EQ(weight("batch"), "250");
}

TEST_F(EnforcerPriorityTest, ChangesBetweenTicksStartNoSearch) {
  start_batch();
  add_other("batch/other");
  observer->take_changes();
  EXPECT_TRUE(observer->groups().contains("batch"));
  look();
  EXPECT_FALSE(observer->groups().contains("batch"));
}

TEST_F(EnforcerPriorityTest, KubeletsNamesExemptNoGroupOfAUser) {
  start_user();
  add_other("user/kubepods/other");
  node.add_group("user/kubepods/besteffort/pod/w");
  start();
  look();
  ASSERT_EQ(groups(), std::vector<std::string>{"user/kubepods/besteffort"});
  EXPECT_FALSE(group("user/kubepods/besteffort").fixed);
}

TEST_F(EnforcerPriorityTest, AUserDoesNotWriteOverAMarkWithoutEndByKubeletsNames) {
  start_user();
  add_other("user/kubepods/other");
  const std::string path = "user/kubepods/besteffort";
  node.add_group(path + "/pod/w");
  give_files(path);
  start();
  observer->want(Attribute::cpu_idle, true);
  look();
  give(path, LowPriority::idle);
  for (int write = 0; write < 5; ++write) {
    give_files(path);
    look();
  }
  EXPECT_TRUE(group(path).fixed);
}

TEST_F(EnforcerPriorityTest, GroupsOfUsersAreReadInTurn) {
  start_user();
  constexpr std::size_t kGroups = BestEffortGroups::kMostUsersGroups + 40;
  for (std::size_t i = 0; i < kGroups; ++i) node.add_group(fmt::format("user/{}/w", i));
  start();
  const auto read = [this] {
    std::set<std::string> paths;
    for (const auto& [path, group] : observer->groups()) {
      if (group.priority) paths.insert(path);
    }
    return paths;
  };
  look();
  ASSERT_EQ(groups().size(), kGroups);
  std::set<std::string> ever = read();
  EXPECT_EQ(ever.size(), BestEffortGroups::kMostUsersGroups);
  look();
  ever.merge(read());
  EXPECT_EQ(ever.size(), kGroups);
}

TEST_F(EnforcerPriorityTest, BerthdIsInNoGroup) {
  node.add_group("system.slice/a.service");
  node.add_group("system.slice/berthd.service");
  start();
  look();
  EXPECT_EQ(groups(), std::vector<std::string>{"system.slice/a.service"});
}

TEST_F(EnforcerPriorityTest, ARestartedWorkloadThatIsItsOwnGroupGetsItAgain) {
  node.add_group("batch/x");
  add_other("batch/other");
  give_files("batch/x");
  start();
  observer->want(Attribute::cpu_idle, true);
  look();
  ASSERT_EQ(groups(), std::vector<std::string>{"batch/x"});
  give("batch/x", LowPriority::idle);
  node.restart_group("batch/x");
  give_files("batch/x");
  look();
  EXPECT_EQ(group("batch/x").held, std::nullopt);
  give("batch/x", LowPriority::idle);
  EXPECT_EQ(idle("batch/x"), "1");
  look();
  EXPECT_EQ(group("batch/x").held, LowPriority::idle);
}

TEST_F(EnforcerPriorityTest, WhatAnotherProgramWroteStaysAndThePinsToo) {
  start_batch();
  give("batch", LowPriority::idle);
  carry_out(plan_of({pin_of("batch/x", {4, 5})}));
  node.put("batch", "cpu.idle", "0");
  node.put("batch", "cpu.weight", "100");  // as the kernel does
  look();
  EXPECT_EQ(results(), Results{"foreign batch left"});
  EXPECT_EQ(idle("batch"), "0");
  EXPECT_EQ(weight("batch"), "250") << "berth's write had lost it";
  EXPECT_TRUE(group("batch").fixed);
  EXPECT_EQ(group("batch").held, std::nullopt);
  give("batch", LowPriority::idle);
  EXPECT_TRUE(entries.empty());
  EXPECT_EQ(idle("batch"), "0");
  EXPECT_TRUE(enforcer->left_alone().empty());
  EXPECT_EQ(node.cpus("batch/x"), "4-5");
}

TEST_F(EnforcerPriorityTest, WhatAnotherProgramWroteIsWrittenOverIfThatIsConfigured) {
  on_foreign = ForeignWriter::reassert;
  start_batch();
  give("batch", LowPriority::idle);
  node.put("batch", "cpu.idle", "0");
  look();
  EXPECT_EQ(idle("batch"), "1");
  EXPECT_FALSE(group("batch").fixed);
}

TEST_F(EnforcerPriorityTest, WhatKubeletWritesEachMinuteIsWrittenOver) {
  const std::string qos = "kubepods.slice/kubepods-besteffort.slice";
  node.add_group(qos + "/kubepods-besteffort-pod1_2.slice/cri-containerd-" + std::string(64, 'a') + ".scope");
  add_other("kubepods.slice/kubepods-burstable.slice");
  give_files(qos);
  start();
  observer->want(Attribute::cpu_idle, true);
  look();
  ASSERT_EQ(groups(), std::vector<std::string>{qos});
  give(qos, LowPriority::idle);
  for (int minute = 0; minute < 3; ++minute) {
    give_files(qos);
    look();
    EXPECT_EQ(idle(qos), "1");
  }
  EXPECT_FALSE(group(qos).fixed);
}

TEST_F(EnforcerPriorityTest, WhereKubeletsWriteWouldFailTheGroupIsLeftAlone) {
  node.add_group("kubepods/besteffort/pod1-2/" + std::string(64, 'a'));
  add_other("kubepods/burstable");
  start();
  look();
  ASSERT_EQ(groups(), std::vector<std::string>{"kubepods/besteffort"});
  EXPECT_TRUE(group("kubepods/besteffort").fixed);
  node.remove_group("kubepods/burstable");
  look();
  ASSERT_EQ(groups(), std::vector<std::string>{"kubepods"}) << "kubelet writes that when it starts";
  EXPECT_TRUE(group("kubepods").fixed);
}

TEST_F(EnforcerPriorityTest, IdlePriorityOfItsOwnerIsKnown) {
  start_batch();
  node.put("batch", "cpu.idle", "1");
  look();
  EXPECT_EQ(group("batch").owner, LowPriority::idle);
  EXPECT_EQ(group("batch").held, std::nullopt);
  give("batch", LowPriority::idle);
  EXPECT_EQ(actuators->journal().size(), 0U);
  look();
  EXPECT_EQ(group("batch").held, std::nullopt);
}

TEST_F(EnforcerPriorityTest, AGroupThatRefusesItIsNotAskedAgain) {
  start_batch();
  add_other("batch/other");
  make_unwritable("batch/x", "cpu.idle");
  look();
  ASSERT_EQ(groups(), (std::vector<std::string>{"batch/x", "batch/y"}));
  give("batch/x", LowPriority::idle);
  EXPECT_EQ(results(), Results{"set-cpu-priority batch/x failed"});
  look();
  EXPECT_TRUE(group("batch/x").fixed);
  give("batch/x", LowPriority::idle);
  EXPECT_TRUE(entries.empty());
}

TEST_F(EnforcerPriorityTest, AWriteOfUnknownOutcomeThatWasDoneIsHeldAndNotTheOwners) {
  start_batch();
  give("batch", LowPriority::idle);
  enforcer.reset();
  actuators.reset();
  start();
  enforcer->take_over(actuators->journal().records());
  look();
  EXPECT_EQ(group("batch").held, LowPriority::idle);
  EXPECT_EQ(group("batch").owner, std::nullopt);
  carry_out(plan_of({}));
  EXPECT_EQ(idle("batch"), "1");
  give("batch", std::nullopt);
  EXPECT_EQ(weight("batch"), "250");
  EXPECT_EQ(actuators->journal().size(), 0U);
}

TEST_F(EnforcerPriorityTest, OfACrashEverythingComesBack) {
  start_batch();
  give("batch", LowPriority::idle);
  enforcer.reset();
  actuators.reset();
  EXPECT_EQ(idle("batch"), "1");
  start();
  const auto report = actuators->writer().restore_all();
  ASSERT_EQ(report.restored.size(), 1U);
  EXPECT_EQ(report.restored[0].workload, "batch");
  EXPECT_EQ(idle("batch"), "0");
  EXPECT_EQ(weight("batch"), "250");
}

TEST_F(EnforcerPriorityTest, ThePolicyGivesItWhileAServiceRuns) {
  start_batch();
  tick();
  EXPECT_EQ(idle("batch"), "0");
  node.add_group("web/a");
  tick();
  EXPECT_EQ(idle("batch"), "1");
  tick();
  EXPECT_TRUE(entries.empty());
  node.remove_group("web/a");
  tick();
  EXPECT_EQ(idle("batch"), "1");
  now += 30;
  tick();
  EXPECT_EQ(idle("batch"), "0");
  EXPECT_EQ(weight("batch"), "250");
  EXPECT_TRUE(enforcer->holdings().of(Attribute::cpu_idle).empty());
}

}  // namespace
}  // namespace berth::daemon
