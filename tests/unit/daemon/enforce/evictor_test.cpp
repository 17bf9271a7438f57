// SPDX-License-Identifier: Apache-2.0
#include "daemon/enforce/evictor.h"

#include "tests/patience.h"
#include "tests/unit/cgroup/child.h"
#include "tests/unit/cgroup/fake_tree.h"
#include "tests/unit/spark/hanging_file.h"

#include <csignal>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace berth::daemon {
namespace {

using cgroup::test::Child;
using model::EvictionStep;

// Stops units by what the test says.
class FakeUnits final : public cgroup::UnitStopper {
 public:
  model::Result<void> stop_unit(const std::string& unit, const std::function<bool()>& is_same_run) override {
    asked.push_back(unit);
    if (!is_same_run()) return model::fail(model::ErrorKind::refused, "it restarted");
    return answer;
  }
  std::vector<std::string> asked;
  model::Result<void> answer;
};

class EvictorTest : public testing::Test {
 protected:
  static constexpr const char* kId = "batch/x";

  using Told = std::vector<std::string>;

  EvictorTest() {
    std::filesystem::create_directories(tree.root() / "batch");
    make_group();
  }
  void make_group() {
    tree.make(kId);
    tree.write(kId, "memory.current", "4096\n");
    tree.write(kId, "cgroup.kill", "");
    tree.write(kId, "cgroup.procs", "");
    target.cgroup = *cgroup::Cgroup::open(tree.root(), kId);
    target.identity.id = kId;
    workload.id = kId;
  }
  void run_in_it(std::initializer_list<const Child*> children) {
    std::string pids;
    for (const Child* child : children) pids += std::to_string(child->pid()) + "\n";
    tree.write(kId, "cgroup.procs", pids);
  }
  void name_invocation(const std::string& id) {
    const auto group = tree.root() / kId;
    ASSERT_EQ(setxattr(group.c_str(), "user.invocation_id", id.data(), id.size(), 0), 0);
  }
  void empty_group() { tree.write(kId, "cgroup.events", "populated 0\nfrozen 0\n"); }
  bool was_killed() const { return tree.read(kId, "cgroup.kill") == "1"; }

  static model::Action action_of(EvictionStep how = EvictionStep::terminate, double grace_s = 30) {
    return {model::EvictAction{kId, how, 4096, grace_s}, "spark", "d-000000000001", "because"};
  }
  std::vector<std::string> begin(EvictionStep how = EvictionStep::terminate, double grace_s = 30) {
    const auto begun = evictor.begin(target, workload, action_of(how, grace_s), now);
    return begun ? told(*begun) : std::vector<std::string>{begun.error().message()};
  }
  std::vector<std::string> after(double seconds) {
    now += seconds;
    return told(evictor.advance(now));
  }
  static std::vector<std::string> told(const std::vector<LogEntry>& entries) {
    std::vector<std::string> list;
    for (const auto& entry : entries) {
      EXPECT_EQ(entry.kind, "evict");
      EXPECT_EQ(entry.decision, "d-000000000001");
      EXPECT_EQ(entry.workload, kId);
      list.push_back(entry.attribute + (entry.new_value.empty() ? "" : " " + entry.new_value) + " " +
                     entry.result);
    }
    return list;
  }
  void evict_it() {
    Child child;
    run_in_it({&child});
    ASSERT_EQ(begin(), (Told{"terminate SIGTERM applied"}));
    EXPECT_TRUE(dies_of(child, SIGTERM));
    empty_group();
    ASSERT_EQ(after(0.2), (Told{"end applied"}));
  }
  static bool dies_of(Child& child, int signal) {
    return berth::test::eventually([&] { return child.died_of() != 0; }) && child.died_of() == signal;
  }
  cgroup::test::FakeTree tree;
  cgroup::FoundWorkload target;
  model::Workload workload;
  FakeUnits units;
  double now = 1000;
  Evictor evictor{
      {.proc_root = "/proc", .units = [this] { return &units; }, .monotonic = [this] { return now; }}};
};

// A pod has two containers and a sandbox. None of them may end alone.
class PodEvictorTest : public testing::Test {
 protected:
  using Told = std::vector<std::string>;
  static std::string container(char digit) { return kPod + "/" + std::string(64, digit); }

  PodEvictorTest() {
    std::filesystem::create_directories(tree.root() / kPod);
    tree.make(kPod);
    tree.write(kPod, "memory.current", "8192\n");
    tree.write(kPod, "cgroup.kill", "");
    tree.write(kPod, "cgroup.procs", "");
    for (const char digit : {'a', 'b', 'c'}) {
      const std::string id = container(digit);
      tree.make(id);
      tree.write(id, "cgroup.kill", "");
      tree.write(id, "cgroup.procs", "");
      if (digit == 'c') continue;  // the sandbox
      cgroup::FoundWorkload& one = found[id];
      one.cgroup = *cgroup::Cgroup::open(tree.root(), id);
      one.identity.id = id;
      one.systemd_unit = "";
    }
  }
  void run_in(char digit, const Child& child) {
    tree.write(container(digit), "cgroup.procs", std::to_string(child.pid()) + "\n");
  }
  model::Result<std::vector<LogEntry>> begin(char digit) {
    model::Workload workload;
    workload.id = container(digit);
    const model::Action action{model::EvictAction{workload.id, EvictionStep::terminate, 4096, 30}, "spark",
                               "d-000000000001", "because"};
    return evictor.begin(found.at(workload.id), workload, action, now, found);
  }
  static Told told(const std::vector<LogEntry>& entries) {
    Told list;
    for (const auto& entry : entries) list.push_back(entry.attribute + " " + entry.new_value);
    return list;
  }
  Told after(double seconds) {
    now += seconds;
    return told(evictor.advance(now));
  }
  bool is_being_evicted(char digit) const {
    const auto* mark = evictor.marks().of(container(digit), found.at(container(digit)).cgroup->id());
    return mark != nullptr && mark->evicted_at;
  }

  static inline const std::string kPod = "kubepods/besteffort/pod1-2";
  cgroup::test::FakeTree tree;
  Evictor::Found found;
  double now = 1000;
  Evictor evictor{{.proc_root = "/proc",
                   .units = [] { return static_cast<cgroup::UnitStopper*>(nullptr); },
                   .monotonic = [this] { return now; }}};
};

TEST_F(PodEvictorTest, OfAContainerItsWholePodEndsAndKubernetesIsAskedFirst) {
  Child first;
  Child second;
  Child sandbox;
  run_in('a', first);
  run_in('b', second);
  run_in('c', sandbox);
  const auto begun = begin('a');
  ASSERT_TRUE(begun) << begun.error().message();
  EXPECT_EQ(told(*begun), (Told{"decommission pod eviction"}));
  EXPECT_TRUE(is_being_evicted('a') && is_being_evicted('b')) << "both end";
  EXPECT_EQ(after(29), Told());
  EXPECT_EQ(first.died_of(), 0) << "Kubernetes has the time of a step";
  EXPECT_EQ(after(1), (Told{"terminate SIGTERM"}));
  for (Child* child : {&first, &second, &sandbox})
    EXPECT_TRUE(berth::test::eventually([&] { return child->died_of() == SIGTERM; }));
  tree.write(kPod, "cgroup.events", "populated 0\nfrozen 0\n");
  EXPECT_EQ(after(0.2), (Told{"end "}));
  EXPECT_FALSE(is_being_evicted('a') || is_being_evicted('b'));
}

TEST_F(PodEvictorTest, WhatIsLeftOfAPodIsKilledInThePodsOwnGroup) {
  Child stubborn([] { std::signal(SIGTERM, SIG_IGN); });
  run_in('b', stubborn);
  ASSERT_TRUE(begin('b'));
  EXPECT_EQ(after(30), (Told{"terminate SIGTERM"}));
  EXPECT_EQ(after(30), (Told{"kill cgroup.kill"}));
  EXPECT_EQ(tree.read(kPod, "cgroup.kill"), "1");
  EXPECT_EQ(tree.read(container('b'), "cgroup.kill"), "") << "no container alone";
}

TEST_F(PodEvictorTest, AnotherContainerOfThePodIsNotEvictedOnItsOwn) {
  Child child;
  run_in('a', child);
  ASSERT_TRUE(begin('a'));
  const auto second = begin('b');
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message().find("its pod is being evicted already"), std::string::npos);
}

TEST_F(PodEvictorTest, APodWithALatencySensitiveContainerStays) {
  Child child;
  run_in('a', child);
  found.at(container('b')).identity.workload_class = model::WorkloadClass::latency_sensitive;
  const auto begun = begin('a');
  ASSERT_FALSE(begun);
  EXPECT_EQ(begun.error().kind(), model::ErrorKind::refused);
  EXPECT_NE(begun.error().message().find("in it is latency-sensitive"), std::string::npos);
}

TEST_F(PodEvictorTest, AGroupThatAUserNamedLikeAPodEndsAlone) {
  Child child;
  run_in('a', child);
  found.at(container('a')).user = 1000;
  const auto begun = begin('a');
  ASSERT_TRUE(begun) << begun.error().message();
  EXPECT_EQ(told(*begun), (Told{"terminate SIGTERM"}));
}

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

TEST_F(EvictorTest, WhoseExecutorWasEvictedIsKnownAsLongAsMemoryIsShort) {
  Child child;
  run_in_it({&child});
  workload.spark = model::SparkIdentity{"app-1", model::SparkRole::executor, "0"};
  begin();
  ASSERT_EQ(evictor.marks().apps, (std::map<std::string, double>{{"app-1", 1000}}));
  evictor.look_at_memory(true, 1500, 60);
  evictor.look_at_memory(false, 1559, 60);
  EXPECT_EQ(evictor.marks().apps.size(), 1U);
  evictor.look_at_memory(false, 1560, 60);
  EXPECT_TRUE(evictor.marks().apps.empty());
}

TEST_F(EvictorTest, WhoEndsOneByHandHoldsNobody) {
  Child child;
  run_in_it({&child});
  workload.spark = model::SparkIdentity{"app-1", model::SparkRole::executor, "0"};
  auto action = action_of();
  action.policy = kByHand;
  ASSERT_TRUE(evictor.begin(target, workload, action, now));
  EXPECT_TRUE(evictor.marks().apps.empty());
}

TEST(EvictionMarksTest, AClockThatWentBackHoldsNobodyForLong) {
  EvictionMarks marks;
  marks.apps = {{"app-1", 2000}, {"app-2", 990}};
  marks.look_at_memory(false, 1000, 60);
  EXPECT_EQ(marks.apps, (std::map<std::string, double>{{"app-2", 990}}));
  marks.look_at_memory(false, 1001, 0);
  EXPECT_TRUE(marks.apps.empty()) << "0: nobody";
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

// An executor by its command line and the signals it handles, as a JVM with decommissioning would be.
class ExecutorTest : public EvictorTest {
 protected:
  ExecutorTest() {
    workload.spark = model::SparkIdentity{"app-1", model::SparkRole::executor, "1"};
    if (setxattr((tree.root() / kId).c_str(), "user.berth.test", "1", 1, 0) != 0) markable = false;
  }
  // /proc of the one process, whose signals are real.
  void describe(pid_t pid, const std::string& main_class, const char* caught) {
    const auto directory = std::to_string(pid) + "/";
    using namespace std::string_literals;
    tree.write_proc(directory + "cmdline", "java\0-Xmx512m\0"s + main_class + "\0--executor-id\0"s + "1\0"s);
    tree.write_proc(directory + "status", "Name:\tjava\nSigIgn:\t0000000000000000\nSigCgt:\t"s + caught +
                                              "\nCapInh:\t0000000000000000\n");
  }
  static constexpr const char* kExecutor = "org.apache.spark.executor.CoarseGrainedExecutorBackend";
  static constexpr const char* kHandlesPower = "20000001a1005ccf";
  static constexpr const char* kHandlesOthers = "2000000181005ccf";
  bool markable = true;
  Evictor of_executors{
      {.proc_root = tree.proc(), .units = [this] { return &units; }, .monotonic = [this] { return now; }}};

  std::vector<std::string> decommission(Evictor& by) {
    return told(by.begin(target, workload, action_of(EvictionStep::decommission), now).value());
  }
  std::vector<std::string> then(double seconds) {
    now += seconds;
    return told(of_executors.advance(now));
  }
};

TEST_F(ExecutorTest, OneThatHandlesItIsDecommissionedFirst) {
  if (!markable) GTEST_SKIP() << "the temporary directory has no user attributes";
  Child child;
  run_in_it({&child});
  describe(child.pid(), kExecutor, kHandlesPower);
  EXPECT_EQ(decommission(of_executors), (Told{"decommission SIGPWR applied"}));
  EXPECT_TRUE(dies_of(child, SIGPWR)) << "this one does not really handle it";
}

TEST_F(ExecutorTest, ItHasItsGraceBeforeSigterm) {
  if (!markable) GTEST_SKIP() << "the temporary directory has no user attributes";
  Child child([] { std::signal(SIGPWR, SIG_IGN); });
  run_in_it({&child});
  describe(child.pid(), kExecutor, kHandlesPower);
  EXPECT_EQ(decommission(of_executors), (Told{"decommission SIGPWR applied"}));
  EXPECT_EQ(then(29), Told{});
  EXPECT_EQ(then(1), (Told{"terminate SIGTERM applied"}));
  EXPECT_TRUE(dies_of(child, SIGTERM));
}

TEST_F(ExecutorTest, NobodyIsDecommissionedTwiceEvenByAnotherBerthd) {
  if (!markable) GTEST_SKIP() << "the temporary directory has no user attributes";
  Child child([] { std::signal(SIGPWR, SIG_IGN); });
  run_in_it({&child});
  describe(child.pid(), kExecutor, kHandlesPower);
  EXPECT_EQ(decommission(of_executors), (Told{"decommission SIGPWR applied"}));
  Evictor next{
      {.proc_root = tree.proc(), .units = [this] { return &units; }, .monotonic = [this] { return now; }}};
  EXPECT_EQ(decommission(next), (Told{"terminate SIGTERM applied"}));
}

TEST_F(ExecutorTest, OneThatDoesNotHandleItIsTerminatedAtOnce) {
  Child child;
  run_in_it({&child});
  describe(child.pid(), kExecutor, kHandlesOthers);
  EXPECT_EQ(decommission(of_executors), (Told{"terminate SIGTERM applied"}));
  EXPECT_TRUE(dies_of(child, SIGTERM));
}

TEST_F(ExecutorTest, WhoIsNoExecutorByItsCommandLineGetsNoSigpwr) {
  for (const char* main_class :
       {"org.apache.spark.deploy.worker.Worker", "com.example.ExecutorBackend", "org.apache.spark."}) {
    Child child;
    run_in_it({&child});
    describe(child.pid(), main_class, kHandlesPower);
    Evictor fresh{
        {.proc_root = tree.proc(), .units = [this] { return &units; }, .monotonic = [this] { return now; }}};
    EXPECT_EQ(decommission(fresh), (Told{"terminate SIGTERM applied"})) << main_class;
  }
}

TEST_F(ExecutorTest, NorAWorkloadThatIsNone) {
  Child child;
  run_in_it({&child});
  describe(child.pid(), kExecutor, kHandlesPower);
  workload.spark.reset();
  EXPECT_EQ(decommission(of_executors), (Told{"terminate SIGTERM applied"}))
      << "its cgroup may be the worker's, with all its executors";
}

TEST_F(ExecutorTest, AStatusThatCannotBeReadIsNoConsent) {
  Child child;
  run_in_it({&child});
  describe(child.pid(), kExecutor, "nonsense");
  EXPECT_EQ(decommission(of_executors), (Told{"terminate SIGTERM applied"}));
}

TEST_F(ExecutorTest, AVictimThatCannotBeLookedAtIsSparedForAWhile) {
  Child child;
  run_in_it({&child});
  describe(child.pid(), kExecutor, kHandlesOthers);
  {
    const spark::test::HangingFile hanging(tree.proc() / std::to_string(child.pid()) / "cmdline");
    const auto refused = of_executors.begin(target, workload, action_of(), now);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind(), model::ErrorKind::transient);
    EXPECT_NE(refused.error().message().find("command lines"), std::string::npos);
  }
  const auto* mark = of_executors.marks().of(kId, target.cgroup->id());
  ASSERT_NE(mark, nullptr);
  EXPECT_EQ(mark->evicted_at, std::nullopt) << "the next eviction is of another workload";
  now += Evictor::kLooksAgain_s + 1;
  of_executors.forget_departed({{kId, target}});
  EXPECT_EQ(of_executors.marks().of(kId, target.cgroup->id()), nullptr);
  describe(child.pid(), kExecutor, kHandlesOthers);
  EXPECT_TRUE(berth::test::eventually(
      [&] { return of_executors.begin(target, workload, action_of(), now).has_value(); }));
}

TEST_F(ExecutorTest, CommandLinesThatAUserHidesSpareNobody) {
  target.user = 1000;
  target.ground = {.user = 1000};
  Child child;
  run_in_it({&child});
  describe(child.pid(), kExecutor, kHandlesOthers);
  const spark::test::HangingFile hanging(tree.proc() / std::to_string(child.pid()) / "cmdline");
  EXPECT_TRUE(of_executors.begin(target, workload, action_of(), now).has_value());
}

TEST_F(ExecutorTest, CommandLinesInASessionSpareNobodyUnlessItsRuleSaysSo) {
  target.identity.id = "user.slice/user-1000.slice/session-1.scope";
  Child child;
  run_in_it({&child});
  describe(child.pid(), kExecutor, kHandlesOthers);
  const spark::test::HangingFile hanging(tree.proc() / std::to_string(child.pid()) / "cmdline");
  target.kept_by_rule = true;
  const auto refused = of_executors.begin(target, workload, action_of(), now);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), model::ErrorKind::transient);
  target.kept_by_rule = false;
  EXPECT_TRUE(of_executors.begin(target, workload, action_of(), now).has_value());
}

// Processes that must not be hit.

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

TEST_F(EvictorTest, ProcessesThatAUserMovesOutOfAVictimEndWithIt) {
  target.user = 1000;
  Child early([] { std::signal(SIGTERM, SIG_IGN); });
  Child late([] { std::signal(SIGTERM, SIG_IGN); });
  run_in_it({&early, &late});
  EXPECT_EQ(begin(), (Told{"terminate SIGTERM applied"}));
  run_in_it({&late});
  EXPECT_EQ(after(0.2), Told());
  EXPECT_EQ(early.died_of(), 0);
  run_in_it({});
  empty_group();
  EXPECT_EQ(after(0.2), (Told{"kill SIGKILL applied", "end applied"}));
  EXPECT_TRUE(dies_of(early, SIGKILL));
  EXPECT_TRUE(dies_of(late, SIGKILL));
}

TEST_F(EvictorTest, ProcessesThatRootMovesOutOfAVictimAreLeft) {
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

TEST_F(EvictorTest, ANameThatAUserGaveSparesNobody) {
  target.user = 1000;
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
  target.user = 1000;
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
  target.user = 1000;
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
  target.user = 1000;
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
