// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/cgroup/discovery_fixture.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace berth::cgroup {
namespace {

TEST_F(DiscoveryTest, TheFirstWalkFindsWhatIsThere) {
  tree.make("system.slice/web@1.service");
  tree.make("system.slice/cron.service");
  tree.make("batch/job");
  WorkloadRule web = rule("system.slice/web@*.service", WorkloadClass::latency_sensitive, "berth.toml:7");
  web.vcpus = 2;
  web.memory_bytes = 1024;
  web.priority = 5;
  web.deadline_s = 60;
  start({web, best_effort("batch/*")});
  EXPECT_EQ(ids(), (Ids{"batch/job", "system.slice/web@1.service"}));
  EXPECT_EQ(changes.appeared, ids());
  EXPECT_TRUE(changes.warnings.empty());
  const FoundWorkload& one = found("system.slice/web@1.service");
  EXPECT_EQ(one.kind, Kind::systemd_service);
  EXPECT_EQ(one.systemd_unit, "web@1.service");
  EXPECT_EQ(one.matched_by, "berth.toml:7");
  EXPECT_EQ(one.identity.service, "web");
  EXPECT_EQ(one.identity.workload_class, WorkloadClass::latency_sensitive);
  EXPECT_EQ(one.identity.vcpus, 2);
  EXPECT_EQ(one.identity.memory_request_bytes, 1024U);
  EXPECT_EQ(one.identity.priority, 5);
  EXPECT_FALSE(one.identity.evictable);
  EXPECT_EQ(one.identity.deadline, one.identity.created + 60);
  EXPECT_TRUE(one.cgroup->is_current());
}

TEST_F(DiscoveryTest, TheDescriptorIsReadableForWhatTheFirstWalkFound) {
  tree.make("a");
  discovery = Discovery::start(tree.hierarchy(), {best_effort("a")}).value();
  pollfd waiting{discovery->fd(), POLLIN, 0};
  ASSERT_EQ(poll(&waiting, 1, static_cast<int>(berth::test::kPatience.count()) * 1000), 1);
  EXPECT_EQ(discovery->process().appeared, Ids{"a"});
  EXPECT_EQ(poll(&waiting, 1, 0), 0);
  EXPECT_TRUE(discovery->process().empty());
}

TEST_F(DiscoveryTest, NewGroupsAppearAndRemovedOnesVanish) {
  start({best_effort("**")});
  tree.make("a");
  ASSERT_TRUE(wait([&] { return has("a"); }));
  EXPECT_EQ(changes.appeared, Ids{"a"});
  tree.remove("a");
  ASSERT_TRUE(wait([&] { return !has("a"); }));
  EXPECT_EQ(changes.vanished, Ids{"a"});
}

TEST_F(DiscoveryTest, ATreeMadeAtOnceIsSeenWhole) {
  start({best_effort("**/leaf"), best_effort("marker-*")});
  tree.make("a/b/c/d/leaf");
  ASSERT_TRUE(wait([&] { return has("a/b/c/d/leaf"); }));
  tree.make("a/b/c/e/leaf");
  ASSERT_TRUE(wait([&] { return has("a/b/c/e/leaf"); }));
  tree.remove("a");
  ASSERT_TRUE(wait([&] { return discovery->workloads().empty(); }));
  EXPECT_EQ(changes.vanished.size(), 2U);
}

TEST_F(DiscoveryTest, AGroupThatTakesOverAPathIsAnother) {
  tree.make("a");
  start({best_effort("**")});
  const std::uint64_t before = found("a").cgroup->id();
  tree.remove("a");
  tree.make("a");
  ASSERT_TRUE(wait([&] { return has("a") && found("a").cgroup->id() != before; }));
  EXPECT_EQ(changes.vanished, Ids{"a"});
  EXPECT_EQ(changes.appeared, Ids{"a"});
  EXPECT_TRUE(found("a").cgroup->is_current());
}

TEST_F(DiscoveryTest, OneThatCameAndWentUnseenIsNotReported) {
  start({best_effort("**")});
  tree.make("a");
  tree.remove("a");
  catch_up();
  EXPECT_EQ(std::count(changes.appeared.begin(), changes.appeared.end(), "a"), 0);
  EXPECT_TRUE(changes.vanished.empty());
}

TEST_F(DiscoveryTest, AGroupWithoutProcessesIsNoWorkload) {
  tree.make("a", false);
  start({best_effort("a")});
  EXPECT_TRUE(discovery->workloads().empty());
  tree.make("a", true);
  ASSERT_TRUE(wait([&] { return has("a"); }));
  tree.make("a", false);
  ASSERT_TRUE(wait([&] { return !has("a"); }));
  EXPECT_EQ(changes.vanished, Ids{"a"});
}

TEST_F(DiscoveryTest, TheOutermostMatchIsTheWorkload) {
  tree.make("a/b/c");
  start({best_effort("a"), rule("a/b", WorkloadClass::latency_sensitive, "berth.toml:9"),
         best_effort("a/b/c")});
  EXPECT_EQ(ids(), Ids{"a"});
  EXPECT_TRUE(warned({"a/b (berth.toml:9)", "inside the workload a (berth.toml:1)"}));
  EXPECT_EQ(changes.warnings.size(), 1U);
}

TEST_F(DiscoveryTest, AGlobThatMatchesChildrenTooIsNoReasonToWarn) {
  tree.make("a/b/c");
  start({best_effort("a/**"), best_effort("a")});
  EXPECT_EQ(ids(), Ids{"a"});
  EXPECT_TRUE(changes.warnings.empty());
}

TEST_F(DiscoveryTest, AnInnerMatchBecomesTheWorkloadWhereTheOuterIsNoLongerOne) {
  tree.make("a/b");
  start({best_effort("a"), best_effort("a/b")});
  const auto after = discovery->set_rules({best_effort("a/b")});
  EXPECT_EQ(after.vanished, Ids{"a"});
  EXPECT_EQ(after.appeared, Ids{"a/b"});
}

TEST_F(DiscoveryTest, TwoRulesThatDisagreeAreNamedOnce) {
  tree.make("a/1");
  tree.make("a/2");
  start({rule("a/*", WorkloadClass::best_effort, "berth.toml:3"),
         rule("a/**", WorkloadClass::latency_sensitive, "berth.toml.d/x.toml:8")});
  EXPECT_EQ(found("a/1").identity.workload_class, WorkloadClass::best_effort);
  EXPECT_EQ(std::count_if(changes.warnings.begin(), changes.warnings.end(),
                          [](const std::string& text) { return text.find("two rules match") != text.npos; }),
            1);
  EXPECT_TRUE(warned({"two rules match", "berth.toml:3", "berth.toml.d/x.toml:8"}));
}

TEST_F(DiscoveryTest, APodmanScopeIsOneWorkloadWithItsInnerGroup) {
  tree.make(kScope + "/container");
  tree.make(kScope);
  start({best_effort("machine.slice/libpod-*.scope")});
  EXPECT_EQ(ids(), Ids{kScope});
  EXPECT_EQ(found(kScope).kind, Kind::podman);
  EXPECT_EQ(found(kScope).systemd_unit, "libpod-" + kId + ".scope");
  EXPECT_TRUE(changes.warnings.empty());
}

TEST_F(DiscoveryTest, ARuleForTheInnerGroupOfAContainerIsPointedToItsScope) {
  tree.make(kScope + "/container");
  tree.make(kScope);
  start({best_effort("machine.slice/*/container")});
  EXPECT_TRUE(discovery->workloads().empty());
  EXPECT_TRUE(warned({"berth.toml:1", "match the container's scope"}));
}

TEST_F(DiscoveryTest, NewRulesJudgeEveryGroupAgain) {
  tree.make("a");
  tree.make("b");
  start({best_effort("a")});
  WorkloadRule raised = rule("a", WorkloadClass::latency_sensitive, "berth.toml:2");
  raised.vcpus = 1;
  const auto after = discovery->set_rules({raised, best_effort("b")});
  EXPECT_EQ(after.appeared, Ids{"b"});
  EXPECT_EQ(after.changed, Ids{"a"});
  EXPECT_TRUE(after.vanished.empty());
  EXPECT_EQ(found("a").identity.workload_class, WorkloadClass::latency_sensitive);
  EXPECT_EQ(found("a").matched_by, "berth.toml:2");
  EXPECT_TRUE(discovery->set_rules({raised, best_effort("b")}).empty());
}

TEST_F(DiscoveryTest, ARuleForPartsOfContainersAloneIsUnused) {
  tree.make(kScope + "/container");
  start({rule("machine.slice/*/container", WorkloadClass::best_effort, "b.toml:1")});
  const UnusedRule inner{.origin = "b.toml:1", .match = "machine.slice/*/container", .inner = true};
  EXPECT_EQ(discovery->unused_rules(), std::vector<UnusedRule>{inner});
}

TEST_F(DiscoveryTest, RulesThatApplyToNothingAreNamed) {
  tree.make("a/1");
  start({rule("a/*", WorkloadClass::best_effort, "b.toml:1"),
         rule("a/1", WorkloadClass::best_effort, "b.toml:2"),
         rule("b", WorkloadClass::best_effort, "b.toml:3")});
  const UnusedRule overtaken{.origin = "b.toml:2", .match = "a/1", .overtaken = true};
  EXPECT_EQ(discovery->unused_rules(), (std::vector<UnusedRule>{overtaken, {"b.toml:3", "b"}}));

  tree.make("b");
  ASSERT_TRUE(wait([&] { return has("b"); }));
  EXPECT_EQ(discovery->unused_rules(), std::vector<UnusedRule>{overtaken});

  tree.remove("a/1");
  ASSERT_TRUE(wait([&] { return !has("a/1"); }));
  EXPECT_EQ(discovery->unused_rules(),
            (std::vector<UnusedRule>{{"b.toml:1", "a/*"}, {.origin = "b.toml:2", .match = "a/1"}}));

  discovery->set_rules({best_effort("b")});
  EXPECT_TRUE(discovery->unused_rules().empty());
  discovery->set_rules({});
  EXPECT_TRUE(discovery->unused_rules().empty());
}

TEST_F(DiscoveryTest, ARuleForAnEmptyGroupOrOneWithoutAClassIsUsed) {
  tree.make("a", false);
  tree.make("b");
  WorkloadRule service = best_effort("b");
  service.workload_class.reset();
  start({best_effort("a"), service});
  EXPECT_TRUE(discovery->workloads().empty());
  EXPECT_TRUE(discovery->unused_rules().empty());
}

TEST_F(DiscoveryTest, AnInvalidGlobIsRefusedAtTheStartAndLeftOutLater) {
  const auto refused = Discovery::start(tree.hierarchy(), {best_effort("/a")});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), model::ErrorKind::invalid_input);
  EXPECT_EQ(refused.error().message().rfind("berth.toml:1: ", 0), 0U) << refused.error().message();
  tree.make("a");
  start({best_effort("a")});
  changes = discovery->set_rules({best_effort("[a"), best_effort("a")});
  EXPECT_TRUE(warned({"berth.toml:1", "left out"}));
  EXPECT_EQ(ids(), Ids{"a"});
}

TEST_F(DiscoveryTest, AMissingRootIsAnError) {
  Hierarchy hierarchy = tree.hierarchy();
  hierarchy.root = tree.root() / "none";
  const auto started = Discovery::start(hierarchy, {});
  ASSERT_FALSE(started);
  EXPECT_NE(started.error().message().find("opening the cgroup root"), std::string::npos);
}

TEST_F(DiscoveryTest, VcpusFollowTheFirstQuotaOnly) {
  tree.make("a");
  tree.write("a", "cpu.max", "max 100000\n");
  start({rule("a", WorkloadClass::latency_sensitive)});
  EXPECT_EQ(found("a").identity.vcpus, std::nullopt);
  tree.write("a", "cpu.max", "150000 100000\n");
  ASSERT_TRUE(wait([&] { return found("a").identity.vcpus.has_value(); }));
  EXPECT_EQ(found("a").identity.vcpus, 2);
  EXPECT_EQ(changes.changed, Ids{"a"});
  tree.write("a", "cpu.max", "300000 100000\n");  // as berth itself writes
  EXPECT_TRUE(discovery->set_rules({rule("a", WorkloadClass::latency_sensitive)}).empty());
  EXPECT_EQ(found("a").identity.vcpus, 2);
}

TEST_F(DiscoveryTest, VcpusDoNotFollowAQuotaThatBerthLifted) {
  tree.make("a");
  tree.write("a", "cpu.max", "819200000 100000\n");
  start({rule("a", WorkloadClass::latency_sensitive)});
  EXPECT_EQ(found("a").identity.vcpus, std::nullopt);
  tree.write("a", "cpu.max", "200000 100000\n");
  ASSERT_TRUE(wait([&] { return found("a").identity.vcpus.has_value(); }));
  EXPECT_EQ(found("a").identity.vcpus, 2);
}

TEST_F(DiscoveryTest, AGuaranteedPodAppearsOnceItsQuotaIsSet) {
  const std::string path = "kubepods/pod1-2/" + kId;
  WorkloadRule pods;
  pods.match = "kubepods/**";
  start({best_effort("marker-*"), pods});
  tree.make(path);
  tree.write(path, "cpu.max", "max 100000\n");
  catch_up();
  EXPECT_FALSE(has(path));
  tree.write(path, "cpu.max", "200000 100000\n");
  ASSERT_TRUE(wait([&] { return has(path); }));
  EXPECT_EQ(found(path).identity.workload_class, WorkloadClass::latency_sensitive);
  EXPECT_EQ(found(path).identity.vcpus, 2);
  EXPECT_EQ(found(path).kind, Kind::cri);
  EXPECT_EQ(found(path).systemd_unit, "");
}

// kubelet gives these scores, and only root can lower one.
TEST_F(DiscoveryTest, SandboxesAndNodeCriticalPodsAreIgnored) {
  const std::string pod = "kubepods/besteffort/pod1-2/";
  struct One {
    char digit;
    const char* score;
    bool workload;
  };
  const One all[] = {{'a', "1000", true}, {'b', "-998", false}, {'c', "-997", false}, {'d', "-996", true}};
  for (const One& one : all) {
    const std::string path = pod + std::string(64, one.digit);
    const std::string pid = std::to_string(100 + one.digit);
    tree.make(path);
    tree.write(path, "cgroup.procs", pid + "\n");
    tree.write_proc(pid + "/oom_score_adj", std::string(one.score) + "\n");
  }
  start({});
  for (const One& one : all) EXPECT_EQ(has(pod + std::string(64, one.digit)), one.workload) << one.score;
  // A rule of the operator decides before.
  discovery->set_rules({best_effort("kubepods/*/*/*")});
  EXPECT_TRUE(has(pod + std::string(64, 'b')));
}

TEST_F(DiscoveryTest, PodsOfKubeSystemAreIgnoredWhateverTheyAskFor) {
  struct One {
    const char* qos;
    const char* logs;
    bool workload;
  };
  const One all[] = {{"besteffort/", "kube-system_kube-proxy-x7_pod-1", false},
                     {"besteffort/", "default_kube-system_pod-2", true},
                     {"besteffort/", "kube-system_other_pod-33", true},
                     {"", "kube-system_cilium_pod-4", false},
                     {"", "web_a_pod-5", true}};
  int number = 0;
  const auto path_of = [](const One& one, int which) {
    return std::string("kubepods/") + one.qos + "podpod-" + std::to_string(which) + "/" + kId;
  };
  for (const One& one : all) {
    const std::string path = path_of(one, ++number);
    tree.make(path);
    tree.write(path, "cpu.max", "200000 100000\n");
    std::filesystem::create_directories(tree.hierarchy().pod_logs / one.logs);
  }
  start({});
  number = 0;
  for (const One& one : all) EXPECT_EQ(has(path_of(one, ++number)), one.workload) << one.logs;
  // A rule of the operator decides before.
  discovery->set_rules({best_effort("kubepods/*/*/*")});
  EXPECT_TRUE(has(path_of(all[0], 1)));
}

TEST_F(DiscoveryTest, ASandboxIsIgnoredThoughItsScoreComesAMomentLater) {
  const std::string path = "kubepods/besteffort/pod1-2/" + kId;
  tree.make(path);
  tree.write(path, "cgroup.procs", "77\n");
  tree.write_proc("77/oom_score_adj", "0\n");
  start({});
  EXPECT_TRUE(has(path));
  tree.write_proc("77/oom_score_adj", "-998\n");
  discovery->process();
  EXPECT_FALSE(has(path));
  EXPECT_NE(discovery->why_ignored(path).value_or("").find("pod of the system"), std::string::npos);
}

TEST_F(DiscoveryTest, AnIgnoredGroupIsNoWorkload) {
  WorkloadRule ignored;
  ignored.match = "a";
  ignored.ignored = true;
  tree.make("a");
  tree.make("b");
  start({ignored, best_effort("*")});
  EXPECT_EQ(ids(), Ids{"b"});
  EXPECT_NE(discovery->why_ignored("a").value_or("").find("class \"ignored\""), std::string::npos);
  EXPECT_EQ(discovery->why_ignored("b"), std::nullopt);
  discovery->set_rules({best_effort("*")});
  EXPECT_EQ(ids(), (Ids{"a", "b"}));
  EXPECT_EQ(discovery->why_ignored("a"), std::nullopt);
}

TEST_F(DiscoveryTest, AGroupInsideAnIgnoredOneIsJudgedByItsOwnPath) {
  WorkloadRule ignored;
  ignored.match = "a";
  ignored.ignored = true;
  tree.make("a/b");
  start({ignored, best_effort("**")});
  EXPECT_EQ(ids(), Ids{"a/b"});
  WorkloadRule inside = ignored;
  inside.match = "a/**";
  discovery->set_rules({ignored, inside, best_effort("**")});
  EXPECT_EQ(ids(), Ids{});
}

TEST_F(DiscoveryTest, AnIgnoredPartOfAContainerDoesNotIgnoreIt) {
  tree.make(kScope + "/container");
  WorkloadRule ignored;
  ignored.match = "machine.slice/*/container";
  ignored.origin = "berth.toml:1";
  ignored.ignored = true;
  start({best_effort("machine.slice/*"), ignored});
  EXPECT_EQ(ids(), Ids{kScope});
  EXPECT_TRUE(warned({"berth.toml:1", "match the container's scope"}));

  // One that matches the scope, too, comes second there.
  ignored.match = "machine.slice/**";
  ignored.origin = "berth.toml:2";
  changes = discovery->set_rules({best_effort("machine.slice/*"), ignored});
  EXPECT_FALSE(warned({"match the container's scope"}));

  // The slice above is the whole workload, so only a rule for that would ignore the part.
  ignored.match = "machine.slice/*/container";
  ignored.origin = "berth.toml:3";
  changes = discovery->set_rules({best_effort("machine.slice"), ignored});
  EXPECT_TRUE(warned({"berth.toml:3", "match the workload that contains it, machine.slice"}));
}

TEST_F(DiscoveryTest, AMarkMakesAWorkloadAndItsRemovalEndsIt) {
  tree.make("a");
  if (!mark("a", "user.probe", "1")) GTEST_SKIP() << "no user attributes on this file system";
  start({});
  ASSERT_TRUE(mark("a", "user.berth.class", "latency-sensitive"));
  ASSERT_TRUE(wait([&] { return has("a"); }));
  EXPECT_EQ(found("a").matched_by, "user.berth.class");
  EXPECT_EQ(found("a").identity.workload_class, WorkloadClass::latency_sensitive);
  ASSERT_TRUE(mark("a", "user.berth.evictable", "1"));
  ASSERT_TRUE(wait([&] { return found("a").identity.evictable; }));
  EXPECT_EQ(changes.changed, Ids{"a"});
  ASSERT_EQ(removexattr((tree.root() / "a").c_str(), "user.berth.class"), 0);
  ASSERT_TRUE(wait([&] { return !has("a"); }));
}

TEST_F(DiscoveryTest, AUsersMarkCountsInsideHisGroupAndOnlyDownwards) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give directories away";
  tree.make("user/low");
  tree.make("user/high");
  if (!mark("user", "user.berth.class", "best-effort"))
    GTEST_SKIP() << "no user attributes on this file system";
  ASSERT_TRUE(mark("user/low", "user.berth.class", "best-effort"));
  ASSERT_TRUE(mark("user/high", "user.berth.class", "latency-sensitive"));
  for (const char* path : {"user", "user/low", "user/high"}) {
    ASSERT_EQ(chown((tree.root() / path).c_str(), 1000, 1000), 0);
  }
  start({});
  EXPECT_EQ(ids(), Ids{"user/low"});
  EXPECT_TRUE(warned({"cgroup user: ", "its parent to uid 0"}));
  EXPECT_TRUE(warned({"cgroup user/high: ", "only groups of root may take vCPUs"}));
  EXPECT_EQ(changes.warnings.size(), 2U);
}

TEST_F(DiscoveryTest, AWildcardDoesNotReachIntoAUsersTree) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give directories away";
  tree.make("system.slice/web.service");
  tree.make("user.slice/web.service");
  ASSERT_EQ(chown((tree.root() / "user.slice").c_str(), 1000, 1000), 0);
  ASSERT_EQ(chown((tree.root() / "user.slice/web.service").c_str(), 1000, 1000), 0);
  start({rule("**/web.service", WorkloadClass::latency_sensitive)});
  EXPECT_EQ(ids(), Ids{"system.slice/web.service"});
  EXPECT_TRUE(warned({"berth.toml:1", "uid 1000"}));
}

TEST_F(DiscoveryTest, AGroupThatOthersMayWriteToIsNotTrusted) {
  tree.make("a");
  if (!mark("a", "user.berth.class", "latency-sensitive"))
    GTEST_SKIP() << "no user attributes on this file system";
  start({});
  ASSERT_TRUE(has("a"));
  ASSERT_EQ(chmod((tree.root() / "a").c_str(), 0777), 0);
  ASSERT_TRUE(wait([&] { return !has("a"); }));
}

// The directory's time is of a wall clock that is set later. The start of a process is exact.

TEST_F(DiscoveryTest, CreatedIsTheSameAfterTheWallClockWasSet) {
  tree.make("a");
  tree.make("b");
  tree.make("b/inner");
  tree.write("a", "cgroup.procs", "12\n");
  tree.write("b/inner", "cgroup.procs", "12\n");
  tree.write_proc("12/stat", "12 (a) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 500 0 0\n");
  const double since_boot_s = 500 / static_cast<double>(sysconf(_SC_CLK_TCK));
  for (const double step : {-28800.0, 0.0, 28800.0}) {
    auto hierarchy = tree.hierarchy();
    hierarchy.clock = os::Clock({.boot = os::boot_s, .wall = [step] { return os::epoch_s() + step; }});
    discovery = Discovery::start(hierarchy, {best_effort("*")}).value();
    discovery->process();
    for (const char* id : {"a", "b"})
      EXPECT_NEAR(found(id).identity.created, hierarchy.clock.of_boot(since_boot_s), 0.01) << id << step;
  }
}

TEST_F(DiscoveryTest, CreatedIsTheOldestProcessesStart) {
  tree.make("a");
  tree.write("a", "cgroup.procs", "12\n13\nx\n");
  // Field 22 is the start in clock ticks after boot; the command may hold anything.
  const std::string rest = " S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 ";
  tree.write_proc("12/stat", "12 (odd ) name)" + rest + "500 0 0\n");
  tree.write_proc("13/stat", "13 (b)" + rest + "100 0 0\n");
  timespec real{};
  timespec boot{};
  clock_gettime(CLOCK_REALTIME, &real);
  clock_gettime(CLOCK_BOOTTIME, &boot);
  const double booted =
      static_cast<double>(real.tv_sec - boot.tv_sec) + static_cast<double>(real.tv_nsec - boot.tv_nsec) / 1e9;
  start({best_effort("a")});
  EXPECT_NEAR(found("a").identity.created, booted + 100.0 / static_cast<double>(sysconf(_SC_CLK_TCK)), 0.1);
}

TEST_F(DiscoveryTest, CreatedIsTheDirectorysTimeOtherwise) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tree.make("a");
  start({best_effort("a")});
  EXPECT_NEAR(found("a").identity.created, static_cast<double>(now.tv_sec), 5);
}

constexpr const char* kLeaf = "spark/worker.berth-executor-7-100";

TEST_F(DiscoveryTest, ALeafIsWhatItWasTakenOutOf) {
  auto worker = best_effort("spark/worker*");
  worker.priority = 3;
  worker.service = "spark-worker";
  worker.evictable = true;
  worker.vcpus = 8;
  worker.memory_bytes = std::uint64_t{16} << 30;
  tree.make("spark/worker");
  tree.make(kLeaf);
  start({worker, rule("spark/berth-*", WorkloadClass::latency_sensitive, "berth.toml:9")});
  ASSERT_EQ(ids(), (Ids{"spark/worker", kLeaf})) << "a workload of its own";
  const auto& leaf = found(kLeaf);
  EXPECT_EQ(leaf.leaf_of, "spark/worker");
  EXPECT_EQ(leaf.identity.workload_class, WorkloadClass::best_effort);
  EXPECT_EQ(leaf.identity.priority, 3);
  EXPECT_EQ(leaf.identity.service, "spark-worker");
  EXPECT_TRUE(leaf.identity.evictable);
  EXPECT_EQ(leaf.matched_by, "berth.toml:1");
  EXPECT_EQ(found("spark/worker").leaf_of, "");
  EXPECT_EQ(found("spark/worker").identity.vcpus, 8);
  EXPECT_EQ(found("spark/worker").identity.memory_request_bytes, std::uint64_t{16} << 30);
  EXPECT_EQ(leaf.identity.vcpus, std::nullopt) << "what is asked for is asked for once";
  EXPECT_EQ(leaf.identity.memory_request_bytes, 0U);
}

TEST_F(DiscoveryTest, ALeafTakesItsOriginsNameAsService) {
  tree.make("system.slice/worker@1.service");
  const std::string leaf = "system.slice/worker\\x401.service.berth-executor-7-100.scope";
  tree.make(leaf);
  start({best_effort("system.slice/worker@*.service")});
  ASSERT_TRUE(has(leaf));
  EXPECT_EQ(found(leaf).identity.service, "worker");
  EXPECT_EQ(found(leaf).systemd_unit, "worker\\x401.service.berth-executor-7-100.scope");
}

TEST_F(DiscoveryTest, ALeafThatComesLaterIsFound) {
  tree.make("spark/worker");
  start({best_effort("spark/worker")});
  EXPECT_EQ(ids(), Ids{"spark/worker"});
  tree.make(kLeaf);
  ASSERT_TRUE(wait([&] { return has(kLeaf); }));
  EXPECT_EQ(found(kLeaf).leaf_of, "spark/worker");
}

TEST_F(DiscoveryTest, ALeafFollowsTheMarksOfItsOrigin) {
  tree.make("spark/worker");
  tree.make(kLeaf);
  start({});
  EXPECT_EQ(ids(), Ids{});
  if (!mark("spark/worker", "user.berth.class", "best-effort"))
    GTEST_SKIP() << "no user attributes on this file system";
  ASSERT_TRUE(wait([&] { return has(kLeaf); }));
  EXPECT_EQ(found(kLeaf).matched_by, "user.berth.class");
  ASSERT_EQ(removexattr((tree.root() / "spark/worker").c_str(), "user.berth.class"), 0);
  ASSERT_TRUE(wait([&] { return !has(kLeaf); }));
}

TEST_F(DiscoveryTest, AUsersCgroupIsNoLeafWhateverItsName) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give directories away";
  tree.make("spark/worker");
  tree.make(kLeaf);
  ASSERT_EQ(chown((tree.root() / kLeaf).c_str(), 1000, 1000), 0);
  start({rule("spark/worker", WorkloadClass::best_effort), best_effort("spark/worker.*")});
  ASSERT_EQ(ids(), (Ids{"spark/worker", kLeaf}));
  EXPECT_EQ(found(kLeaf).leaf_of, "");
  EXPECT_EQ(found(kLeaf).identity.service, "worker.berth-executor-7-100") << "by its own name";
}

}  // namespace
}  // namespace berth::cgroup
