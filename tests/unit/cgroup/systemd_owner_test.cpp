// SPDX-License-Identifier: Apache-2.0
#include "cgroup/systemd_owner.h"

#include "cgroup/restore.h"
#include "systemd_owner_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace berth::cgroup {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// A socket that takes connections, up to its backlog, and never says a word; -1 where that fails.
int listen_at(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.string().copy(address.sun_path, sizeof address.sun_path - 1);
  const int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool bound = bind(listening, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  return bound && listen(listening, 16) == 0 ? listening : -1;
}

TEST_F(SystemdOwnerTest, SetsThroughSystemdAndLeavesNoTrace) {
  add();
  Writer writer = this->writer();
  const SetResult set = writer.set(web(), cpus("2-3,5"));
  ASSERT_TRUE(set && *set) << set.error().message();
  EXPECT_EQ(now(), "2-3,5");
  EXPECT_EQ(configured(), "2-3,5");
  EXPECT_TRUE(drop_in());
  EXPECT_EQ(journal->records()[0].owner, "systemd");

  const RestoreReport report = writer.restore_all();
  EXPECT_THAT(report.restored, SizeIs(1));
  EXPECT_EQ(now(), "");
  EXPECT_EQ(configured(), "");
  EXPECT_TRUE(nothing_left());
  EXPECT_FALSE(systemd->need_reload(kUnit));
  EXPECT_EQ(systemd->reloads(), 1);
}

TEST_F(SystemdOwnerTest, ConfiguredSettingIsTheOriginal) {
  add("0-5");
  Writer writer = this->writer();
  ASSERT_TRUE(writer.set(web(), cpus("2")));
  writer.restore_all();
  EXPECT_EQ(now(), "0-5");
  EXPECT_EQ(configured(), "0-5");
  EXPECT_TRUE(nothing_left());
}

TEST_F(SystemdOwnerTest, DropInThatWasThereBeforeStaysWithItsValue) {
  add();
  systemd->set_property(kUnit, Attribute::cpus, allowed("0-5"));
  Writer writer = this->writer();
  ASSERT_TRUE(writer.set(web(), cpus("2")));
  writer.restore_all();
  EXPECT_EQ(now(), "0-5");
  EXPECT_TRUE(drop_in());
  EXPECT_EQ(systemd->reloads(), 0) << "nothing was removed";
  systemd->daemon_reload();
  EXPECT_EQ(now(), "0-5");
}

TEST_F(SystemdOwnerTest, FileThatDifferedFromTheSettingIsPutBackToo) {
  add();
  tree.put(kGroup, "cpuset.cpus", "0-5");  // written past systemd before berth came
  Writer writer = this->writer();
  ASSERT_TRUE(writer.set(web(), cpus("2")));
  ASSERT_TRUE(writer.restore(kGroup, Attribute::cpus));
  EXPECT_EQ(now(), "0-5");
  EXPECT_EQ(configured(), "");
}

TEST_F(SystemdOwnerTest, TransientUnitsDropInIsRemoved) {
  add("", true);
  Writer writer = this->writer();
  ASSERT_TRUE(writer.set(web(), cpus("2")));
  EXPECT_TRUE(drop_in("50-AllowedCPUs.conf", "transient"));
  writer.restore_all();
  EXPECT_TRUE(nothing_left());
}

TEST_F(SystemdOwnerTest, OtherDropInsInTheDirectoryStay) {
  add();
  put_file(run.path() / "system.control/web.service.d/50-IOWeight.conf", "[Service]\nIOWeight=50\n");
  Writer writer = this->writer();
  ASSERT_TRUE(writer.set(web(), cpus("2")));
  writer.restore_all();
  EXPECT_FALSE(drop_in());
  EXPECT_TRUE(drop_in("50-IOWeight.conf"));
}

TEST_F(SystemdOwnerTest, QuotaIsSetInWholePercentsAndPutBack) {
  add();
  Writer writer = this->writer();
  const SetResult set = writer.set(web(), quota("123456 100000"));
  ASSERT_TRUE(set && *set) << set.error().message();
  EXPECT_EQ(to_text((*set)->after), "123000 100000");
  systemd->daemon_reload();
  EXPECT_EQ(tree.get(kGroup, "cpu.max"), "123000 100000") << "as the drop-in has it";
  EXPECT_FALSE(*writer.set(web(), quota("123456 100000"))) << "as near as it gets";
  writer.restore_all();
  EXPECT_EQ(tree.get(kGroup, "cpu.max"), "max 100000");
  EXPECT_TRUE(nothing_left());
}

TEST_F(SystemdOwnerTest, MemoryHighIsSetAndPutBack) {
  add();
  Writer writer = this->writer();
  ASSERT_TRUE(writer.set(web(), memory("1048576")));
  EXPECT_EQ(systemd->live(kUnit).memory_high_bytes, 1048576U);
  writer.restore_all();
  EXPECT_EQ(tree.get(kGroup, "memory.high"), "max");
  EXPECT_TRUE(nothing_left());
}

TEST_F(SystemdOwnerTest, MemoryNodesAreSetAndPutBack) {
  add();
  tree.put(kGroup, "cpuset.mems", "");
  Writer writer = this->writer();
  ASSERT_TRUE(writer.set(web(), nodes("0,2")));
  EXPECT_EQ(systemd->live(kUnit).allowed_nodes.to_string(), "0,2");
  EXPECT_EQ(tree.get(kGroup, "cpuset.mems"), "0,2");
  EXPECT_TRUE(drop_in("50-AllowedMemoryNodes.conf"));
  writer.restore_all();
  EXPECT_EQ(tree.get(kGroup, "cpuset.mems"), "");
  EXPECT_TRUE(nothing_left());
}

TEST_F(SystemdOwnerTest, IdlePriorityIsSetAndTheWeightPutBack) {
  systemd->add(kUnit, {kGroup, setting_of(priority("0 300"))});
  ASSERT_EQ(tree.get(kGroup, "cpu.weight"), "300");
  Writer writer = this->writer();
  ASSERT_TRUE(writer.set(web(), priority("1")));
  EXPECT_EQ(systemd->live(kUnit).cpu_weight, kIdleWeight);
  EXPECT_EQ(tree.get(kGroup, "cpu.idle"), "1");
  EXPECT_TRUE(drop_in("50-CPUWeight.conf"));
  writer.restore_all();
  EXPECT_EQ(tree.get(kGroup, "cpu.idle"), "0");
  EXPECT_EQ(tree.get(kGroup, "cpu.weight"), "300");
  EXPECT_TRUE(nothing_left());
}

TEST_F(SystemdOwnerTest, ABurstOfAUnitIsWrittenDirectlyAndStaysWhenSystemdReloads) {
  add();
  tree.put(kGroup, "cpu.max.burst", "0");
  Writer writer = this->writer();
  ASSERT_TRUE(writer.set(web(), burst("50000")));
  EXPECT_EQ(journal->records()[0].owner, "direct");
  systemd->daemon_reload();
  EXPECT_EQ(tree.get(kGroup, "cpu.max.burst"), "50000");
  writer.restore_all();
  EXPECT_EQ(tree.get(kGroup, "cpu.max.burst"), "0");
  EXPECT_TRUE(nothing_left());
}

TEST_F(SystemdOwnerTest, AWeightThatBerthLostComesBackWhenAnotherProgramEndsIdlePriority) {
  systemd->add(kUnit, {kGroup, setting_of(priority("0 300"))});
  ASSERT_EQ(tree.get(kGroup, "cpu.weight"), "300");
  Writer writer = this->writer();
  ASSERT_TRUE(writer.set(web(), priority("1")));
  tree.put(kGroup, "cpu.idle", "0");  // past systemd, and the kernel gives its default weight
  tree.put(kGroup, "cpu.weight", "100");
  ASSERT_TRUE(writer.disown(kGroup, Attribute::cpu_idle));
  EXPECT_EQ(tree.get(kGroup, "cpu.weight"), "300");
  EXPECT_TRUE(nothing_left());
}

TEST_F(SystemdOwnerTest, DaemonReloadThatMergesThePinWithTheUnitFileIsNotForeign) {
  add("0-5");
  Writer writer = this->writer();
  ASSERT_TRUE(writer.set(web(), cpus("2")));
  systemd->daemon_reload();
  ASSERT_EQ(now(), "0-5") << "systemd adds assignments up";
  EXPECT_EQ(writer.drift(web(), cpus(now())), Drift::undone);
  const SetResult again = writer.set(web(), cpus("2"));
  ASSERT_TRUE(again && *again);
  EXPECT_EQ(now(), "2");
  systemd->daemon_reload();
  EXPECT_THAT(writer.restore_all().left, IsEmpty());
  EXPECT_EQ(now(), "0-5");
  EXPECT_TRUE(nothing_left());
}

TEST_F(SystemdOwnerTest, SetPropertyBySomebodyElseIsForeignAndStays) {
  add();
  Writer writer = this->writer();
  ASSERT_TRUE(writer.set(web(), cpus("2")));
  systemd->set_property(kUnit, Attribute::cpus, allowed("6-7"));
  EXPECT_EQ(writer.drift(web(), cpus(now())), Drift::foreign);
  EXPECT_THAT(writer.restore_all().left, SizeIs(1));
  EXPECT_EQ(now(), "6-7");
  EXPECT_TRUE(drop_in()) << "it is theirs now";
}

TEST_F(SystemdOwnerTest, WritePastSystemdStaysWhileThePinGoes) {
  add();
  Writer writer = this->writer();
  ASSERT_TRUE(writer.set(web(), cpus("2")));
  tree.put(kGroup, "cpuset.cpus", "6");
  EXPECT_EQ(writer.drift(web(), cpus(now())), Drift::foreign);
  ASSERT_TRUE(writer.disown(kGroup, Attribute::cpus));
  EXPECT_EQ(now(), "6");
  EXPECT_EQ(configured(), "");
  EXPECT_TRUE(nothing_left());
}

TEST_F(SystemdOwnerTest, PersistentSettingBySomebodyElseIsForeign) {
  add();
  Writer writer = this->writer();
  ASSERT_TRUE(writer.set(web(), cpus("2")));
  // systemctl set-property without --runtime: in force at once, and berth's drop-in stays where it is.
  systemd->set_live(kUnit, allowed("6-7"));
  EXPECT_EQ(writer.drift(web(), cpus(now())), Drift::foreign);
  EXPECT_THAT(writer.restore_all().left, SizeIs(1));
  EXPECT_EQ(now(), "6-7");
  EXPECT_EQ(configured(), "6-7");
  EXPECT_TRUE(nothing_left());
}

TEST_F(SystemdOwnerTest, RestartedUnitKeepsItsOriginal) {
  add("0-5");
  Writer writer = this->writer();
  ASSERT_TRUE(writer.set(web(), cpus("2")));
  systemd->restart(kUnit);
  EXPECT_EQ(now(), "2") << "the setting outlives the group";
  ASSERT_TRUE(writer.set(web(), cpus("3")));
  EXPECT_EQ(journal->size(), 1U);
  writer.restore_all();
  EXPECT_EQ(now(), "0-5");
  EXPECT_TRUE(nothing_left());
}

TEST_F(SystemdOwnerTest, RestartedUnitIsRestoredThoughBerthNeverSawTheNewGroup) {
  add("0-5");
  {
    Writer writer = this->writer();
    ASSERT_TRUE(writer.set(web(), cpus("2")));
  }
  systemd->restart(kUnit);
  reopen();
  EXPECT_THAT(writer().restore_all().restored, SizeIs(1));
  EXPECT_EQ(now(), "0-5");
  EXPECT_TRUE(nothing_left());
}

TEST_F(SystemdOwnerTest, DepartedTransientUnitIsGone) {
  add("", true);
  Writer writer = this->writer();
  ASSERT_TRUE(writer.set(web(), cpus("2")));
  systemd->remove(kUnit);
  const auto report = writer.restore(kGroup, Attribute::cpus);
  ASSERT_TRUE(report);
  EXPECT_THAT(report->gone, SizeIs(1));
  EXPECT_EQ(journal->size(), 0U);
}

TEST_F(SystemdOwnerTest, StoppedServiceDoesNotStartWithThePinAgain) {
  add("0-5");
  Writer writer = this->writer();
  ASSERT_TRUE(writer.set(web(), cpus("2")));
  tree.remove(kGroup);
  const auto report = writer.restore(kGroup, Attribute::cpus);
  ASSERT_TRUE(report);
  EXPECT_THAT(report->restored, SizeIs(1));
  EXPECT_EQ(configured(), "0-5");
  EXPECT_TRUE(nothing_left());
  ASSERT_TRUE(writer.settle());
  EXPECT_FALSE(systemd->need_reload(kUnit));
}

TEST_F(SystemdOwnerTest, UnitThatSystemdDoesNotKnowIsGone) {
  tree.make("system.slice/ghost.service");
  const SetResult set = writer().set(tree.found("system.slice/ghost.service", "ghost.service"), cpus("2"));
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().kind(), model::ErrorKind::gone);
  EXPECT_EQ(journal->size(), 0U);
}

TEST_F(SystemdOwnerTest, KernelsRefusalShowsAndIsTakenBack) {
  add("0-5");
  systemd->let_kernel_refuse(true);
  const SetResult set = writer().set(web(), cpus("2"));
  ASSERT_FALSE(set);
  EXPECT_THAT(set.error().message(), HasSubstr("cpuset.cpus reads \"0-5\""));
  EXPECT_EQ(configured(), "0-5");
  EXPECT_TRUE(nothing_left());
  EXPECT_EQ(journal->size(), 0U);
}

const auto kSameRun = [] { return true; };

TEST_F(SystemdOwnerTest, AUnitIsStoppedWithoutThoseThatRequireIt) {
  add();
  ASSERT_TRUE(owner->stop_unit(kUnit, kSameRun));
  EXPECT_EQ(systemd->stops(), (std::vector<std::string>{"web.service ignore-requirements"}));
}

TEST_F(SystemdOwnerTest, AUnitThatOthersWouldEndWithIsNotStopped) {
  systemd->add(kUnit, {kGroup, {}, false, {"top.service", "idle.service"}});
  systemd->add("idle.service", {"", {}, false});
  ASSERT_TRUE(owner->stop_unit(kUnit, kSameRun)) << "what does not run does not end";
  systemd->add("top.service", {"system.slice/top.service", {}, false});
  const auto refused = owner->stop_unit(kUnit, kSameRun);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), model::ErrorKind::refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("top.service would end with web.service"));
  EXPECT_THAT(systemd->stops(), SizeIs(1));
}

TEST_F(SystemdOwnerTest, AUnitWhoseRunIsAnotherByNowIsNotStopped) {
  add();
  EXPECT_EQ(owner->stop_unit(kUnit, [] { return false; }).error().kind(), model::ErrorKind::gone);
  const auto late = owner->stop_unit(kUnit, [this] {
    systemd->restart(kUnit);  // after the run was looked up
    return true;
  });
  EXPECT_EQ(late.error().kind(), model::ErrorKind::gone);
  systemd->let_units_restart();
  EXPECT_EQ(owner->stop_unit(kUnit, kSameRun).error().kind(), model::ErrorKind::gone);
  EXPECT_THAT(systemd->stops(), IsEmpty());
}

TEST_F(SystemdOwnerTest, WhyAUnitWasNotStoppedIsTold) {
  EXPECT_EQ(owner->stop_unit("no-such.service", kSameRun).error().kind(), model::ErrorKind::gone);
  systemd->add(kUnit, {kGroup, {}, false, {}, true});
  EXPECT_EQ(owner->stop_unit(kUnit, kSameRun).error().kind(), model::ErrorKind::refused);
  fall_silent();
  EXPECT_EQ(owner->stop_unit(kUnit, kSameRun).error().kind(), model::ErrorKind::transient);
}

TEST_F(SystemdOwnerTest, HostIsRestoredWithoutADaemon) {
  const ScratchDirectory proc;
  put_file(proc.path() / "sys/kernel/random/boot_id", "boot\n");
  add("0-5");
  ASSERT_TRUE(writer().set(web(), cpus("2")));
  journal.reset();
  RestorePaths paths;
  paths.runtime_dir = state.path();
  paths.cgroup_root = tree.root();
  paths.proc_root = proc.path();
  paths.systemd_run_dir = run.path();
  const auto report = restore_host(paths);
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_THAT(report->warnings, IsEmpty());
  EXPECT_EQ(now(), "0-5");
  EXPECT_TRUE(nothing_left());
}

TEST_F(SystemdOwnerTest, RestoreCutShortAfterAnyStepIsFinishedByTheNext) {
  add();
  {
    Writer writer = this->writer();
    ASSERT_TRUE(writer.set(web(), cpus("2")));
  }
  // The property is back, the drop-in with the original's value is still there.
  systemd->set_property(kUnit, Attribute::cpus, allowed(""));
  ASSERT_TRUE(drop_in());
  EXPECT_THAT(writer().restore_all().left, IsEmpty());
  EXPECT_TRUE(nothing_left());
  EXPECT_FALSE(systemd->need_reload(kUnit));
}

TEST(SystemdOwnerConnect, NoBusIsUnavailable) {
  const SystemBusAddress none("unix:path=/nonexistent/bus");
  const auto connected = SystemdOwner::connect({});
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().kind(), model::ErrorKind::unavailable);
}

TEST(SystemdOwnerConnect, BusWithoutSystemdIsUnavailable) {
  const PrivateBus bus;
  if (bus.address().empty()) GTEST_SKIP() << "dbus-daemon is not installed";
  const SystemBusAddress empty(bus.address());
  const auto connected = SystemdOwner::connect({});
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().kind(), model::ErrorKind::unavailable);
}

TEST(SystemdOwnerConnect, SilentBusIsGivenUpInTime) {
  const ScratchDirectory directory;
  const auto path = directory.path() / "bus";
  const int listening = listen_at(path);
  ASSERT_GE(listening, 0);
  const SystemBusAddress silent("unix:path=" + path.string());
  const auto connected = SystemdOwner::connect({});
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().kind(), model::ErrorKind::unavailable);
  close(listening);
}

TEST_F(SystemdOwnerTest, AScopeIsAskedForAndNotWaitedFor) {
  Scope scope{.unit = "worker.service.berth-executor-7-70.scope",
              .description = "executor 0",
              .slice = "system.slice",
              .stopped_with = FakeSystemd::kUnitOfAllProcesses,
              .pid = 7,
              .cpu_weight = 33,
              .io_weight = std::nullopt,
              .tasks_max = 4711,
              .timeout_stop_us = 7000};
  ASSERT_TRUE(owner->start_scope(scope));
  EXPECT_EQ(systemd->starts(),
            std::vector<std::string>{"worker.service.berth-executor-7-70.scope fail\nPIDs=7,\n"
                                     "Description=executor 0\nSlice=system.slice\n"
                                     "StopPropagatedFrom=worker.service,\nTimeoutStopUSec=7000\n"
                                     "TasksMax=4711\nCollectMode=inactive-or-failed\nCPUWeight=33\n"});
  const auto again = owner->start_scope(scope);
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message(), HasSubstr("already exists"));
  EXPECT_EQ(again.error().kind(), model::ErrorKind::refused);
  scope.stopped_with = "other.service";
  EXPECT_THAT(owner->start_scope(scope).error().message(), HasSubstr("process 7 is not in other.service"));
  EXPECT_EQ(systemd->starts().size(), 1U) << "who has that number there is somebody else";
}

TEST_F(SystemdOwnerTest, WhatConfinesAUnitIsNamed) {
  FakeSystemd::Unit unit{kGroup, allowed(""), false};
  const auto told = [&](const std::set<Attribute>& held = {}) {
    systemd->add(kUnit, unit);
    const auto found = owner->traits(kUnit, held);
    return found ? found->bound.value_or("nothing") : found.error().message();
  };
  EXPECT_EQ(told(), "nothing");
  for (const char* name : {"MemoryMax", "Delegate", "IPAddressDeny", "RestrictFileSystems", "DeviceAllow",
                           "KillMode", "OOMPolicy"}) {
    unit.confined = {name};
    EXPECT_EQ(told(), std::string(kUnit) + " has " + name + "= set");
  }
  unit.confined = {};
  unit.tasks_max = 100;
  EXPECT_EQ(told(), std::string(kUnit) + " has TasksMax=100");
  unit.tasks_max = kInfinity;
  EXPECT_EQ(told(), "nothing");
  EXPECT_EQ(owner->traits(kUnit, {})->tasks_max, kInfinity);
  unit.unit_file.memory_high_bytes = 1 << 20;
  EXPECT_EQ(told(), std::string(kUnit) + " has MemoryHigh= set");
  EXPECT_EQ(told({Attribute::memory_high}), "nothing") << "it is berth's";
  unit.unit_file = setting_of(quota("50000 100000"));
  EXPECT_EQ(told(), std::string(kUnit) + " has CPUQuotaPerSecUSec= set");
  EXPECT_EQ(told({Attribute::cpu_quota}), "nothing");
  unit.unit_file = allowed("");
  EXPECT_EQ(owner->traits(kUnit, {})->main_pid, 4);
  EXPECT_EQ(owner->traits(kUnit, {})->timeout_stop_us, 7000U);
  fall_silent();
  EXPECT_EQ(owner->traits(kUnit, {}).error().kind(), model::ErrorKind::transient);
}

}  // namespace
}  // namespace berth::cgroup
