// SPDX-License-Identifier: Apache-2.0
#include "daemon/observe/observer.h"

#include "model/json.h"
#include "tests/unit/daemon/fake_node.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

namespace berth::daemon {
namespace {

using model::CpuSet;

class ObserverTest : public testing::Test {
 protected:
  std::unique_ptr<Observer> start(int history = 60) {
    auto observer =
        Observer::start(node.hierarchy(), node.settings().rules, node.proc(), node.sys(), history);
    if (!observer) throw std::runtime_error(observer.error().message());
    return std::move(*observer);
  }
  const model::Snapshot& tick(Observer& observer, double now) {
    observer.take_changes();
    messages = observer.read(now);
    return observer.assemble(
        {.holdings = holdings, .left_alone = left_alone, .overrides = *overrides, .standing = standing});
  }
  // Ticks until there is a sample of that time: rates are not taken over less than a millisecond.
  const model::Snapshot& tick_to_sample(Observer& observer, double now) {
    EXPECT_TRUE(test::eventually([&] {
      const auto& usage = only(tick(observer, now)).usage;
      return !usage.empty() && usage.back().time == now;
    }));
    return observer.snapshot();
  }
  static const model::Workload& only(const model::Snapshot& snapshot) {
    if (snapshot.workloads.size() != 1) throw std::runtime_error("not one workload");
    return snapshot.workloads.front();
  }

  test::FakeNode node;
  Holdings holdings;
  model::Standing standing;
  LeftAloneWorkloads left_alone;
  std::optional<std::string> warning;
  std::optional<Overrides> overrides{std::in_place, node.runtime_dir(), warning};
  std::vector<std::string> messages;
};

TEST_F(ObserverTest, ItsSnapshotCanBeReadBackWhateverTheTreeHolds) {
  node.add_group("batch/x");
  node.put("batch/x", "cpu.max", "17592186044415 1000");
  node.put("batch/x", "memory.high", "9223372036854767616");
  node.add_group("batch/caf\xe9");
  node.add_group("batch/caf\xe8");
  node.add_group("batch/a\x01");
  node.add_group("batch/b\\xff.service");
  auto observer = start();
  const auto& snapshot = tick(*observer, 1000);
  ASSERT_EQ(snapshot.workloads.size(), 2U);
  EXPECT_EQ(snapshot.workloads[1].cpu_quota_cores, std::nullopt);
  EXPECT_EQ(snapshot.workloads[1].memory_high_bytes, std::nullopt);
  const auto read = model::parse_snapshot(model::to_json(snapshot));
  ASSERT_TRUE(read) << read.error().message();
  auto workloads = snapshot.workloads;
  for (auto& workload : workloads) workload.cgroup_id = 0;  // no document has it
  EXPECT_EQ(read->snapshot.workloads, workloads);
}

TEST_F(ObserverTest, AddsUpWhatServicesUse) {
  node.add_group("batch/x");
  node.put("batch/x", "memory.current", "4096");
  auto observer = start();
  EXPECT_TRUE(tick(*observer, 1000).memory_readings.empty()) << "there is no service";
  node.add_group("web/a");
  node.add_group("web/b");
  node.put("web/a", "memory.current", "1000");
  node.put("web/b", "memory.current", "500");
  observer->add_eviction_duration(-1);
  for (int i = 1; i <= 20; ++i) observer->add_eviction_duration(i);
  const auto latest = [&] {
    const auto& readings = observer->snapshot().memory_readings;
    return readings.empty() ? std::uint64_t{0} : readings.back().bytes;
  };
  double now = 1001;
  ASSERT_TRUE(test::eventually([&] {
    tick(*observer, now += 1);
    return latest() == 1500;
  }));
  const std::size_t count = observer->snapshot().memory_readings.size();
  tick(*observer, now);
  EXPECT_EQ(observer->snapshot().memory_readings.size(), count) << "the same tick is one reading";
  ASSERT_EQ(observer->snapshot().eviction_durations_s.size(), 20U);
  EXPECT_EQ(observer->snapshot().eviction_durations_s.front(), 1);
}

// Its owner can make it threaded, or take the controller from all groups beside it.
TEST_F(ObserverTest, AUsersGroupWithoutTheMemoryControllerCountsByItsProcesses) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give directories away";
  node.configure("[[workload]]\nmatch = \"**/job\"\nclass = \"best-effort\"\n");
  for (const char* path : {"user", "user/job", "root", "root/job"}) node.add_group(path);
  for (const char* path : {"user", "user/job"}) ASSERT_EQ(chown((node.tree() / path).c_str(), 1000, 1000), 0);
  for (const char* path : {"user/job", "root/job"}) {
    std::filesystem::remove(node.tree() / path / "memory.current");
    node.put(path, "cgroup.procs", "7");
  }
  std::filesystem::create_directories(node.proc() / "7");
  std::ofstream(node.proc() / "7/statm") << "9000 3000 1000 1 0 1 0\n";
  auto observer = start();
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  EXPECT_TRUE(test::eventually([&] {
    static double now = 1000;
    tick(*observer, ++now);
    const auto& workloads = observer->snapshot().workloads;
    return workloads.size() == 2 && !workloads[1].usage.empty() && !workloads[0].usage.empty();
  }));
  EXPECT_EQ(observer->snapshot().workloads[0].usage.back().memory_bytes, std::nullopt);
  EXPECT_EQ(observer->snapshot().workloads[1].usage.back().memory_bytes, 2000 * page);
  EXPECT_EQ(observer->snapshot().workloads[1].user, 1000U);
}

TEST_F(ObserverTest, OfOneUsersProcessesALimitedNumberIsCountedInATick) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give directories away";
  node.configure("[[workload]]\nmatch = \"user/job*\"\nclass = \"best-effort\"\n");
  for (const char* path : {"user", "user/job1", "user/job2"}) {
    node.add_group(path);
    ASSERT_EQ(chown((node.tree() / path).c_str(), 1000, 1000), 0);
  }
  std::string many;
  const int most = static_cast<int>(Observer::kMostResidentOfUser);
  for (int pid = 1; pid <= most + 11; ++pid) {
    if (pid <= most + 10) many += std::to_string(pid) + "\n";
    std::filesystem::create_directories(node.proc() / std::to_string(pid));
    std::ofstream(node.proc() / std::to_string(pid) / "statm") << "9000 3000 1000 1 0 1 0\n";
  }
  for (const char* path : {"user/job1", "user/job2"})
    std::filesystem::remove(node.tree() / path / "memory.current");
  node.put("user/job1", "cgroup.procs", many);
  node.put("user/job2", "cgroup.procs", std::to_string(most + 11));
  auto observer = start();
  const auto bytes_at = [&](double now, std::size_t which) {
    EXPECT_TRUE(test::eventually([&] {
      const auto& usage = tick(*observer, now).workloads.at(which).usage;
      return !usage.empty() && usage.back().time == now;
    }));
    return observer->snapshot().workloads.at(which).usage.back().memory_bytes;
  };
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const auto large = static_cast<std::uint64_t>(most + 10) * 2000 * page;
  EXPECT_EQ(bytes_at(1000, 0), std::nullopt) << "a part of them is counted";
  EXPECT_EQ(bytes_at(1000, 1), std::nullopt);
  EXPECT_EQ(bytes_at(1001, 0), large) << "with the rest";
  EXPECT_EQ(bytes_at(1001, 1), 2000 * page) << "it waited for its turn";
  node.put("user/job2", "cgroup.procs", "1\n2");
  EXPECT_EQ(bytes_at(1002, 0), large) << "as before: another round has begun";
  EXPECT_EQ(bytes_at(1003, 1), 4000 * page);
}

TEST_F(ObserverTest, WorkThatAUserMadeIsReadInTurnAndNothingElseIs) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give directories away";
  node.configure(
      "[[workload]]\nmatch = \"user/service\"\nclass = \"latency-sensitive\"\nvcpus = 1\n"
      "[[workload]]\nmatch = \"**/job*\"\nclass = \"best-effort\"\n");
  std::vector<std::string> given{"user", "user/service", "own/job"};
  for (int i = 0; i < 40; ++i) given.push_back("user/job" + std::to_string(100 + i));
  for (const auto& path : given) {
    node.add_group(path);
    ASSERT_EQ(chown((node.tree() / path).c_str(), 1000, 1000), 0);
  }
  node.put("user", "cgroup.events", "populated 0");
  node.add_group("root/job");
  auto observer = start();
  observer->set_share_of_users(0);
  const auto fresh = [&](const std::string& id) { return observer->readings().at(id).fresh; };
  for (int now = 1; now <= 4; ++now) {
    EXPECT_EQ(tick(*observer, now).workloads.size(), 43U) << "those not read are workloads all the same";
    EXPECT_TRUE(fresh("root/job"));
    EXPECT_TRUE(fresh("own/job")) << "root made it, and gave it away";
    EXPECT_TRUE(fresh("user/service"));
    EXPECT_EQ(fresh("user/job100"), now == 1);
    EXPECT_EQ(fresh("user/job108"), now == 2);
    EXPECT_FALSE(fresh("user/job139"));
  }
}

TEST_F(ObserverTest, ALeafHoldsWhatItsProcessesDoAndIsSparedUntilItIsLookedAt) {
  const std::string leaf = "batch/worker.berth-executor-7-70";
  node.add_group("batch/worker");
  node.add_group(leaf);
  node.put(leaf, "cgroup.procs", "7\n8");
  const auto statm = [&](int pid, const std::string& text) {
    const auto directory = node.proc() / std::to_string(pid);
    std::filesystem::create_directories(directory);
    std::ofstream(directory / "statm") << text;
  };
  statm(7, "9000 3000 1000 1 0 1 0\n");
  statm(8, "900 700 500 1 0 1 0\n");
  node.put(leaf, "memory.current", "4096");
  auto observer = start();
  const auto of = [&](const std::string& id) {
    for (const auto& workload : observer->snapshot().workloads)
      if (workload.id == id) return workload;
    throw std::runtime_error("no such workload");
  };
  const auto memory_at = [&](double now) {
    EXPECT_TRUE(test::eventually([&] {
      tick(*observer, now);
      return !of(leaf).usage.empty() && of(leaf).usage.back().time == now;
    }));
    return of(leaf).usage.back().memory_bytes.value_or(0);
  };
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  EXPECT_EQ(memory_at(1000), 2200 * page) << "allocated before it came here";
  EXPECT_EQ(of("batch/worker").usage.back().memory_bytes, 1048576U) << "as it is charged";
  node.put(leaf, "memory.current", "1073741824");
  EXPECT_EQ(memory_at(1001), 1073741824U) << "what it is charged, where that is more";
  EXPECT_NE(of(leaf).spared, std::nullopt) << "nobody knows yet what it is";

  EXPECT_EQ(of(leaf).leaf_since, 1000) << "though its processes are older, or not";
  EXPECT_TRUE(of(leaf).fixed.memory) << "its memory.high does not reach what is charged elsewhere";
  EXPECT_FALSE(of("batch/worker").fixed.memory);

  const model::SparkIdentity executor{"app-1", model::SparkRole::executor, "1"};
  auto seen = std::make_shared<spark::Observation>();
  seen->members = {{.pid = 4, .name = "Worker", .cgroup = "batch/worker", .identity = {}},
                   {.pid = 7,
                    .name = "Executor",
                    .cgroup = leaf,
                    .kind = spark::ProcessKind::executor,
                    .identity = executor}};
  observer->set_spark(seen);
  observer->set_leaf_problems({{"batch/worker", "no room"}, {leaf, "of no interest"}});
  tick(*observer, 1002);
  EXPECT_EQ(of(leaf).spark, executor);
  EXPECT_EQ(of(leaf).spared, std::nullopt);
  EXPECT_EQ(of("batch/worker").spared, "Spark's Worker (pid 4) serves executors in other cgroups; no room");

  // It has ended, and the rest is like any other work.
  seen = std::make_shared<spark::Observation>();
  seen->looked_at = 1002.5;
  observer->set_spark(seen);
  tick(*observer, 1003);
  EXPECT_EQ(of(leaf).spark, std::nullopt);
  EXPECT_EQ(of(leaf).spared, std::nullopt);
  EXPECT_EQ(of("batch/worker").spared,
            "its executors have cgroups of their own, and are evicted one by one; no room");
}

TEST_F(ObserverTest, NothingIsEvictedBeforeTheFirstLookForSpark) {
  node.add_group("batch/e1");
  auto observer = start();
  observer->set_spark(nullptr, true);
  EXPECT_EQ(only(tick(*observer, 1000)).spared,
            "berth has not looked through the host's processes for Spark yet");
  observer->set_spark(std::make_shared<spark::Observation>(), true);
  EXPECT_EQ(only(tick(*observer, 1001)).spared, std::nullopt);
  observer->set_spark(nullptr);
  EXPECT_EQ(only(tick(*observer, 1002)).spared, std::nullopt) << "berth does not look";
}

TEST_F(ObserverTest, SnapshotHoldsWhatSparkDriversTell) {
  node.add_group("batch/e1");
  auto observer = start();
  const model::SparkIdentity executor{"app-1", model::SparkRole::executor, "1"};
  auto seen = std::make_shared<spark::Observation>();
  seen->apps = {{.id = "app-1", .calculated_time_s = 5, .stages = {}, .running = {}}};
  seen->members = {{7, "Executor", "batch/e1/jvm", spark::ProcessKind::executor, executor}};
  observer->set_spark(seen);
  EXPECT_EQ(only(tick(*observer, 1000)).spark, executor);
  EXPECT_EQ(only(observer->snapshot()).spared, std::nullopt);
  EXPECT_EQ(observer->snapshot().spark_apps, seen->apps);
  observer->set_spark(nullptr);
  EXPECT_EQ(only(tick(*observer, 1001)).spark, std::nullopt);
  EXPECT_TRUE(observer->snapshot().spark_apps.empty());
}

TEST_F(ObserverTest, AWorkloadOnSparkIsAsFarAsItsApplication) {
  node.add_group("web/report");
  auto observer = start();
  tick(*observer, 1000);
  const double now = observer->found().at("web/report").identity.created + 10;
  const auto counted = [](double time, double fraction) {
    auto seen = std::make_shared<spark::Observation>();
    seen->members = {
        {5, "Worker", "web/report", spark::ProcessKind::service, {}},
        {7, "Executor", "web/report", spark::ProcessKind::executor, {"a", model::SparkRole::executor, "0"}}};
    seen->progress = {{"a", {time, fraction}}, {"b", {time, 0.9}}};
    return seen;
  };
  observer->set_spark(counted(now - 20, 0.8));
  EXPECT_TRUE(only(tick(*observer, now)).progress.empty()) << "counted before the workload was there";
  observer->set_spark(counted(now + 1, 0.25));
  observer->set_spark(counted(now + 2, 0.5));
  observer->set_spark(counted(now + 2, 0.5));
  const std::vector<model::ProgressReport> both{{now + 1, 0.25}, {now + 2, 0.5}};
  EXPECT_EQ(only(tick(*observer, now + 3)).progress, both);
  // Its own report goes before.
  ASSERT_TRUE(observer->progress().add("web/report", observer->cgroup_id("web/report"), now + 4, 0.1));
  observer->set_spark(counted(now + 5, 0.6));
  EXPECT_EQ(only(tick(*observer, now + 6)).progress, (std::vector<model::ProgressReport>{{now + 4, 0.1}}));
}

TEST_F(ObserverTest, SnapshotSaysWhatIsSpared) {
  node.add_group("batch/worker");
  auto observer = start();
  auto seen = std::make_shared<spark::Observation>();
  seen->members = {
      {5, "Worker", "batch/worker", spark::ProcessKind::service, {}},
      {7, "Executor", "batch/worker", spark::ProcessKind::executor, {"a", model::SparkRole::executor, "0"}}};
  observer->set_spark(seen);
  EXPECT_EQ(only(tick(*observer, 1000)).spared,
            "its cgroup is shared by Worker (pid 5), executor 0 of a (pid 7)");
  EXPECT_EQ(only(observer->snapshot()).spark, std::nullopt);
  observer->set_spark(nullptr);
  EXPECT_EQ(only(tick(*observer, 1001)).spared, std::nullopt);
}

TEST_F(ObserverTest, CommandLinesOfAUsersProcessesSpareNothing) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give directories away";
  node.configure("[[workload]]\nmatch = \"**/job\"\nclass = \"best-effort\"\n");
  for (const char* path : {"user", "user/job"}) {
    node.add_group(path);
    ASSERT_EQ(chown((node.tree() / path).c_str(), 1000, 1000), 0);
  }
  auto observer = start();
  auto seen = std::make_shared<spark::Observation>();
  seen->members = {{5, "YARN's NodeManager", "user/job", spark::ProcessKind::service, {}}};
  observer->set_spark(seen);
  EXPECT_EQ(only(tick(*observer, 1000)).spared, std::nullopt);
}

// Others may choose what runs there, though root made the group.
TEST_F(ObserverTest, CommandLinesInContainersPodsAndSessionsSpareNothingWithoutARule) {
  const std::string id(64, 'a');
  const std::string docker = "system.slice/docker-" + id + ".scope";
  const std::string session = "user.slice/user-1000.slice/session-1.scope";
  const std::string pod = "kubepods/besteffort/pod1/" + id;
  const std::string service = "system.slice/yarn.service";
  const std::string kept = "spark.slice/docker-" + id + ".scope";
  node.configure(
      "[[workload]]\nmatch = \"spark.slice/*\"\nclass = \"best-effort\"\nevictable = false\n"
      "[[workload]]\nmatch = \"system.slice/*\"\nclass = \"best-effort\"\n"
      "[[workload]]\nmatch = \"user.slice/*/*\"\nclass = \"best-effort\"\n"
      "[[workload]]\nmatch = \"kubepods/*/*/*\"\nclass = \"best-effort\"\n");
  auto seen = std::make_shared<spark::Observation>();
  for (const auto& path : {docker, session, pod, service, kept}) {
    node.add_group(path);
    seen->members.push_back({5, "YARN's NodeManager", path, spark::ProcessKind::service, {}});
  }
  auto observer = start();
  observer->set_spark(seen);
  std::map<std::string, bool> spared;
  for (const auto& workload : tick(*observer, 1000).workloads)
    spared[workload.id] = workload.spared.has_value();
  EXPECT_EQ(spared, (std::map<std::string, bool>{
                        {docker, false}, {session, false}, {pod, false}, {service, true}, {kept, true}}));
}

TEST_F(ObserverTest, SnapshotHoldsWhatAWorkloadReported) {
  node.add_group("web/a");
  auto observer = start();
  tick(*observer, 1000);
  const auto run = observer->cgroup_id("web/a");
  ASSERT_TRUE(observer->progress().add("web/a", run, 1000.5, 0.25));
  ASSERT_TRUE(observer->progress().add("web/a", run, 1000.9, 0.5));
  const auto& workload = only(tick_to_sample(*observer, 1001));
  EXPECT_EQ(workload.progress, (std::vector<model::ProgressReport>{{1000.5, 0.25}, {1000.9, 0.5}}));
  EXPECT_EQ(workload.usage.back().progress, 0.5);
  EXPECT_EQ(only(tick_to_sample(*observer, 1002)).usage.back().progress, 0.5);  // still
}

TEST_F(ObserverTest, ARunThatEndedLosesItsReports) {
  node.add_group("web/a");
  auto observer = start();
  tick(*observer, 1000);
  const auto run = observer->cgroup_id("web/a");
  ASSERT_TRUE(observer->progress().add("web/a", run, 1000.5, 0.9));
  node.restart_group("web/a");
  ASSERT_TRUE(test::eventually([&] {
    tick(*observer, 1001);
    return observer->cgroup_id("web/a") != run && observer->cgroup_id("web/a") != 0;
  }));
  EXPECT_TRUE(only(tick(*observer, 1002)).progress.empty());
  EXPECT_EQ(observer->progress().newest("web/a", run), std::nullopt);
}

TEST_F(ObserverTest, SnapshotHoldsHostAndWorkloads) {
  node.add_group("web/a");
  node.add_group("batch/x", "4-7");
  node.put("batch/x", "cpu.max", "150000 100000");
  node.put("batch/x", "memory.high", "1048576");
  auto observer = start();
  const auto& snapshot = tick(*observer, 1000);

  EXPECT_FALSE(snapshot.host.empty());
  EXPECT_DOUBLE_EQ(snapshot.time, 1000);
  EXPECT_DOUBLE_EQ(snapshot.load1, 3.2);
  EXPECT_EQ(snapshot.memory.total_bytes, 16384U * 1024);
  EXPECT_EQ(snapshot.topology.usable(), CpuSet::range(0, 7));
  EXPECT_EQ(snapshot.topology.sockets().size(), 2U);
  ASSERT_EQ(snapshot.workloads.size(), 2U);
  const auto& batch = snapshot.workloads[0];
  EXPECT_EQ(batch.id, "batch/x");
  EXPECT_EQ(batch.workload_class, model::WorkloadClass::best_effort);
  EXPECT_EQ(batch.cpu_quota_cores, 1.5);
  EXPECT_EQ(batch.memory_high_bytes, 1048576U);
  EXPECT_EQ(batch.allowed_cpus, CpuSet::range(4, 7));
  EXPECT_TRUE(batch.cpus.empty());
  const auto& web = snapshot.workloads[1];
  EXPECT_EQ(web.id, "web/a");
  EXPECT_EQ(web.service, "web");
  EXPECT_EQ(web.workload_class, model::WorkloadClass::latency_sensitive);
  EXPECT_EQ(web.vcpus, 2);
  EXPECT_EQ(web.allowed_cpus, std::nullopt);
  EXPECT_TRUE(web.usage.empty()) << "a rate needs two readings";
}

TEST_F(ObserverTest, KeepsTheLastSamplesOnly) {
  node.add_group("web/a");
  auto observer = start(5);
  for (int i = 0; i < 20; ++i) {
    node.use_cpu("web/a", 1e-3 * (i + 1));
    tick_to_sample(*observer, 1000 + i);
  }
  const auto& usage = only(observer->snapshot()).usage;
  ASSERT_EQ(usage.size(), 5U);
  EXPECT_DOUBLE_EQ(usage.front().time, 1015);
  EXPECT_DOUBLE_EQ(usage.back().time, 1019);
  EXPECT_GT(usage.back().cpu_cores, 0);
  EXPECT_EQ(usage.back().memory_bytes, 1048576U);

  observer->set_history(3);
  tick_to_sample(*observer, 1020);
  EXPECT_EQ(only(observer->snapshot()).usage.size(), 3U);
  EXPECT_DOUBLE_EQ(only(observer->snapshot()).usage.back().time, 1020);
}

TEST_F(ObserverTest, AssemblingTwiceKeepsAReadingOnce) {
  node.add_group("web/a");
  auto observer = start();
  tick_to_sample(*observer, 1001);
  const auto count = only(observer->snapshot()).usage.size();
  observer->assemble(
      {.holdings = holdings, .left_alone = left_alone, .overrides = *overrides, .standing = standing});
  EXPECT_EQ(only(observer->snapshot()).usage.size(), count);
}

TEST_F(ObserverTest, FollowsWorkloadsThatComeAndGo) {
  node.add_group("web/a");
  auto observer = start();
  tick(*observer, 1000);
  node.add_group("web/b");
  ASSERT_TRUE(test::eventually([&] { return tick(*observer, 1001).workloads.size() == 2; }));
  node.remove_group("web/a");
  ASSERT_TRUE(test::eventually([&] { return tick(*observer, 1002).workloads.size() == 1; }));
  EXPECT_EQ(only(observer->snapshot()).id, "web/b");
}

TEST_F(ObserverTest, ARestartedWorkloadHasNoPast) {
  node.add_group("web/a");
  auto observer = start();
  for (int i = 0; i < 5; ++i) tick_to_sample(*observer, 1000 + i);
  const auto old_run = observer->cgroup_id("web/a");
  ASSERT_EQ(only(observer->snapshot()).usage.size(), 5U);
  node.restart_group("web/a");
  ASSERT_TRUE(test::eventually([&] {
    tick(*observer, 1010);
    return observer->cgroup_id("web/a") != old_run && observer->snapshot().workloads.size() == 1;
  }));
  EXPECT_LT(only(observer->snapshot()).usage.size(), 2U);
}

TEST_F(ObserverTest, ShowsBerthsPinsOfThisRunOnly) {
  node.add_group("web/a", "2-3");
  auto observer = start();
  holdings.of(model::Attribute::cpus)["web/a"] =
      make_held(observer->cgroup_id("web/a"), CpuSet{2, 3}, CpuSet(), 990);
  const auto& pinned = only(tick(*observer, 1000));
  EXPECT_EQ(pinned.cpus, (CpuSet{2, 3}));
  EXPECT_EQ(pinned.pinned_at, 990);
  EXPECT_EQ(pinned.allowed_cpus, std::nullopt) << "the pin itself must not narrow what is allowed";

  holdings.of(model::Attribute::cpus)["web/a"].cgroup_id += 1;
  const auto& other_run = only(tick(*observer, 1001));
  EXPECT_TRUE(other_run.cpus.empty());
  EXPECT_EQ(other_run.allowed_cpus, (CpuSet{2, 3}));
}

TEST_F(ObserverTest, ShowsThePressureOfPinnedServicesAlone) {
  node.add_group("web/a");
  auto observer = start();
  EXPECT_EQ(only(tick(*observer, 1000)).cpu_pressure, std::nullopt);
  holdings.of(model::Attribute::cpus)["web/a"] =
      make_held(observer->cgroup_id("web/a"), CpuSet{2, 3}, CpuSet(), 990);
  EXPECT_DOUBLE_EQ(only(tick(*observer, 1001)).cpu_pressure.value_or(-1), 0.025);
}

TEST_F(ObserverTest, ShowsHeldLimitsAndWhatTheyWereBefore) {
  node.add_group("batch/x");
  node.put("batch/x", "cpu.max", "400000 100000");
  node.put("batch/x", "memory.high", "8192");
  auto observer = start();
  EXPECT_EQ(only(tick(*observer, 1000)).original, std::nullopt);
  EXPECT_EQ(only(observer->snapshot()).held_cpu, std::nullopt);

  Held quota = make_held(observer->cgroup_id("batch/x"), cgroup::cpu_max(1.5), cgroup::cpu_max(4), 990);
  quota.cause = model::HeldCause::preempted;
  quota.changed_at = 995;
  holdings.of(model::Attribute::cpu_quota)["batch/x"] = quota;
  const auto& held = only(tick(*observer, 1001));
  EXPECT_EQ(held.cpu_quota_cores, 1.5) << "what would hold, though it was not written";
  EXPECT_EQ(held.held_cpu, (model::HeldLimit{model::HeldCause::preempted, 990, 995}));
  EXPECT_EQ(held.held_memory, std::nullopt);
  EXPECT_EQ(held.original, (model::OriginalLimits{4.0, 8192}));

  holdings.of(model::Attribute::memory_high)["batch/x"] =
      make_held(observer->cgroup_id("batch/x"), model::MemoryHigh{4096}, model::MemoryHigh(), 990);
  const auto& both = only(tick(*observer, 1002));
  EXPECT_EQ(both.memory_high_bytes, 4096U);
  EXPECT_EQ(both.original, (model::OriginalLimits{4.0, std::nullopt}));

  holdings.of(model::Attribute::cpu_quota)["batch/x"].cgroup_id += 1;
  holdings.of(model::Attribute::memory_high)["batch/x"].cgroup_id += 1;
  const auto& other_run = only(tick(*observer, 1003));
  EXPECT_EQ(other_run.original, std::nullopt);
  EXPECT_EQ(other_run.cpu_quota_cores, 4.0);
}

TEST_F(ObserverTest, RemembersStragglersOfThisRunOnly) {
  node.add_group("web/a");
  auto observer = start();
  EXPECT_EQ(tick(*observer, 1000).straggler_seen_at, std::nullopt);
  model::RunMemory& memory = standing.runs["web/a"];
  memory.run = model::run_of(only(observer->snapshot()));
  memory.straggled_at = 1000;
  standing.straggler_seen_at = 1000;
  EXPECT_EQ(tick(*observer, 1001).straggler_seen_at, 1000);
  EXPECT_EQ(only(observer->snapshot()).straggled_at, 1000);
  const auto run = observer->cgroup_id("web/a");
  node.restart_group("web/a");
  ASSERT_TRUE(test::eventually([&] {
    tick(*observer, 1002);
    return observer->cgroup_id("web/a") != run && observer->snapshot().workloads.size() == 1;
  }));
  EXPECT_EQ(only(observer->snapshot()).straggled_at, std::nullopt);
  EXPECT_EQ(observer->snapshot().straggler_seen_at, 1000) << "there was one, whatever became of it";
}

TEST_F(ObserverTest, AWorkloadThatIsLeftAloneAsksForNoVcpus) {
  node.add_group("web/a");
  auto observer = start();
  left_alone["web/a"].reason = "a foreign writer";
  EXPECT_EQ(only(tick(*observer, 1000)).vcpus, std::nullopt);
  left_alone.clear();
  EXPECT_EQ(only(tick(*observer, 1001)).vcpus, 2);
}

TEST_F(ObserverTest, TellsWhichLimitsBerthCannotChange) {
  node.add_group("web/a");
  auto observer = start();
  const auto fixed = [&](const RefusedLimits& refused) {
    observer->read(1000);
    observer->assemble({.holdings = holdings,
                        .left_alone = left_alone,
                        .overrides = *overrides,
                        .standing = standing,
                        .refused = refused});
    return only(observer->snapshot()).fixed;
  };
  EXPECT_EQ(fixed({}), model::FixedLimits{});
  EXPECT_EQ(fixed({{{"web/a", model::Attribute::cpu_quota}, 1}}),
            (model::FixedLimits{.cpu = true, .memory = false}));
  left_alone["web/a"].reason = "a foreign writer";
  EXPECT_EQ(fixed({}), (model::FixedLimits{.cpu = true,
                                           .memory = true,
                                           .life = true,
                                           .memory_nodes = true,
                                           .others = {model::Attribute::cpu_burst}}));
}

TEST_F(ObserverTest, AppliesOverrides) {
  node.add_group("web/a");
  auto observer = start();
  ASSERT_TRUE(overrides->set("web/a", observer->cgroup_id("web/a"), {{"vcpus", "4"}, {"service", "shop"}}));
  EXPECT_EQ(only(tick(*observer, 1000)).vcpus, 4);
  EXPECT_EQ(only(observer->snapshot()).service, "shop");
}

TEST_F(ObserverTest, SeesVcpusGoOffline) {
  node.add_group("web/a");
  auto observer = start();
  tick(*observer, 1000);
  node.set_online(6);
  EXPECT_EQ(tick(*observer, 1001).topology.usable(), CpuSet::range(0, 5));
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_NE(messages[0].find("0-5"), std::string::npos) << messages[0];
  tick(*observer, 1002);
  EXPECT_TRUE(messages.empty());
}

TEST_F(ObserverTest, SeesTheMemoryOfANodeComeAndGo) {
  node.add_group("web/a");
  node.host().write("devices/system/node/has_memory", "0-1\n");
  auto observer = start();
  EXPECT_EQ(tick(*observer, 1000).topology.nodes_to_bind(), (CpuSet{0, 1}));
  node.host().write("devices/system/node/has_memory", "0\n");
  EXPECT_EQ(tick(*observer, 1001).topology.nodes_to_bind(), CpuSet{0});
  EXPECT_EQ(messages, std::vector<std::string>{"NUMA nodes with memory are now 0 (were 0-1)"});
  tick(*observer, 1002);
  EXPECT_TRUE(messages.empty());
}

// Its cpuset.mems is then all that there is, and no bond of its owner's.
TEST_F(ObserverTest, ANodeWithoutMemoryBindsNoWorkload) {
  node.add_group("web/a");
  node.put("web/a", "cpuset.mems", "0");
  node.host().write("devices/system/node/has_memory", "0\n");
  auto observer = start();
  observer->want(model::Attribute::memory_nodes, true);
  tick(*observer, 1000);
  EXPECT_FALSE(only(tick(*observer, 1001)).fixed.memory_nodes);
  node.host().write("devices/system/node/has_memory", "0-1\n");
  EXPECT_TRUE(only(tick(*observer, 1002)).fixed.memory_nodes);
}

TEST_F(ObserverTest, SaysOnceWhatCannotBeRead) {
  std::filesystem::remove(node.proc() / "pressure/memory");
  auto observer = start();
  tick(*observer, 1000);
  EXPECT_EQ(messages.size(), 1U);
  tick(*observer, 1001);
  EXPECT_TRUE(messages.empty());
}

TEST_F(ObserverTest, SaysOnceThatTheTopologyCannotBeReadAgain) {
  auto observer = start();
  tick(*observer, 1000);
  node.set_online(6);
  const auto file = node.sys() / "fs/cgroup/cpuset.cpus.effective";
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << "none\n";
  tick(*observer, 1001);
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_NE(messages[0].find("cpuset.cpus.effective"), std::string::npos) << messages[0];
  tick(*observer, 1002);
  EXPECT_TRUE(messages.empty());
  std::filesystem::remove(file);
  EXPECT_EQ(tick(*observer, 1003).topology.usable(), CpuSet::range(0, 5));
}

TEST_F(ObserverTest, AHostWithoutProcessorsIsAnError) {
  const auto observer = Observer::start(node.hierarchy(), {}, node.proc(), node.sys() / "nothing/here", 60);
  ASSERT_FALSE(observer);
  EXPECT_NE(observer.error().message().find("topology"), std::string::npos);
}

TEST_F(ObserverTest, NewRulesJudgeEveryCgroupAgain) {
  node.add_group("web/a");
  auto observer = start();
  tick(*observer, 1000);
  node.configure("[[workload]]\nmatch = \"web/*\"\nclass = \"best-effort\"\n");
  observer->set_rules(node.settings().rules);
  EXPECT_EQ(only(tick(*observer, 1001)).workload_class, model::WorkloadClass::best_effort);
  observer->set_rules({});
  EXPECT_TRUE(tick(*observer, 1002).workloads.empty());
}

}  // namespace
}  // namespace berth::daemon
