// SPDX-License-Identifier: Apache-2.0
// Interrupts beside the ticks of a daemon that moves them off owned vCPUs.
#include "daemon/interrupts.h"

#include "cgroup/restore.h"
#include "tests/unit/daemon/daemon_fixture.h"
#include "tests/unit/os/fake_interrupts.h"

#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::daemon {
namespace {

using model::CpuSet;
using nlohmann::json;
using testing::ElementsAre;

CpuSet set(const std::string& cpus) { return *CpuSet::parse(cpus); }

class DaemonInterrupts : public test::DaemonFixture {
 protected:
  void configure_interrupts(const std::string& mode, const std::string& interrupts) {
    std::string text = test::kMixedLoad;
    text.replace(text.find("[interference]\n"), 15, "[interference]\ninterrupts = \"" + interrupts + "\"\n");
    node.configure("mode = \"" + mode + "\"\n" + text);
  }
  void run(const std::string& interrupts = "move") {
    load_node();
    configure_interrupts("enforce", interrupts);
    start();
    tick();
    tick();
  }
  CpuSet owned() const { return set(node.cpus("web/a")) | set(node.cpus("web/b")); }
  CpuSet cpus(int number) const { return set(files.cpus(number)); }
  json status() { return json::parse(daemon->control().status_json()); }
  json report() { return status()["interrupts"]; }
  void look() {
    now = now + Interrupts::kLook_s;
    tick();
  }

  berth::test::FakeInterrupts files{node.proc()};
};

TEST_F(DaemonInterrupts, LeaveOwnedVcpus) {
  files.put(24, "0-7");
  run();
  ASSERT_EQ(owned().size(), 4U);
  EXPECT_EQ(cpus(24), set("0-7") - owned());
  EXPECT_EQ(report()["cpus"], owned().to_string());
  EXPECT_EQ(report()["moved"], 1);
  EXPECT_EQ(report()["irqbalance"], "absent");
}

TEST_F(DaemonInterrupts, StayByDefault) {
  files.put(24, "0-7");
  load_node();
  node.configure(std::string("mode = \"enforce\"\n") + test::kMixedLoad);
  start();
  tick();
  tick();
  ASSERT_FALSE(node.cpus("web/a").empty());
  EXPECT_EQ(files.cpus(24), "0-7");
  EXPECT_TRUE(report().is_null());
}

TEST_F(DaemonInterrupts, StayWhileBerthObserves) {
  files.put(24, "0-7");
  load_node();
  configure_interrupts("observe", "move");
  start();
  tick();
  tick();
  EXPECT_EQ(files.cpus(24), "0-7");
}

TEST_F(DaemonInterrupts, AreBackAfterAStop) {
  files.put(24, "0-7");
  run();
  ASSERT_NE(files.cpus(24), "0-7");
  daemon->stop();
  EXPECT_EQ(files.cpus(24), "0-7");
}

TEST_F(DaemonInterrupts, AreBackInObserveMode) {
  files.put(24, "0-7");
  run();
  ASSERT_TRUE(daemon->set_mode("observe"));
  EXPECT_EQ(files.cpus(24), "0-7");
}

TEST_F(DaemonInterrupts, AreBackOnceTheSettingIsLeave) {
  files.put(24, "0-7");
  run();
  configure_interrupts("enforce", "leave");
  ASSERT_TRUE(daemon->reload());
  tick();
  EXPECT_EQ(files.cpus(24), "0-7");
  EXPECT_TRUE(report().is_null());
}

TEST_F(DaemonInterrupts, AreBackOnceTheOwnersHaveGone) {
  files.put(24, "0-7");
  run();
  node.remove_group("web/a");
  tick();
  tick();
  EXPECT_EQ(cpus(24), set("0-7") - set(node.cpus("web/b"))) << "one owner is left";
  node.remove_group("web/b");
  tick();
  tick();
  EXPECT_EQ(files.cpus(24), "0-7");
}

TEST_F(DaemonInterrupts, AreBackAfterAKill) {
  files.put(24, "0-7");
  run();
  const auto moved = files.cpus(24);
  // A killed daemon leaves its journal, and the masks in force.
  const auto copy = node.runtime_dir().parent_path() / "killed";
  std::filesystem::copy(node.runtime_dir(), copy, std::filesystem::copy_options::recursive);
  daemon->stop();
  daemon.reset();
  files.put(24, moved);
  std::filesystem::remove(copy / "undo.lock");
  cgroup::RestorePaths paths;
  paths.cgroup_root = node.tree();
  paths.proc_root = node.proc();
  paths.runtime_dir = copy;
  const auto back = cgroup::restore_host(paths);
  ASSERT_TRUE(back) << back.error().message();
  EXPECT_THAT(back->interrupts.restored, ElementsAre(24));
  EXPECT_EQ(files.cpus(24), "0-7");
}

TEST_F(DaemonInterrupts, ANewOneIsMovedAtTheNextTick) {
  run();
  files.put(40, "0-7");
  tick();
  EXPECT_EQ(cpus(40), set("0-7") - owned());
}

TEST_F(DaemonInterrupts, OneThatTheKernelDoesNotMoveIsCountedOnce) {
  files.put_fixed(9);
  files.put_fixed(10, false);  // no driver handles it, so it never comes
  run();
  ASSERT_TRUE(owned().intersects(cpus(9)));
  EXPECT_EQ(report()["refused"], 1);
  EXPECT_TRUE(report()["problem"].is_null());
  const auto entries = status()["last_actions"].size();
  look();
  EXPECT_EQ(report()["refused"], 1);
  EXPECT_EQ(status()["last_actions"].size(), entries) << "no entry for a further try";
}

TEST_F(DaemonInterrupts, OneThatAnotherProgramChangesIsLeftToIt) {
  files.put(24, "0-7");
  run();
  const std::string theirs = CpuSet{owned().first()}.to_string();
  files.put(24, theirs);
  look();
  EXPECT_EQ(report()["others"], 1);
  EXPECT_EQ(report()["moved"], 0);
  look();
  EXPECT_EQ(files.cpus(24), theirs);
  daemon->stop();
  EXPECT_EQ(files.cpus(24), theirs);
}

TEST_F(DaemonInterrupts, OneThatComesAgainIsMovedAgain) {
  files.put(24, "0-7");
  run();
  files.remove(24);
  tick();
  EXPECT_EQ(report()["moved"], 0);
  files.put(24, "0-7");
  tick();
  EXPECT_EQ(cpus(24), set("0-7") - owned());
}

TEST_F(DaemonInterrupts, OneThatItsDriverMadeAgainIsMovedAgainOnce) {
  files.put(24, "0-7");
  files.put(25, "0-7");
  std::ofstream(files.directory() / "default_smp_affinity") << "3f\n";
  run();
  files.put(24, "0-7");
  files.put(25, "0-5");
  look();
  EXPECT_EQ(cpus(24), set("0-7") - owned());
  EXPECT_EQ(cpus(25), set("0-5") - owned());
  EXPECT_EQ(report()["others"], 0);
  files.put(24, "0-7");
  look();
  EXPECT_EQ(files.cpus(24), "0-7") << "another program wants it so";
  EXPECT_EQ(report()["others"], 1);
  daemon->stop();
  EXPECT_EQ(files.cpus(25), "0-5");
}

TEST_F(DaemonInterrupts, OnesThatTheirDriverSpreadsAtAHotplugAreMovedAgain) {
  files.put(24, "0-7");
  files.put(25, "0-7");
  run();
  node.set_online(7);
  files.put(24, "0-6");
  tick();
  EXPECT_EQ(cpus(24), set("0-6") - owned());
  files.put(25, "0-6");
  look();
  EXPECT_EQ(cpus(25), set("0-6") - owned()) << "its driver was later";
  files.put(25, "0-5");
  look();
  EXPECT_EQ(files.cpus(25), "0-5") << "another program wants it so";
  EXPECT_EQ(report()["others"], 1);
  daemon->stop();
  EXPECT_EQ(files.cpus(24), "0-6");
}

TEST_F(DaemonInterrupts, OneOfAnotherProgramIsMovedAgainOnceTheOwnersChange) {
  files.put(24, "0-7");
  run();
  files.put(24, owned().to_string());
  look();
  EXPECT_EQ(report()["others"], 1);
  node.remove_group("web/a");
  tick();
  tick();
  EXPECT_EQ(report()["others"], 0);
  EXPECT_FALSE(cpus(24).intersects(set(node.cpus("web/b"))));
}

TEST_F(DaemonInterrupts, WhereTheyCannotBeListedTheReportSaysWhatTheyShouldLeave) {
  std::filesystem::remove_all(files.directory());
  run();
  EXPECT_EQ(report()["cpus"], owned().to_string());
  EXPECT_EQ(report()["irqbalance"], "absent");
  EXPECT_FALSE(report()["problem"].is_null());
}

TEST_F(DaemonInterrupts, ARestoreOnRequestCountsThem) {
  files.put(24, "0-7");
  files.put(25, "0-7");
  run();
  EXPECT_EQ(json::parse(*daemon->restore())["interrupts"], 2);
  EXPECT_EQ(files.cpus(25), "0-7");
}

}  // namespace
}  // namespace berth::daemon
