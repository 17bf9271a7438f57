// SPDX-License-Identifier: Apache-2.0
// vCPUs that other programs gave to their own work, as snapshots tell them.
#include "daemon/observe/observer.h"
#include "model/json.h"
#include "policies/decide.h"
#include "tests/unit/daemon/fake_node.h"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace berth::daemon {
namespace {

using model::CpuSet;
using model::OwnedCpus;
using model::OwnedHow;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

CpuSet cpus(const std::string& list) { return CpuSet::parse(list).value(); }

const std::string kPods = "kubepods.slice";

std::string container(const std::string& pod, char digit) {
  return kPods + "/kubepods-pod" + pod + ".slice/cri-containerd-" + std::string(64, digit) + ".scope";
}

std::vector<model::Set> pins(const model::Plan& plan) {
  std::vector<model::Set> found;
  for (const auto& action : plan.actions) {
    if (action.sets<model::CpuSet>() != nullptr) found.push_back(std::get<model::Set>(action.what));
  }
  return found;
}

// A host of eight vCPUs.
class OwnersTest : public testing::Test {
 protected:
  void SetUp() override {
    node.configure(R"(
[[workload]]
match = "web/*"
class = "latency-sensitive"
vcpus = 2
isolation = "vcpus"
[[workload]]
match = "kubepods*"
[[workload]]
match = "rt/*"
class = "latency-sensitive"
vcpus = 2
[[workload]]
match = "batch/*"
class = "best-effort"
)");
  }
  void start() {
    auto started = Observer::start(node.hierarchy(), node.settings().rules, node.proc(), node.sys(), 60);
    if (!started) throw std::runtime_error(started.error().message());
    observer = std::move(*started);
  }
  const model::Snapshot& tick() {
    now += 20;  // the cpusets of others are read again
    observer->take_changes();
    messages = observer->read(now);
    return observer->assemble({.holdings = holdings, .overrides = *overrides});
  }
  const model::Workload& workload(const std::string& id) const {
    const auto& all = observer->snapshot().workloads;
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& it) { return it.id == id; });
    if (found == all.end()) throw std::runtime_error("no workload " + id);
    return *found;
  }
  void make_partition(const std::string& path, const std::string& list, const std::string& rest) const {
    node.put(path, "cpuset.cpus", list);
    node.put(path, "cpuset.cpus.partition", "root");
    node.put(path, "cpuset.cpus.effective", list);
    node.put("", "cpuset.cpus.effective", rest);
  }

  test::FakeNode node;
  std::unique_ptr<Observer> observer;
  Holdings holdings;
  double now = 1000;
  std::optional<std::string> warning;
  std::optional<Overrides> overrides{std::in_place, node.runtime_dir(), warning};
  std::vector<std::string> messages;
};

TEST_F(OwnersTest, WorkInAPartitionIsLeftAloneAndItsVcpusAreNotGivenOut) {
  node.add_group("rt/radio");
  node.add_group("web/a");
  make_partition("rt", "6-7", "0-5");
  start();
  const auto& snapshot = tick();
  EXPECT_THAT(snapshot.owned_cpus, ElementsAre(OwnedCpus{"rt", cpus("6-7"), OwnedHow::partition}));
  EXPECT_EQ(snapshot.topology.usable(), cpus("0-5"));
  EXPECT_THAT(workload("rt/radio").left_alone.value_or(""),
              HasSubstr("vCPUs 6-7 belong to rt: cpuset.cpus.partition"));
  EXPECT_EQ(workload("rt/radio").vcpus, std::nullopt);
  EXPECT_TRUE(workload("rt/radio").fixed.life);
  EXPECT_EQ(workload("web/a").left_alone, std::nullopt);
  const auto read = model::parse_snapshot(model::to_json(snapshot));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->snapshot.owned_cpus, snapshot.owned_cpus);
  auto workloads = snapshot.workloads;
  for (auto& workload : workloads) workload.cgroup_id = 0;  // no document has it
  EXPECT_EQ(read->snapshot.workloads, workloads);
}

TEST_F(OwnersTest, APartitionThatIsMadeAndDissolvedWhileBerthdRunsIsFollowedAndSaid) {
  node.add_group("rt/radio");
  start();
  EXPECT_THAT(tick().owned_cpus, IsEmpty());
  make_partition("rt", "6-7", "0-5");
  (void)tick();
  EXPECT_EQ(tick().topology.usable(), cpus("0-5"));
  EXPECT_THAT(messages, Contains(HasSubstr("vCPUs 6-7 belong to rt")));
  (void)tick();
  EXPECT_THAT(messages, IsEmpty()) << "said once";
  node.put("rt", "cpuset.cpus.partition", "member");
  node.put("", "cpuset.cpus.effective", "0-7");
  (void)tick();
  EXPECT_EQ(tick().topology.usable(), cpus("0-7"));
  EXPECT_EQ(workload("rt/radio").left_alone, std::nullopt);
  EXPECT_EQ(workload("rt/radio").vcpus, 2);
}

TEST_F(OwnersTest, NothingIsPlannedOntoTheExclusiveVcpusOfAPodsContainer) {
  node.add_group(container("1", 'a'), "1,5");
  node.add_group(kPods + "/kubepods-burstable.slice/kubepods-burstable-pod2.slice/cri-containerd-" +
                     std::string(64, 'b') + ".scope",
                 "0,2-4,6-7");
  node.add_group("web/a");
  node.add_group("batch/b");
  start();
  const auto plan = policies::decide(tick(), {});
  EXPECT_THAT(observer->snapshot().owned_cpus,
              ElementsAre(OwnedCpus{container("1", 'a'), cpus("1,5"), OwnedHow::kubelet}));
  ASSERT_EQ(plan.actions.empty(), false);
  for (const auto& action : plan.actions) {
    const auto* pin = action.sets<model::CpuSet>();
    if (pin == nullptr) continue;
    EXPECT_FALSE(pin->intersects(cpus("1,5"))) << *action.workload();
  }
}

TEST_F(OwnersTest, IsolatedVcpusAreNotGivenOut) {
  node.host().write("devices/system/cpu/isolated", "2-3\n");
  start();
  EXPECT_THAT(tick().owned_cpus, ElementsAre(OwnedCpus{"", cpus("2-3"), OwnedHow::isolated}));
  EXPECT_EQ(observer->snapshot().topology.usable(), cpus("0-1,4-7"));
}

TEST_F(OwnersTest, APinOfBerthsMakesNoOwner) {
  const std::string pod = container("1", 'a');
  node.add_group(pod, "0-1");
  node.put(pod, "cpu.max", "200000 100000");
  start();
  holdings.of(model::Attribute::cpus)[pod] = make_held(observer->cgroup_id(pod), cpus("0-1"), CpuSet(), now);
  EXPECT_THAT(tick().owned_cpus, IsEmpty());
  holdings.of(model::Attribute::cpus).clear();
  EXPECT_THAT(tick().owned_cpus, ElementsAre(OwnedCpus{pod, cpus("0-1"), OwnedHow::kubelet}));
}

TEST_F(OwnersTest, AJobOfSlurmOwnsItsVcpusUnlessARuleMakesItBestEffort) {
  node.add_group("batch/slurmstepd.scope/job_7", "2-3");
  node.add_group("system.slice/slurmstepd.scope/job_8", "4-5");
  start();
  EXPECT_THAT(tick().owned_cpus,
              ElementsAre(OwnedCpus{"system.slice/slurmstepd.scope/job_8", cpus("4-5"), OwnedHow::runtime}));
}

TEST_F(OwnersTest, WorkThatContainsAnOwnerIsLeftAloneWhateverNamesStandBeforeIt) {
  for (const char* path : {"web/a/slurmstepd.scope/job_7", "web/a-b/slurmstepd.scope/job_8"})
    node.add_group(path, "4-5");
  node.add_group("web/a");
  start();
  tick();
  EXPECT_NE(workload("web/a").left_alone, std::nullopt);
}

TEST_F(OwnersTest, AGroupOfAUserClaimsNoVcpus) {
  node.add_group("rt/radio");
  make_partition("rt", "6-7", "0-5");
  if (chown((node.tree() / "rt").c_str(), 1234, 1234) != 0) GTEST_SKIP() << "needs root";
  start();
  EXPECT_THAT(tick().owned_cpus, IsEmpty());
}

TEST_F(OwnersTest, IfOthersOwnAllVcpusBestEffortWorkGetsThoseOfContainersAndServicesNone) {
  node.host().write("devices/system/cpu/isolated", "2-7\n");
  node.add_group("system.slice/docker-" + std::string(64, 'a') + ".scope", "0-1");
  node.add_group("web/a");
  node.add_group("batch/b");
  start();
  (void)tick();
  const auto plan = policies::decide(tick(), {});
  EXPECT_EQ(observer->snapshot().topology.usable(), cpus("0-1"));
  EXPECT_THAT(messages,
              Contains(HasSubstr("other programs own every vCPU that berth may use: no service gets "
                                 "vCPUs of its own, and best-effort work runs on those of "
                                 "containers")));
  EXPECT_THAT(pins(plan), ElementsAre(model::Set{.workload = "batch/b", .value = cpus("0-1")}));
  ASSERT_EQ(plan.findings.interference->warnings.size(), 1U);
  EXPECT_THAT(plan.findings.interference->warnings.front().reason,
              HasSubstr("it finds no place: other programs own every vCPU"));
}

TEST_F(OwnersTest, IfTheKernelIsolatesAllVcpusNothingIsPinnedAndThatIsSaid) {
  node.host().write("devices/system/cpu/isolated", "0-7\n");
  node.add_group("web/a");
  node.add_group("batch/b");
  start();
  (void)tick();
  EXPECT_THAT(pins(policies::decide(tick(), {})), IsEmpty());
  EXPECT_THAT(messages, Contains(HasSubstr("best-effort work is not pinned")));
}

}  // namespace
}  // namespace berth::daemon
