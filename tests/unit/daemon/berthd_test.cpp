// SPDX-License-Identifier: Apache-2.0
// The program itself, end to end, on a host of ordinary files.
#include "model/json.h"
#include "tests/paths.h"
#include "tests/unit/daemon/berthd_process.h"
#include "tests/unit/daemon/fake_node.h"
#include "tests/unit/topology/fake_gpus.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

namespace berth::daemon {
namespace {

using nlohmann::json;
using test::BerthdProcess;
using test::eventually;
using test::run_berthd;

class Berthd : public testing::Test {
 protected:
  void load_node(const std::string& mode) {
    node.configure("mode = \"" + mode + "\"\n" + test::kMixedLoad);
    node.add_group("web/a", "0-5");
    node.add_group("web/b");
    node.add_group("batch/x", "0-7");
    originals = pins();
  }
  std::vector<std::string> pins() const {
    return {node.cpus("web/a"), node.cpus("web/b"), node.cpus("batch/x")};
  }
  std::vector<std::string> arguments(std::vector<std::string> more) const {
    auto all = node.arguments();
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  static std::size_t lines(const std::string& text) {
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }

  test::FakeNode node;
  std::vector<std::string> originals;
};

TEST_F(Berthd, PinsTellsTheServiceManagerAndPutsBackWhenTold) {
  load_node("enforce");
  BerthdProcess berthd(node.arguments());
  const auto ready = berthd.wait_notified("READY=1");
  EXPECT_NE(ready.find("STATUS=enforce: 2 latency-sensitive, 1 best-effort"), std::string::npos) << ready;
  EXPECT_NE(pins(), originals) << "READY comes after the first tick";
  berthd.signal(SIGTERM);
  EXPECT_NE(berthd.wait_notified("STOPPING=1"), "");
  EXPECT_EQ(berthd.wait(), 0) << berthd.errors();
  EXPECT_EQ(pins(), originals);
}

TEST_F(Berthd, AWorkloadThatAppearsIsPinnedLongBeforeTheNextTick) {
  load_node("enforce");
  std::string text = test::read_text(node.config_file());
  const std::string often = "interval = \"100ms\"";
  node.configure(text.replace(text.find(often), often.size(), "interval = \"1h\""));
  BerthdProcess berthd(node.arguments());
  ASSERT_NE(berthd.wait_notified("READY=1"), "");
  node.add_group("web/c");
  EXPECT_TRUE(eventually([&] { return !node.cpus("web/c").empty(); })) << berthd.errors();
}

TEST_F(Berthd, SigintStopsToo) {
  load_node("enforce");
  BerthdProcess berthd(node.arguments());
  ASSERT_NE(berthd.wait_notified("READY=1"), "");
  berthd.signal(SIGINT);
  EXPECT_EQ(berthd.wait(), 0);
  EXPECT_EQ(pins(), originals);
}

TEST_F(Berthd, AfterAKillTheNextStartPutsBack) {
  load_node("enforce");
  {
    BerthdProcess berthd(node.arguments());
    ASSERT_NE(berthd.wait_notified("READY=1"), "");
    berthd.signal(SIGKILL);
    EXPECT_EQ(berthd.wait(), 128 + SIGKILL);
  }
  ASSERT_NE(pins(), originals);
  BerthdProcess berthd(arguments({"--observe"}));
  ASSERT_NE(berthd.wait_notified("READY=1"), "");
  EXPECT_EQ(pins(), originals);
  EXPECT_NE(berthd.errors().find("an earlier berthd ended without restoring everything"), std::string::npos)
      << berthd.errors();
}

TEST_F(Berthd, AfterAKillRestorePutsBackWithoutADaemon) {
  load_node("enforce");
  {
    BerthdProcess berthd(node.arguments());
    ASSERT_NE(berthd.wait_notified("READY=1"), "");
    const auto refused = run_berthd(arguments({"--restore"}));
    EXPECT_EQ(refused.status, 1) << "the daemon holds the journal";
    EXPECT_NE(refused.errors.find("held by another berthd"), std::string::npos) << refused.errors;
    EXPECT_EQ(lines(refused.errors), 1U);
    auto with_other_state = arguments({"--restore"});
    const auto state = std::find(with_other_state.begin(), with_other_state.end(), node.state_dir().string());
    ASSERT_NE(state, with_other_state.end());
    *state = node.tree().parent_path().string();
    const auto elsewhere = run_berthd(with_other_state);
    EXPECT_EQ(elsewhere.status, 1) << "the daemon holds the host";
    EXPECT_NE(elsewhere.errors.find("this host is held by another berthd"), std::string::npos)
        << elsewhere.errors;
    berthd.signal(SIGKILL);
    berthd.wait();
  }
  node.put("web/b", "cpuset.cpus", "7");
  // A configuration with an error must not stand in the way.
  node.configure("mode = ");
  const auto restored = run_berthd(arguments({"--restore", "--json"}));
  EXPECT_EQ(restored.status, 0) << restored.errors;
  EXPECT_EQ(pins(), (std::vector<std::string>{"0-5", "7", "0-7"}));
  const auto report = json::parse(restored.output);
  EXPECT_EQ(report["schema"], "berth.restore/1");
  EXPECT_EQ(report["restored"].size(), 2U);
  ASSERT_EQ(report["left"].size(), 1U);
  EXPECT_EQ(report["left"][0]["workload"], "web/b");
  EXPECT_EQ(report["left"][0]["attribute"], "cpuset.cpus");
  EXPECT_EQ(run_berthd(arguments({"--restore"})).output, "nothing to restore\n");
}

TEST_F(Berthd, RestoreWithoutAnyStateIsDone) {
  std::filesystem::remove_all(node.state_dir());
  const auto ended = run_berthd(arguments({"--restore"}));
  EXPECT_EQ(ended.status, 0) << ended.errors;
  EXPECT_EQ(ended.output, "nothing to restore\n");
  EXPECT_FALSE(std::filesystem::exists(node.state_dir()));
}

TEST_F(Berthd, SighupReloadsAndKeepsTheOldSettingsOnError) {
  load_node("observe");
  BerthdProcess berthd(node.arguments());
  ASSERT_NE(berthd.wait_notified("READY=1"), "");

  node.configure("mode = \"enforcing\"\n");
  berthd.signal(SIGHUP);
  const auto usec = berthd.wait_field("MONOTONIC_USEC=");
  EXPECT_FALSE(usec.empty());
  const auto still = berthd.wait_notified("READY=1");
  EXPECT_NE(still.find("rejected"), std::string::npos) << still;
  EXPECT_TRUE(eventually([&] { return berthd.errors().find("berth.toml:1:8") != std::string::npos; }))
      << berthd.errors();
  EXPECT_EQ(pins(), originals);

  node.configure(std::string("mode = \"enforce\"\n") + test::kMixedLoad);
  berthd.signal(SIGHUP);
  EXPECT_NE(berthd.wait_notified("RELOADING=1"), "");
  const auto now = berthd.wait_notified("READY=1");
  EXPECT_NE(now.find("STATUS=enforce"), std::string::npos) << now;
  EXPECT_TRUE(eventually([&] { return pins() != originals; }));
  berthd.signal(SIGTERM);
  EXPECT_EQ(berthd.wait(), 0);
  EXPECT_EQ(pins(), originals);
}

TEST_F(Berthd, ObserveLeavesEveryByteAsItIs) {
  load_node("observe");
  const auto before = node.tree_bytes();
  BerthdProcess berthd(node.arguments());
  ASSERT_NE(berthd.wait_notified("READY=1"), "");
  // A workload that appears shows that later ticks ran too; then it goes again.
  node.add_group("web/new");
  EXPECT_NE(berthd.wait_field("STATUS=observe: 3 latency-sensitive"), "");
  node.remove_group("web/new");
  EXPECT_NE(berthd.wait_field("STATUS=observe: 2 latency-sensitive"), "");
  berthd.signal(SIGTERM);
  EXPECT_EQ(berthd.wait(), 0);
  EXPECT_EQ(node.tree_bytes(), before);
}

TEST_F(Berthd, ANewWorkloadIsPinnedAndOneThatLeavesFreesItsVcpus) {
  load_node("enforce");
  BerthdProcess berthd(node.arguments());
  ASSERT_NE(berthd.wait_notified("READY=1"), "");
  node.add_group("web/c");
  EXPECT_TRUE(eventually([&] { return !node.cpus("web/c").empty(); }));
  EXPECT_TRUE(eventually([&] {
    const auto batch = model::CpuSet::parse(node.cpus("batch/x"));
    return batch && batch->size() == 2;
  })) << node.cpus("batch/x");
  node.remove_group("web/a");
  EXPECT_TRUE(eventually([&] {
    const auto batch = model::CpuSet::parse(node.cpus("batch/x"));
    return batch && batch->size() == 4;
  })) << node.cpus("batch/x");
}

TEST_F(Berthd, OncePrintsThePlanAndKeepsNothing) {
  load_node("enforce");
  const auto before = node.tree_bytes();
  const auto ended = run_berthd(arguments({"--once", "--json"}));
  EXPECT_EQ(ended.status, 0) << ended.errors;
  const auto plan = model::parse_plan(ended.output);
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(plan->actions.size(), 3U);
  EXPECT_EQ(lines(ended.output), 1U);
  EXPECT_EQ(node.tree_bytes(), before);
  EXPECT_TRUE(std::filesystem::is_empty(node.state_dir()));
  EXPECT_TRUE(std::filesystem::is_empty(node.runtime_dir()));

  const auto readable = run_berthd(arguments({"--once"}));
  EXPECT_NE(readable.output.find("would pin web/a: cpuset.cpus"), std::string::npos) << readable.output;
}

TEST_F(Berthd, OnceNeedsNeitherRootNorState) {
  if (geteuid() != 0) GTEST_SKIP() << "every other test shows it, as this user is not root";
  load_node("observe");
  for (const auto& directory : {node.tree().parent_path(), node.state_dir().parent_path()}) {
    std::filesystem::permissions(directory,
                                 std::filesystem::perms::others_exec | std::filesystem::perms::others_read,
                                 std::filesystem::perm_options::add);
  }
  // Another user cannot enter every directory that a build may lie in.
  const auto program = node.tree().parent_path() / "berthd";
  std::filesystem::copy_file(BERTHD, program);
  const auto options = arguments({"--once", "--json"});
  const pid_t child = fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    if (setgid(kNobody) != 0 || setuid(kNobody) != 0) _exit(100);
    const auto ended = run_berthd(options, program);
    _exit(ended.status == 0 && model::parse_plan(ended.output) ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(Berthd, CheckConfigTellsPlaceAndFault) {
  EXPECT_EQ(run_berthd(arguments({"--check-config"})).status, 0);
  node.configure("mode = \"observe\"\n[interference]\nwindow_stepp = 2\n");
  const auto bad = run_berthd({"--check-config", node.config_file()});
  EXPECT_EQ(bad.status, 2);
  EXPECT_NE(bad.errors.find("berth.toml:3:1"), std::string::npos) << bad.errors;
  EXPECT_EQ(lines(bad.errors), 1U);
  EXPECT_EQ(run_berthd(node.arguments()).status, 2) << "nor does it start with it";
}

TEST_F(Berthd, HalfWrittenConfigurationIsRefused) {
  node.configure("[[workload]]\nmatch = \"web");
  const auto ended = run_berthd(node.arguments());
  EXPECT_EQ(ended.status, 2);
  EXPECT_EQ(lines(ended.errors), 1U) << ended.errors;
}

TEST_F(Berthd, WithoutACgroupTreeItSaysWhatItLookedAt) {
  std::filesystem::create_directories(node.tree() / "empty");
  auto options = node.arguments();
  std::replace(options.begin(), options.end(), node.tree().string(), (node.tree() / "empty").string());
  const auto ended = run_berthd(options);
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.errors.find("no cgroup v2 tree"), std::string::npos) << ended.errors;
  EXPECT_EQ(lines(ended.errors), 1U);
}

TEST_F(Berthd, ASecondOneOnTheSameStateEnds) {
  load_node("observe");
  BerthdProcess first(node.arguments());
  ASSERT_NE(first.wait_notified("READY=1"), "");
  const auto second = run_berthd(node.arguments());
  EXPECT_EQ(second.status, 1);
  EXPECT_NE(second.errors.find("pid " + std::to_string(first.pid())), std::string::npos) << second.errors;
}

TEST_F(Berthd, AFullDiskIsAFailureOfWhatPrints) {
  load_node("observe");
  const std::string errors = node.state_dir() / "errors";
  for (const char* what : {"--once", "--once --json", "--restore", "--check-config", "--help", "--version"}) {
    std::string command = BERTHD;
    for (const auto& argument : node.arguments()) command += " '" + argument + "'";
    command += std::string(" ") + what + " >/dev/full 2>'" + errors + "'";
    const int status = std::system(command.c_str());
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << what << ": " << status;
    const std::string said = test::read_text(errors);
    EXPECT_NE(said.find("berthd: cannot write"), std::string::npos) << what << ": " << said;
  }
}

TEST_F(Berthd, WithoutABusItSaysSoOnce) {
  load_node("observe");
  BerthdProcess berthd(node.arguments());
  ASSERT_NE(berthd.wait_notified("READY=1"), "");
  node.add_group("web/new");
  ASSERT_NE(berthd.wait_field("STATUS=observe: 3"), "");
  const auto said = berthd.errors();
  const auto first = said.find("no bus");
  ASSERT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find("no bus", first + 1), std::string::npos) << said;
}

TEST_F(Berthd, ASilentBusDelaysReadyByTwoSecondsAndNotTheTicks) {
  load_node("enforce");
  BerthdProcess berthd(node.arguments(), test::SystemBus::silent);
  ASSERT_TRUE(eventually([&] { return pins() != originals; })) << "it works without";
  EXPECT_NE(berthd.wait_notified("READY=1"), "");
  ASSERT_TRUE(eventually([&] {
    return berthd.errors().find("no bus: the bus did not answer for 2 s") != std::string::npos;
  })) << berthd.errors();
  berthd.signal(SIGTERM);
  EXPECT_EQ(berthd.wait(), 0);
  EXPECT_EQ(pins(), originals);
}

TEST_F(Berthd, ASignalWhileTheBusIsSilentEndsIt) {
  load_node("enforce");
  BerthdProcess berthd(node.arguments(), test::SystemBus::silent);
  ASSERT_TRUE(eventually([&] { return pins() != originals; }));
  berthd.signal(SIGTERM);
  EXPECT_EQ(berthd.wait(), 0);
  EXPECT_EQ(pins(), originals);
}

TEST_F(Berthd, AReadOnlyRuntimeDirectoryMeansObserve) {
  load_node("enforce");
  // A mount of its own, which root's rights do not override; gone with the namespace of the test's child.
  const pid_t child = fork();
  if (child == 0) {
    const std::string directory = node.runtime_dir();
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", directory.c_str(), "tmpfs", MS_RDONLY, nullptr) != 0) {
      _exit(100);
    }
    int result = 1;
    {
      BerthdProcess berthd(node.arguments());
      const auto ready = berthd.wait_notified("READY=1");
      const auto said = berthd.errors();
      berthd.signal(SIGTERM);
      if (ready.find("STATUS=observe") != std::string::npos &&
          said.find("undo journal") != std::string::npos && said.find(directory) != std::string::npos &&
          berthd.wait() == 0) {
        result = 0;
      }
    }
    _exit(result);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WEXITSTATUS(status) == 100) GTEST_SKIP() << "no mount namespaces for this user";
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(pins(), originals);
}

TEST_F(Berthd, MistakesOnTheCommandLineExitWithTwo) {
  const auto ended = run_berthd({"--enforce"});
  EXPECT_EQ(ended.status, 2);
  EXPECT_EQ(lines(ended.errors), 1U) << ended.errors;
  EXPECT_EQ(run_berthd({"--version"}).output, "berthd " BERTH_VERSION "\n");
}

TEST_F(Berthd, ServesTheWatchdog) {
  load_node("observe");
  setenv("WATCHDOG_USEC", "400000", 1);
  BerthdProcess berthd(node.arguments());
  unsetenv("WATCHDOG_USEC");
  EXPECT_NE(berthd.wait_notified("WATCHDOG=1"), "");
  EXPECT_NE(berthd.wait_notified("WATCHDOG=1"), "");
}

// NVIDIA's library is found by its name, as on a host that has it.
class BerthdWithGpus : public Berthd {
 protected:
  void SetUp() override {
    setenv("LD_LIBRARY_PATH", FAKE_NVML_DIR, 1);
    berth::test::add_pci(node.host(), "0000:3b:00.0", {});
    nvml.add("0000:3b:00.0");
  }
  void TearDown() override { unsetenv("LD_LIBRARY_PATH"); }
  berth::test::FakeNvml nvml;
};

TEST_F(BerthdWithGpus, SaysWhatIsWrongWithAGpu) {
  load_node("observe");
  nvml.write("0000:3b:00.0/handle", "15");
  BerthdProcess berthd(node.arguments());
  ASSERT_NE(berthd.wait_notified("READY=1"), "");
  EXPECT_TRUE(eventually([&] {
    return berthd.errors().find("GPU 0000:3b:00.0 (PCI 10de:2330) is unhealthy: NVML: GPU is lost") !=
           std::string::npos;
  })) << berthd.errors();
  berthd.signal(SIGTERM);
  EXPECT_EQ(berthd.wait(), 0);
}

TEST_F(BerthdWithGpus, ADriverThatHangsKeepsItNeitherFromItsWorkNorFromItsEnd) {
  load_node("enforce");
  nvml.write("hang", "");
  BerthdProcess berthd(node.arguments());
  ASSERT_NE(berthd.wait_notified("READY=1"), "");
  EXPECT_NE(pins(), originals);
  berthd.signal(SIGTERM);
  EXPECT_EQ(berthd.wait(), 0);
  EXPECT_EQ(pins(), originals);
}

TEST_F(BerthdWithGpus, OnceWaitsForTheirDrivers) {
  load_node("observe");
  nvml.write("0000:3b:00.0/handle", "15");
  const auto ended = run_berthd(arguments({"--once"}));
  EXPECT_EQ(ended.status, 0);
  EXPECT_NE(ended.errors.find("NVML: GPU is lost"), std::string::npos) << ended.errors;
}

}  // namespace
}  // namespace berth::daemon
