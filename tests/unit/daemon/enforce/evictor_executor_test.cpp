// SPDX-License-Identifier: Apache-2.0
// Executors of Spark, and what command lines say.
#include "tests/unit/daemon/enforce/evictor_fixture.h"
#include "tests/unit/spark/hanging_file.h"

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

}  // namespace
}  // namespace berth::daemon
