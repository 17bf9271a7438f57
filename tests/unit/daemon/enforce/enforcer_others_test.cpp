// SPDX-License-Identifier: Apache-2.0
// Work that no rule names, beside services with vCPUs of their own.
#include "daemon/enforce/enforcer.h"
#include "tests/unit/daemon/enforce/enforcer_fixture.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

namespace berth::daemon {

namespace {

using Paths = std::vector<std::string>;

constexpr const char* kOwning = R"(
[safety]
repin_cooldown = "1s"
[interference]
isolation = "vcpus"
others = "confine"
best_effort_priority = "leave"
[[workload]]
match = "system.slice/web.service"
class = "latency-sensitive"
vcpus = 2
[[workload]]
match = "user.slice/game"
class = "latency-sensitive"
vcpus = 2
)";
constexpr const char* kWeb = "system.slice/web.service";
constexpr const char* kCron = "system.slice/cron.service";
constexpr const char* kUsers = "user.slice";

class EnforcerOthersTest : public test::EnforcerFixture {
 protected:
  EnforcerOthersTest() {
    node.configure(kOwning);
    for (const char* path : {kWeb, kCron, "system.slice/dbus.service", "init.scope", "user.slice/session"})
      node.add_group(path);
  }
  void start_others() {
    start();
    observer->want_others(true, model::Isolation::vcpus);
  }
  // Until a change of the tree is in the snapshot, and carried out.
  void tick_until(const std::function<bool()>& done) {
    for (int i = 0; i < 200 && !done(); ++i) {
      usleep(10'000);
      tick();
    }
    EXPECT_TRUE(done());
  }
  std::string rest() const {
    return (observer->snapshot().topology.usable() - *model::CpuSet::parse(node.cpus(kWeb))).to_string();
  }
  Paths confined() const { return plan.findings.interference->others.confined; }
  Paths unconfined() const {
    Paths ids;
    for (const auto& left : plan.findings.interference->others.unconfined) ids.push_back(left.workload);
    return ids;
  }
  std::size_t count(const std::string& result) const {
    const auto all = results();
    return static_cast<std::size_t>(std::ranges::count(all, result));
  }
};

TEST_F(EnforcerOthersTest, TheHighestGroupsAreConfinedAndWhatMustNotBeIsNot) {
  start_others();
  tick();
  ASSERT_NE(node.cpus(kWeb), "");
  EXPECT_EQ(confined(), (Paths{kCron, kUsers}));
  EXPECT_EQ(unconfined(), (Paths{"init.scope", "system.slice/dbus.service"}));
  EXPECT_EQ(node.cpus(kCron), rest());
  EXPECT_EQ(node.cpus(kUsers), rest());
  for (const char* path : {"user.slice/session", "system.slice", "init.scope", "system.slice/dbus.service"})
    EXPECT_EQ(node.cpus(path), "") << path;
  for (int i = 0; i < 3; ++i) {
    tick();
    EXPECT_TRUE(entries.empty());
  }
}

TEST_F(EnforcerOthersTest, WhatIsNoWorkloadsVcpusIsNoLimitOfAWorkloadInIt) {
  start_others();
  tick();
  node.add_group("user.slice/game");
  tick_until([&] { return node.cpus("user.slice/game") != ""; });
  EXPECT_EQ(node.cpus(kUsers), "") << "it has a service in it now";
  tick_until([&] { return node.cpus("user.slice/session") != ""; });
  EXPECT_FALSE(model::CpuSet::parse(node.cpus("user.slice/session"))
                   ->intersects(*model::CpuSet::parse(node.cpus("user.slice/game"))));
}

TEST_F(EnforcerOthersTest, AllIsPutBackWhenTheServiceEndsThoughNotAtOnce) {
  start_others();
  tick();
  ASSERT_EQ(node.cpus(kCron), rest());
  const std::string confined_to = rest();
  node.put(kWeb, "cgroup.events", "populated 0");
  tick_until([&] { return find_workload(observer->snapshot(), kWeb) == nullptr; });
  EXPECT_EQ(node.cpus(kCron), confined_to) << "it may start again";
  now += 30;
  tick();
  EXPECT_EQ(node.cpus(kCron), "");
  EXPECT_EQ(node.cpus(kUsers), "");
  tick();
  EXPECT_TRUE(observer->snapshot().others.empty()) << "nobody looks at them any more";
  EXPECT_EQ(actuators->journal().size(), 0U);
}

TEST_F(EnforcerOthersTest, ARestorePutsAllBack) {
  start_others();
  const auto before = node.tree_bytes();
  tick();
  ASSERT_EQ(node.cpus(kCron), rest());
  actuators->writer().restore_all();
  EXPECT_EQ(node.tree_bytes(), before);
}

TEST_F(EnforcerOthersTest, TheCpusetOfAnOwnerStays) {
  node.put(kCron, "cpuset.cpus", "0-5");
  node.put(kUsers, "cpuset.cpus.partition", "root invalid (no CPUs)");
  start_others();
  tick();
  EXPECT_EQ(node.cpus(kCron), "0-5");
  EXPECT_EQ(node.cpus(kUsers), "");
  EXPECT_EQ(unconfined(), (Paths{"init.scope", kCron, "system.slice/dbus.service", kUsers}));
}

TEST_F(EnforcerOthersTest, NothingAboveTheCpusetOfAnOwnerIsConfined) {
  node.add_group("user.slice/pinned", "2-3");
  node.add_group("user.slice/all", "0-7");
  start_others();
  tick();
  EXPECT_EQ(node.cpus(kUsers), "");
  EXPECT_EQ(node.cpus("user.slice/pinned"), "2-3");
  EXPECT_EQ(node.cpus("user.slice/session"), rest());
  EXPECT_EQ(node.cpus("user.slice/all"), rest()) << "its cpulist restricts nothing";
  // Once it is set later, too. No event tells of that.
  node.add_group("z.slice/inner");
  tick_until([&] { return node.cpus("z.slice") == rest(); });
  node.put("z.slice/inner", "cpuset.cpus", "1");
  now += OtherGroups::kSearchAgain_s;
  tick();
  EXPECT_EQ(node.cpus("z.slice"), "");
  EXPECT_EQ(node.cpus("z.slice/inner"), "1");
}

TEST_F(EnforcerOthersTest, ACpulistOfAllVcpusButThoseOfPartitionsRestrictsNothing) {
  node.put("", "cpuset.cpus.effective", "0-6");
  node.add_group("rt.slice", "7");
  node.put("rt.slice", "cpuset.cpus.partition", "isolated");
  node.put(kUsers, "cpuset.cpus", "0-6");
  start_others();
  tick();
  EXPECT_TRUE(std::ranges::count(confined(), kUsers) > 0) << "berth itself may have put that back";
}

TEST_F(EnforcerOthersTest, OnlyTheSystemsOwnUnitsOfANameAreSpared) {
  for (const char* path : {"machine.slice/dbus.service", "machine.slice/systemd-journald.service",
                           "machine.slice/berthd.service", "system.slice/systemd-journald.service"})
    node.add_group(path);
  start_others();
  tick();
  EXPECT_EQ(node.cpus("machine.slice"), rest());
  EXPECT_EQ(node.cpus("system.slice/systemd-journald.service"), "");
}

TEST_F(EnforcerOthersTest, AGroupThatHasLostItsProcessesStaysConfined) {
  start_others();
  tick();
  ASSERT_EQ(node.cpus(kUsers), rest());
  const auto before = observer->others().size();
  node.put(kUsers, "cgroup.events", "populated 0");
  node.add_group("z.slice");
  tick_until([&] { return node.cpus("z.slice") == rest(); });
  EXPECT_EQ(node.cpus(kUsers), rest()) << "at the next login it would be confined again";
  EXPECT_EQ(observer->others().size(), before + 1);
}

TEST_F(EnforcerOthersTest, AGroupAboveANewServiceIsReleasedHoweverLateItIs) {
  start_others();
  tick();
  ASSERT_EQ(node.cpus(kUsers), rest());
  node.add_group("user.slice/game");
  for (int i = 0; i < 200 && find_workload(observer->snapshot(), "user.slice/game") == nullptr; ++i) {
    usleep(10'000);
    look();
  }
  enforcer->apply(plan_of({}), observer->snapshot(), observer->found(), observer->groups(),
                  observer->others(), std::chrono::milliseconds(0));
  EXPECT_EQ(node.cpus(kUsers), "");
}

TEST_F(EnforcerOthersTest, AServiceWhoseVcpusAGroupAboveStillWithholdsIsNotLeftAlone) {
  start_others();
  tick();
  const std::string game = "user.slice/game";
  ASSERT_EQ(node.cpus(kUsers), rest());
  make_unwritable(kUsers);
  node.add_group(game);
  node.put(game, "cpuset.cpus.effective", rest());
  for (int i = 0; i < 200 && find_workload(observer->snapshot(), game) == nullptr; ++i) {
    usleep(10'000);
    look();
  }
  for (int i = 0; i < 3; ++i) {
    look();
    carry_out(plan_of({pin_of(game, *model::CpuSet::parse(node.cpus(kWeb)))}));
    EXPECT_TRUE(enforcer->left_alone().empty());
  }
  node.put(game, "cpuset.cpus.effective", "0-7");
  look();
  carry_out(plan_of({pin_of(game, *model::CpuSet::parse(node.cpus(kWeb)))}));
  EXPECT_TRUE(enforcer->pins().contains(game));
}

TEST_F(EnforcerOthersTest, AWriteOfUnknownOutcomeThatWasDoneIsHeldAndNotTheOwners) {
  start_others();
  tick();
  ASSERT_EQ(node.cpus(kUsers), rest());
  enforcer.emplace(actuators->writer(), [this](const std::string& id) { observer->read_again(id); });
  enforcer->take_over(actuators->journal().records());
  look();
  const auto* group = find_other(observer->snapshot(), kUsers);
  ASSERT_NE(group, nullptr);
  EXPECT_EQ(group->held, *model::CpuSet::parse(node.cpus(kUsers)));
  EXPECT_EQ(group->left_alone, std::nullopt);
}

TEST_F(EnforcerOthersTest, AnotherProgramsChangeStaysUntilAReload) {
  start_others();
  tick();
  ASSERT_EQ(node.cpus(kUsers), rest());
  node.put(kUsers, "cpuset.cpus", "0-6");
  std::vector<LogEntry> all;
  for (int i = 0; i < 4; ++i) {
    tick();
    all.insert(all.end(), entries.begin(), entries.end());
  }
  entries = all;
  EXPECT_EQ(count("foreign user.slice left"), 1U);
  EXPECT_EQ(node.cpus(kUsers), "0-6");
  EXPECT_TRUE(std::ranges::count(unconfined(), kUsers) > 0);
  EXPECT_EQ(node.cpus(kCron), rest()) << "the others go on";
  EXPECT_TRUE(enforcer->left_alone().empty());
}

TEST_F(EnforcerOthersTest, ARefusalIsSaidOnceAndTriedAgainAfterAReload) {
  make_unwritable(kUsers);
  start_others();
  std::vector<LogEntry> all;
  for (int i = 0; i < 4; ++i) {
    tick();
    all.insert(all.end(), entries.begin(), entries.end());
  }
  entries = all;
  EXPECT_EQ(count("pin user.slice failed"), 1U);
  EXPECT_TRUE(std::ranges::count(unconfined(), kUsers) > 0);
  std::filesystem::remove(node.tree() / kUsers / "cpuset.cpus");
  node.put(kUsers, "cpuset.cpus", "");
  enforcer->retry_failed();
  tick();
  EXPECT_EQ(node.cpus(kUsers), rest());
}

TEST_F(EnforcerOthersTest, AServiceUnitThatAppearsIsConfinedOnceItHasStayed) {
  start_others();
  tick();
  node.add_group("system.slice/short.service");
  tick_until([&] { return observer->others().contains("system.slice/short.service"); });
  EXPECT_EQ(node.cpus("system.slice/short.service"), "");
  now += OtherGroups::kYoung_s;
  tick();
  EXPECT_EQ(node.cpus("system.slice/short.service"), rest());
}

TEST_F(EnforcerOthersTest, AGroupThatIsMadeAnewIsConfinedAgain) {
  start_others();
  tick();
  node.restart_group("user.slice");
  tick_until([&] { return node.cpus(kUsers) == rest(); });
}

TEST_F(EnforcerOthersTest, WhatRunsOnIsolatedVcpusStaysThere) {
  node.host().write("devices/system/cpu/isolated", "7\n");
  node.put(kCron, "cgroup.procs", "31");
  const auto thread = node.proc() / "31/task/32";
  std::filesystem::create_directories(thread);
  std::ofstream(thread / "status") << "Name:\tpoll\nCpus_allowed_list:\t7\nMems_allowed_list:\t0\n";
  start_others();
  tick();
  EXPECT_EQ(confined(), (Paths{kUsers}));
  EXPECT_EQ(node.cpus(kCron), "");
}

TEST_F(EnforcerOthersTest, WithoutAnOwnerNobodyLooks) {
  observer.reset();
  start();
  observer->want_others(true, model::Isolation::shared);
  tick();
  EXPECT_TRUE(observer->others().empty());
  EXPECT_TRUE(observer->snapshot().others.empty());
}

TEST_F(EnforcerOthersTest, AUserWhoOwnsItsCpusetIsNotConfinedThere) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give files away";
  node.add_group("user.slice/game");
  for (const char* path : {"user.slice/session", "user.slice/session/cpuset.cpus"})
    ASSERT_EQ(chown((node.tree() / path).c_str(), 1000, 1000), 0);
  start_others();
  tick();
  EXPECT_EQ(node.cpus("user.slice/session"), "");
  EXPECT_TRUE(std::ranges::count(unconfined(), "user.slice/session") > 0);
}

TEST_F(EnforcerOthersTest, TheOutermostGroupOfAUserIsConfined) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give directories away";
  node.add_group("user.slice/game");
  ASSERT_EQ(chown((node.tree() / "user.slice/session").c_str(), 1000, 1000), 0);
  start_others();
  tick();
  EXPECT_NE(node.cpus("user.slice/session"), "");
}

}  // namespace

}  // namespace berth::daemon
