// SPDX-License-Identifier: Apache-2.0
// Discovery and sampling on a real cgroup v2 tree, whichever controllers it has. Needs root; makes groups
// named berth-host-PID and removes them.
#include "cgroup/discovery.h"
#include "cgroup/hierarchy.h"
#include "cgroup/processes.h"
#include "cgroup/sampler.h"
#include "tests/host/real_tree.h"
#include "tests/patience.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace berth::cgroup {
namespace {

using model::WorkloadClass;
using model::WorkloadRule;
using test::Process;
using test::RealTree;
using Ids = std::vector<std::string>;

const std::string kId(64, 'a');

WorkloadRule best_effort(const std::string& match) {
  WorkloadRule made;
  made.match = match;
  made.origin = "test:1";
  made.workload_class = WorkloadClass::best_effort;
  return made;
}

double seconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

std::size_t open_files() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

// Of all inotify instances of this process.
std::size_t watches() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fdinfo")) {
    std::ifstream lines(entry.path());
    for (std::string line; std::getline(lines, line);) count += line.starts_with("inotify ") ? 1 : 0;
  }
  return count;
}

class CgroupHost : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (geteuid() != 0) GTEST_SKIP() << "needs root";
  }
  void start(std::vector<WorkloadRule> rules) {
    auto started = Discovery::start(tree.hierarchy(), std::move(rules));
    ASSERT_TRUE(started) << started.error().message();
    discovery = std::move(*started);
    changes = discovery->process();
  }
  bool wait(const std::function<bool()>& done) {
    changes = {};
    const auto deadline = std::chrono::steady_clock::now() + 2 * berth::test::kPatience;
    while (!done()) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
      if (left.count() <= 0) return false;
      pollfd waiting{discovery->fd(), POLLIN, 0};
      poll(&waiting, 1, static_cast<int>(left.count()));
      const Discovery::Changes more = discovery->process();
      changes.appeared.insert(changes.appeared.end(), more.appeared.begin(), more.appeared.end());
      changes.vanished.insert(changes.vanished.end(), more.vanished.begin(), more.vanished.end());
      changes.warnings.insert(changes.warnings.end(), more.warnings.begin(), more.warnings.end());
    }
    return true;
  }
  bool has(const std::string& name) const { return discovery->workloads().contains(tree.id(name)); }
  // Every event so far is taken in once a process that moves now is seen.
  void catch_up() {
    tree.make("marker");
    Process process;
    process.move_to(tree.path("marker"));
    ASSERT_TRUE(wait([&] { return has("marker"); }));
    process.end();
    ASSERT_TRUE(wait([&] { return !has("marker"); }));
    tree.remove("marker");
  }

  RealTree tree;
  std::unique_ptr<Discovery> discovery;
  Discovery::Changes changes;
};

TEST_F(CgroupHost, TheTreeIsFoundAndSaysWhatItLacks) {
  const Hierarchy& hierarchy = tree.hierarchy();
  EXPECT_TRUE(std::filesystem::exists(hierarchy.root / "cgroup.controllers"));
  EXPECT_EQ(hierarchy.hybrid, !hierarchy.v1_mounts.empty());
  for (const model::Capability& capability : capabilities(hierarchy)) {
    EXPECT_FALSE(capability.detail.empty()) << capability.name;
    if (capability.name == "psi") {
      EXPECT_EQ(capability.available, std::filesystem::exists(hierarchy.root / "cpu.pressure"));
    }
    if (capability.name == "cpuset-controller") {
      EXPECT_EQ(capability.available, hierarchy.controllers.contains("cpuset"));
    }
  }
}

TEST_F(CgroupHost, AGroupIsAWorkloadWhileItHoldsAProcess) {
  start({best_effort(tree.id("*"))});
  const double begun = seconds(CLOCK_REALTIME);
  tree.make("a");
  Process process;
  process.move_to(tree.path("a"));
  ASSERT_TRUE(wait([&] { return has("a"); }));
  // Times of files are of the last clock tick.
  EXPECT_GE(discovery->workloads().at(tree.id("a")).identity.created, begun - 0.5);
  EXPECT_LE(discovery->workloads().at(tree.id("a")).identity.created, seconds(CLOCK_REALTIME));
  process.end();
  ASSERT_TRUE(wait([&] { return !has("a"); }));
  EXPECT_EQ(changes.vanished, Ids{tree.id("a")});
  EXPECT_TRUE(std::filesystem::exists(tree.path("a")));
  Process next;
  next.move_to(tree.path("a"));
  ASSERT_TRUE(wait([&] { return has("a"); }));
}

TEST_F(CgroupHost, AGroupThatWasThereBeforeIsFound) {
  tree.make("x/y");
  Process process;
  process.move_to(tree.path("x/y"));
  start({best_effort(tree.id("x/y"))});
  EXPECT_EQ(changes.appeared, Ids{tree.id("x/y")});
}

TEST_F(CgroupHost, AGroupThatTookOverAPathIsAnother) {
  start({best_effort(tree.id("*"))});
  tree.make("a");
  auto process = std::make_unique<Process>();
  process->move_to(tree.path("a"));
  ASSERT_TRUE(wait([&] { return has("a"); }));
  const auto before = discovery->workloads().at(tree.id("a")).cgroup;
  process->end();
  tree.remove("a");
  tree.make("a");
  Process next;
  next.move_to(tree.path("a"));
  ASSERT_TRUE(
      wait([&] { return has("a") && discovery->workloads().at(tree.id("a")).cgroup->id() != before->id(); }));
  EXPECT_FALSE(before->is_current());
  EXPECT_EQ(changes.vanished, Ids{tree.id("a")});
  EXPECT_EQ(changes.appeared, Ids{tree.id("a")});
}

TEST_F(CgroupHost, AContainersInnerGroupPopulatesItsScope) {
  const std::string scope = "libpod-" + kId + ".scope";
  start({best_effort("**/libpod-*.scope")});
  tree.make(scope + "/container");
  Process process;
  process.move_to(tree.path(scope + "/container"));
  ASSERT_TRUE(wait([&] { return has(scope); }));
  EXPECT_EQ(discovery->workloads().at(tree.id(scope)).kind, Kind::podman);
  EXPECT_FALSE(has(scope + "/container"));
}

TEST_F(CgroupHost, AGroupThatProcessesLeaveOneAfterTheOtherWasNeverEmpty) {
  tree.make("a");
  Process first;
  first.move_to(tree.path("a"));
  const auto group = Cgroup::open(tree.hierarchy().root, tree.id("a")).value();
  const auto watch = EmptyWatch::of(*group).value();
  Process second;
  second.move_to(tree.path("a"));
  first.end();
  usleep(50'000);  // a notice may come 10 ms late
  EXPECT_FALSE(watch.may_have_been_empty());
}

TEST_F(CgroupHost, AMomentWithoutProcessesIsRemembered) {
  tree.make("a");
  Process first;
  first.move_to(tree.path("a"));
  const auto group = Cgroup::open(tree.hierarchy().root, tree.id("a")).value();
  const auto watch = EmptyWatch::of(*group).value();
  first.end();
  Process second;
  second.move_to(tree.path("a"));
  EXPECT_TRUE(is_populated(*group).value());
  EXPECT_TRUE(berth::test::eventually([&] { return watch.may_have_been_empty(); }));
  EXPECT_TRUE(watch.may_have_been_empty()) << "however often it is asked";
}

TEST_F(CgroupHost, AMarkIsSeenAndAnotherOwnersClaimIsNot) {
  start({});
  tree.make("a");
  Process process;
  process.move_to(tree.path("a"));
  ASSERT_EQ(setxattr(tree.path("a").c_str(), "user.berth.class", "latency-sensitive", 17, 0), 0);
  ASSERT_TRUE(wait([&] { return has("a"); }));
  ASSERT_EQ(chown(tree.path("a").c_str(), 1000, 1000), 0);
  ASSERT_TRUE(wait([&] { return !has("a"); }));
  EXPECT_EQ(changes.warnings.size(), 1U);
}

TEST_F(CgroupHost, AThousandGroupsComeAndGoWithoutATrace) {
  start({best_effort(tree.id("**"))});
  const std::size_t files = open_files();
  const std::size_t watched = watches();
  for (int i = 0; i < 1000; ++i) tree.make("g" + std::to_string(i));
  {
    std::vector<Process> processes;
    for (int i = 0; i < 100; ++i) processes.emplace_back().move_to(tree.path("g" + std::to_string(i)));
    ASSERT_TRUE(wait([&] { return discovery->workloads().size() == 100; }));
    // One a group, and one for the events of each that a rule matches.
    EXPECT_EQ(watches(), watched + 2000);
    EXPECT_EQ(open_files(), files + 100);
  }
  ASSERT_TRUE(wait([&] { return discovery->workloads().empty(); }));
  for (int i = 0; i < 1000; ++i) tree.remove("g" + std::to_string(i));
  catch_up();
  EXPECT_TRUE(wait([&] { return watches() == watched; }));
  EXPECT_EQ(open_files(), files);
  EXPECT_TRUE(changes.warnings.empty());
}

TEST_F(CgroupHost, AGroupThatVanishesBetweenTwoReadsIsGone) {
  tree.make("a");
  Sampler sampler;
  const std::size_t files = open_files();
  sampler.add("a", Cgroup::open(tree.hierarchy().root, tree.id("a")).value());
  EXPECT_FALSE(sampler.sample(1).at("a").gone);
  EXPECT_GT(open_files(), files + 1);
  tree.remove("a");
  const auto reading = sampler.sample(2).at("a");
  EXPECT_TRUE(reading.gone);
  EXPECT_FALSE(reading.sample);
  EXPECT_EQ(open_files(), files + 1) << "only the directory is still open";
  EXPECT_TRUE(sampler.sample(3).at("a").gone);
}

TEST_F(CgroupHost, AVanishedGroupCannotBeReadOrWritten) {
  tree.make("a");
  const auto cgroup = Cgroup::open(tree.hierarchy().root, tree.id("a")).value();
  const auto refused = cgroup->write("cgroup.procs", "nonsense");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().errno_value(), EINVAL);
  tree.remove("a");
  EXPECT_EQ(cgroup->read("cpu.stat").error().kind(), model::ErrorKind::gone);
  EXPECT_EQ(cgroup->write("cgroup.procs", "0").error().kind(), model::ErrorKind::gone);
  EXPECT_FALSE(cgroup->is_current());
}

TEST_F(CgroupHost, GroupsThatVanishWhileTheyAreLookedAtDoNoHarm) {
  start({best_effort(tree.id("**"))});
  const std::size_t watched = watches();
  // Another process makes and removes groups as fast as it can, while this one walks them.
  const std::filesystem::path base = tree.base();
  Process churner([base, n = 0]() mutable {
    const std::filesystem::path group = base / ("churn" + std::to_string(n++ % 50));
    mkdir(group.c_str(), 0755);
    mkdir((group / "inner").c_str(), 0755);
    rmdir((group / "inner").c_str());
    rmdir(group.c_str());
  });
  const double end = seconds(CLOCK_MONOTONIC) + 2;
  while (seconds(CLOCK_MONOTONIC) < end) {
    discovery->process();
    discovery->set_rules({best_effort(tree.id("**"))});
  }
  churner.end();
  for (int i = 0; i < 50; ++i) test::remove_group(base / ("churn" + std::to_string(i)));
  catch_up();
  EXPECT_TRUE(wait([&] { return watches() == watched; }));
}

TEST_F(CgroupHost, AnOverflowingQueueIsMadeUpForByAWalk) {
  tree.make("a");
  tree.make("b");
  start({best_effort(tree.id("*"))});
  std::ifstream limit_file("/proc/sys/fs/inotify/max_queued_events");
  int limit = 0;
  limit_file >> limit;
  // Each is an event for the group and one for its parent.
  const auto flood = [&] {
    for (int i = 0; i <= limit; ++i) {
      ASSERT_EQ(setxattr(tree.path(i % 2 ? "a" : "b").c_str(), "user.probe", "1", 1, 0), 0);
    }
  };
  const auto warned = [&] {
    return std::count_if(changes.warnings.begin(), changes.warnings.end(),
                         [](const std::string& text) { return text.find("overflowed") != text.npos; });
  };
  flood();
  ASSERT_TRUE(wait([&] { return warned() > 0; }));
  EXPECT_EQ(warned(), 1);
  flood();
  tree.make("late");
  tree.remove("b");
  Process process;
  process.move_to(tree.path("late"));
  ASSERT_TRUE(wait([&] { return has("late"); }));
  EXPECT_EQ(warned(), 0) << "it is said once";
}

// In a user namespace of its own, where the number of watches can be limited without touching those of other
// processes.
TEST_F(CgroupHost, WithoutWatchesTheTreeIsWalkedEveryWhile) {
  for (int i = 0; i < 40; ++i) tree.make("g" + std::to_string(i) + "/inner");
  tree.make("g39/inner/late");
  Process late;
  const auto in_child = [&]() -> int {
    if (unshare(CLONE_NEWUSER) != 0) return 77;
    std::ofstream("/proc/self/setgroups") << "deny";
    std::ofstream("/proc/self/uid_map") << "0 0 1";
    std::ofstream limit("/proc/sys/user/max_inotify_watches");
    limit << 20;
    if (!limit.flush()) return 77;
    start({best_effort(tree.id("g*/inner/late"))});
    const auto said = std::count_if(
        changes.warnings.begin(), changes.warnings.end(),
        [](const std::string& text) { return text.find("no inotify watch is left") != text.npos; });
    if (said != 1 || !discovery->workloads().empty()) return 1;
    // The parent may move the process, and does so now.
    kill(getppid(), SIGUSR1);
    if (!wait([&] { return has("g39/inner/late"); })) return 2;
    return changes.warnings.empty() ? 0 : 3;
  };
  sigset_t usr1;
  sigemptyset(&usr1);
  sigaddset(&usr1, SIGUSR1);
  sigprocmask(SIG_BLOCK, &usr1, nullptr);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(in_child());
  const timespec patience{berth::test::kPatience.count(), 0};
  if (sigtimedwait(&usr1, nullptr, &patience) == SIGUSR1) late.move_to(tree.path("g39/inner/late"));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no user namespaces with a limit of their own here";
  EXPECT_EQ(WEXITSTATUS(status), 0) << "1: not degraded as expected, 2: never seen, 3: warned again";
}

TEST_F(CgroupHost, RatesAgreeWithTheProcessesOwnClock) {
  tree.make("busy");
  tree.make("idle");
  Process burner([] {});
  Process sleeper;
  burner.move_to(tree.path("busy"));
  sleeper.move_to(tree.path("idle"));
  clockid_t used{};
  ASSERT_EQ(clock_getcpuclockid(burner.pid(), &used), 0);
  Sampler sampler;
  for (const char* name : {"busy", "idle"}) {
    sampler.add(name, Cgroup::open(tree.hierarchy().root, tree.id(name)).value());
  }
  // On a busy machine the sleeper may begin late, and it uses a little until it sleeps.
  ASSERT_TRUE(berth::test::eventually([&] {
    std::ifstream file("/proc/" + std::to_string(sleeper.pid()) + "/stat");
    const std::string all((std::istreambuf_iterator<char>(file)), {});
    return all.find(") S ") != std::string::npos;
  }));
  // A busy machine may stop the test between two lines: both clocks are read before and after each sample.
  struct Clocks {
    double used, time;
  };
  const auto clocks = [used] { return Clocks{seconds(used), seconds(CLOCK_MONOTONIC)}; };
  const Clocks before_first = clocks();
  sampler.sample(0);
  const Clocks after_first = clocks();
  ASSERT_TRUE(berth::test::eventually([&] {
    const Clocks now = clocks();
    return now.time > after_first.time + 1 && now.used > after_first.used + 0.2;
  })) << "the burner got too little CPU to compare";
  const Clocks before_last = clocks();
  const auto readings = sampler.sample(1);
  const Clocks after_last = clocks();
  ASSERT_TRUE(readings.at("busy").sample);
  const double least = (before_last.used - after_first.used) / (after_last.time - before_first.time);
  const double most = (after_last.used - before_first.used) / (before_last.time - after_first.time);
  EXPECT_GT(readings.at("busy").sample->cpu_cores, 0.96 * least);
  EXPECT_LT(readings.at("busy").sample->cpu_cores, 1.04 * most);
  ASSERT_TRUE(readings.at("idle").sample);
  EXPECT_LT(readings.at("idle").sample->cpu_cores, 0.001);
}

TEST_F(CgroupHost, GroupsThatCannotBeNamedAreLeftOutAndSpoilNoOther) {
  const Ids unnameable{"caf\xe9", "\xff\xfe", "a\x01", "\xef\xbf\xbe"};
  for (const std::string& name : unnameable) tree.make(name);
  tree.make("\xff\xfe/inside");
  std::vector<Process> processes(unnameable.size() + 1);
  for (std::size_t i = 0; i < unnameable.size(); ++i) processes[i].move_to(tree.path(unnameable[i]));
  processes.back().move_to(tree.path("\xff\xfe/inside"));
  start({best_effort(tree.id("**"))});
  EXPECT_TRUE(discovery->workloads().empty());
  EXPECT_EQ(changes.warnings.size(), 1U);
  tree.make("a");
  tree.make("late\xff");
  Process good;
  good.move_to(tree.path("a"));
  Process bad;
  bad.move_to(tree.path("late\xff"));
  ASSERT_TRUE(wait([&] { return has("a"); }));
  catch_up();
  EXPECT_EQ(discovery->workloads().size(), 1U);
  EXPECT_TRUE(changes.warnings.empty());
}

TEST_F(CgroupHost, PressureIsReadWhereTheKernelHasIt) {
  if (!std::filesystem::exists(tree.hierarchy().root / "cpu.pressure")) GTEST_SKIP() << "no PSI";
  tree.make("a");
  Sampler sampler;
  sampler.add("a", Cgroup::open(tree.hierarchy().root, tree.id("a")).value());
  EXPECT_EQ(sampler.sample(0).at("a").cpu_pressure_some_avg10, 0.0);
}

TEST_F(CgroupHost, CreatedSurvivesWhatTheDirectoryForgets) {
  const double made = seconds(CLOCK_REALTIME);
  tree.make("a");
  Process process;
  process.move_to(tree.path("a"));
  const double moved = seconds(CLOCK_REALTIME);
  while (seconds(CLOCK_REALTIME) < moved + 1.2) usleep(10'000);
  // Attributes give the directory a time of its own, which then follows its children.
  ASSERT_EQ(setxattr(tree.path("a").c_str(), "user.probe", "1", 1, 0), 0);
  tree.make("a/child");
  tree.remove("a/child");
  start({best_effort(tree.id("a"))});
  const double created = discovery->workloads().at(tree.id("a")).identity.created;
  // Times of files are of the last clock tick.
  EXPECT_GE(created, made - 0.5);
  EXPECT_LE(created, moved + 0.5);
}

}  // namespace
}  // namespace berth::cgroup
