// SPDX-License-Identifier: Apache-2.0
#include "cgroup/cpuset_owners.h"

#include "tests/unit/cgroup/discovery_fixture.h"

#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::cgroup {

namespace {

using model::CpuSet;
using model::OwnedCpus;
using model::OwnedHow;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

CpuSet cpus(const std::string& list) { return CpuSet::parse(list).value(); }

// Twelve vCPUs.
const CpuSet kOnline = CpuSet::range(0, 11);

CpusetGroup pod_container(const std::string& name, PodQos qos, const std::string& list) {
  return {.path = "kubepods.slice/" + name, .container = true, .qos = qos, .cpus = cpus(list)};
}

std::vector<OwnedCpus> owned(const std::vector<CpusetGroup>& groups, const std::string& isolated = "") {
  return owned_cpus(groups, cpus(isolated), kOnline);
}

}  // namespace

TEST(CpusetOwners, APartitionOwnsItsExclusiveVcpus) {
  const CpusetGroup group{
      .path = "rt.slice", .exclusive_effective = cpus("8-11"), .effective = cpus("8-11"), .partition = true};
  EXPECT_THAT(owned({group}), ElementsAre(OwnedCpus{"rt.slice", cpus("8-11"), OwnedHow::partition}));
}

TEST(CpusetOwners, APartitionOfAnOlderKernelOwnsItsCpusetOrWhatIsInForce) {
  const CpusetGroup set{.path = "a.slice", .cpus = cpus("4-5"), .effective = cpus("4"), .partition = true};
  const CpusetGroup unset{.path = "b.slice", .effective = cpus("6-7"), .partition = true};
  EXPECT_THAT(owned({set, unset}), ElementsAre(OwnedCpus{"a.slice", cpus("4-5"), OwnedHow::partition},
                                               OwnedCpus{"b.slice", cpus("6-7"), OwnedHow::partition}));
}

TEST(CpusetOwners, AVcpuOfNestedOwnersBelongsToTheInnermost) {
  const CpusetGroup outer{.path = "rt.slice", .exclusive_effective = cpus("6-11"), .partition = true};
  const CpusetGroup inner{
      .path = "rt.slice/radio.service", .exclusive_effective = cpus("10-11"), .partition = true};
  EXPECT_THAT(owned({outer, inner}),
              ElementsAre(OwnedCpus{"rt.slice", cpus("6-9"), OwnedHow::partition},
                          OwnedCpus{"rt.slice/radio.service", cpus("10-11"), OwnedHow::partition}));
}

TEST(CpusetOwners, AGroupThatListsExclusiveVcpusOwnsThoseOfNoPartitionBelow) {
  const CpusetGroup above{
      .path = "kubepods.slice", .exclusive = cpus("8-11"), .exclusive_effective = cpus("8-11")};
  const CpusetGroup below{
      .path = "kubepods.slice/a.scope", .exclusive_effective = cpus("8-9"), .partition = true};
  EXPECT_THAT(owned({above, below}),
              ElementsAre(OwnedCpus{"kubepods.slice", cpus("10-11"), OwnedHow::exclusive},
                          OwnedCpus{"kubepods.slice/a.scope", cpus("8-9"), OwnedHow::partition}));
}

// As berth puts it back where an empty cpulist is refused.
TEST(CpusetOwners, AContainerOnAllVcpusButAPartitionsOwnsNone) {
  const CpusetGroup partition{.path = "rt.slice", .exclusive_effective = cpus("8-11"), .partition = true};
  const CpusetGroup container{.path = "system.slice/docker-a.scope", .container = true, .cpus = cpus("0-7")};
  EXPECT_THAT(owned({partition, container}), ::testing::SizeIs(1));
}

TEST(CpusetOwners, AnInvalidPartitionIsNone) {
  EXPECT_TRUE(is_valid_partition("root\n"));
  EXPECT_TRUE(is_valid_partition("isolated"));
  for (const char* text : {"", "member", "root invalid (Cpu list in cpuset.cpus not exclusive)",
                           "isolated invalid (Parent is not a partition root)"})
    EXPECT_FALSE(is_valid_partition(text)) << text;
}

TEST(CpusetOwners, ContainersOfGuaranteedPodsOwnExclusiveVcpusWithAQuotaAndWithout) {
  CpusetGroup with = pod_container("a", PodQos::guaranteed, "2-3");
  with.quota_cores = 2;
  const CpusetGroup without = pod_container("b", PodQos::guaranteed, "6,10");
  const CpusetGroup shared = pod_container("c", PodQos::burstable, "0-1,4-5,7-9,11");
  EXPECT_THAT(owned({with, without, shared}),
              ElementsAre(OwnedCpus{"kubepods.slice/a", cpus("2-3"), OwnedHow::kubelet},
                          OwnedCpus{"kubepods.slice/b", cpus("6,10"), OwnedHow::kubelet}));
}

TEST(CpusetOwners, TheSharedPoolOfKubeletBelongsToNobody) {
  const CpusetGroup burstable = pod_container("a", PodQos::burstable, "0-9");
  const CpusetGroup best_effort = pod_container("b", PodQos::best_effort, "0-9");
  CpusetGroup part = pod_container("c", PodQos::guaranteed, "0-9");
  EXPECT_THAT(owned({burstable, best_effort, part}), IsEmpty());
  part.quota_cores = 1.5;
  EXPECT_THAT(owned({part}), IsEmpty()) << "alone in the pool: its quota is no whole number";
  part.quota_cores = 2;
  EXPECT_THAT(owned({part}), IsEmpty()) << "its quota is not the number of the vCPUs";
}

TEST(CpusetOwners, WhatKubeletSaysDecidesWhereItIsKnown) {
  const auto container = [](const std::string& uid, const std::string& list) {
    const std::string slice = "kubepods.slice/kubepods-pod" + uid + ".slice/";
    return CpusetGroup{.path = slice + "cri-containerd-" + kId + ".scope",
                       .container = true,
                       .qos = PodQos::guaranteed,
                       .cpus = cpus(list)};
  };
  const CpusetGroup alone = container("a_1", "2-3");
  const CpusetGroup pool = container("b", "0-1,4-11");
  CpusetGroup sidecar = container("a_1", "2-3");
  sidecar.path.replace(sidecar.path.find("cri-"), 4, "xri-");
  const ExclusiveOfKubelet known{{"a-1", {cpus("2-3")}}};
  EXPECT_THAT(owned_cpus({alone, sidecar, pool}, {}, kOnline, known),
              ElementsAre(OwnedCpus{alone.path, cpus("2-3"), OwnedHow::kubelet}));
  EXPECT_THAT(owned_cpus({pool}, {}, kOnline, known), IsEmpty()) << "alone in the pool, without a quota";
  EXPECT_THAT(owned_cpus({alone}, {}, kOnline, ExclusiveOfKubelet()), IsEmpty()) << "another policy";
}

TEST(CpusetOwners, AContainerThatMayRunAnywhereOwnsNothing) {
  EXPECT_THAT(owned({pod_container("a", PodQos::guaranteed, "0-11")}), IsEmpty());
  EXPECT_THAT(owned({pod_container("a", PodQos::guaranteed, "")}), IsEmpty());
  EXPECT_THAT(owned({{.path = "docker/x", .container = true, .cpus = cpus("0-11")}}), IsEmpty());
}

TEST(CpusetOwners, ContainersOutsideKubernetesOwnTheVcpusOfTheirPin) {
  const CpusetGroup one{.path = "system.slice/docker-1.scope", .container = true, .cpus = cpus("4-5")};
  const CpusetGroup two{.path = "machine.slice/libpod-2.scope", .container = true, .cpus = cpus("5-6")};
  const CpusetGroup unit{.path = "system.slice/web.service", .cpus = cpus("7")};
  EXPECT_THAT(owned({one, two, unit}),
              ElementsAre(OwnedCpus{"machine.slice/libpod-2.scope", cpus("5-6"), OwnedHow::runtime},
                          OwnedCpus{"system.slice/docker-1.scope", cpus("4-5"), OwnedHow::runtime}));
}

TEST(CpusetOwners, IsolatedVcpusOfNoPartitionBelongToTheKernel) {
  const CpusetGroup group{.path = "rt.slice", .exclusive_effective = cpus("8-9"), .partition = true};
  EXPECT_THAT(owned({group}, "8-11,64"),
              ElementsAre(OwnedCpus{"", cpus("10-11"), OwnedHow::isolated},
                          OwnedCpus{"rt.slice", cpus("8-9"), OwnedHow::partition}));
}

class CpusetOwnersTest : public DiscoveryTest {
 protected:
  std::vector<OwnedCpus> read() {
    start({});
    return read_owned_cpus(
        {.cgroup_root = tree.root(),
         .sys_root = tree.root().parent_path() / "sys",
         .online = kOnline,
         .trusted = [this](bool containers) { return discovery->trusted_groups(containers); },
         .original = [](const std::string&, std::uint64_t) { return std::nullopt; },
         .managed = [this](const std::string& path) { return path == best_effort_job; },
         .kubelet_cpus = tree.hierarchy().kubelet_cpus});
  }
  void pin(const std::string& path, const std::string& list) {
    tree.make(path);
    tree.write(path, "cpuset.cpus", list + "\n");
  }
  std::string best_effort_job;

  void partition(const std::string& path, const std::string& list) {
    tree.make(path);
    tree.write(path, "cpuset.cpus.partition", "isolated\n");
    tree.write(path, "cpuset.cpus.exclusive.effective", list + "\n");
  }
};

TEST_F(CpusetOwnersTest, ReadsPartitionsWhereTheRootLacksVcpus) {
  tree.write("", "cpuset.cpus.effective", "0-9\n");
  partition("rt.slice", "10-11");
  EXPECT_THAT(read(), ElementsAre(OwnedCpus{"rt.slice", cpus("10-11"), OwnedHow::partition}));
}

TEST_F(CpusetOwnersTest, KnowsTheVcpusOfValidPartitionsBesideAGroup) {
  const auto beside = [this](const std::string& path) {
    return partitions_beside(**Cgroup::open(tree.root(), path), kOnline);
  };
  const auto make = [this](const std::string& path, const char* kind, const char* list, const char* only) {
    tree.make(path);
    tree.write(path, "cpuset.cpus.partition", std::string(kind) + "\n");
    tree.write(path, "cpuset.cpus", std::string(list) + "\n");
    tree.write(path, "cpuset.cpus.exclusive", std::string(only) + "\n");
  };
  make("rt.slice", "root", "10-11", "");
  make("far.slice", "isolated", "0-11", "8");
  make("none.slice", "root invalid (Cpu list in cpuset.cpus not exclusive)", "4", "");
  make("member.slice", "member", "3", "3");
  make("system.slice/inner.service", "root", "5", "");
  tree.make("system.slice/plain.service");
  tree.write("", "cpuset.cpus.effective", "0-7,9\n");
  EXPECT_EQ(beside("member.slice"), cpus("8,10-11"));
  EXPECT_EQ(beside("far.slice"), cpus("10-11")) << "its own are none beside it";
  EXPECT_EQ(beside("system.slice/plain.service"), cpus("5"));
  tree.write("", "cpuset.cpus.effective", "0-11\n");
  EXPECT_EQ(beside("member.slice"), CpuSet()) << "the root lacks none, so there is no partition";
}

TEST_F(CpusetOwnersTest, ReadsTheCpusetOfAContainerThatIsNoWorkload) {
  tree.write("", "cpuset.cpus.effective", "0-11\n");
  tree.make(kScope);
  tree.write(kScope, "cpuset.cpus", "3\n");
  tree.write(kScope, "cpu.max", "max 100000\n");
  EXPECT_THAT(read(), ElementsAre(OwnedCpus{kScope, cpus("3"), OwnedHow::runtime}));
}

TEST_F(CpusetOwnersTest, AGuestOfLibvirtOwnsTheVcpusThatItsOwnArePinnedTo) {
  const std::string guest = "machine.slice/machine-qemu\\x2d1\\x2dweb.scope/libvirt";
  for (const char* part : {"vcpu0", "vcpu1", "emulator"}) tree.make(guest + '/' + part);
  tree.write(guest + "/vcpu0", "cpuset.cpus", "4\n");
  tree.write(guest + "/vcpu1", "cpuset.cpus", "0-11\n");
  tree.write(guest + "/emulator", "cpuset.cpus", "6\n");
  EXPECT_THAT(read(), ElementsAre(OwnedCpus{guest + "/vcpu0", cpus("4"), OwnedHow::runtime}));
}

TEST_F(CpusetOwnersTest, ContainersTasksAndMachinesOfOtherRuntimesOwnTheVcpusOfTheirCpuset) {
  const std::vector<std::string> owners{
      "libpod_parent/libpod-" + kId,       "lxc.payload.web",
      "machine.slice/machine-build.scope", "machine.slice/systemd-nspawn@db.service",
      "nomad.slice/reserve.slice",         "system.slice/slurmstepd.scope/job_7",
  };
  for (std::size_t i = 0; i < owners.size(); ++i) pin(owners[i], std::to_string(i));
  pin("lxc.monitor.web", "11");
  pin("nomad.slice/share.slice", "0-10");
  pin("user.slice/job_7", "9");
  const auto found = read();
  ASSERT_EQ(found.size(), owners.size());
  for (std::size_t i = 0; i < owners.size(); ++i)
    EXPECT_EQ(found[i], (OwnedCpus{owners[i], cpus(std::to_string(i)), OwnedHow::runtime}));
}

TEST_F(CpusetOwnersTest, AJobOfSlurmThatBerthManagesAsBestEffortWorkOwnsNothing) {
  pin("system.slice/slurmstepd.scope/job_7", "4");
  pin("system.slice/slurmstepd.scope/job_8", "5");
  best_effort_job = "system.slice/slurmstepd.scope/job_7";
  EXPECT_THAT(read(),
              ElementsAre(OwnedCpus{"system.slice/slurmstepd.scope/job_8", cpus("5"), OwnedHow::runtime}));
}

TEST_F(CpusetOwnersTest, AContainerWhoseDirectoryIsItsUsersOwnsTheVcpusThatRootWrote) {
  pin("lxc.payload.web", "4");
  pin("lxc.payload.mine", "5");
  if (chown((tree.root() / "lxc.payload.web").c_str(), 1234, 1234) != 0) GTEST_SKIP() << "needs root";
  ASSERT_EQ(chown((tree.root() / "lxc.payload.mine").c_str(), 1234, 1234), 0);
  ASSERT_EQ(chown((tree.root() / "lxc.payload.mine/cpuset.cpus").c_str(), 1234, 1234), 0);
  EXPECT_THAT(read(), ElementsAre(OwnedCpus{"lxc.payload.web", cpus("4"), OwnedHow::runtime}));
}

TEST_F(CpusetOwnersTest, ExclusiveVcpusCountOnlyWhereTheHostHasAPartition) {
  tree.write("", "cpuset.cpus.effective", "0-11\n");
  tree.make("rt.slice");
  tree.write("rt.slice", "cpuset.cpus.exclusive", "8-9\n");
  EXPECT_THAT(read(), IsEmpty()) << "they keep no work off, and to read them of each group is costly";
  tree.write("", "cpuset.cpus.effective", "0-9\n");
  partition("real.slice", "10-11");
  EXPECT_THAT(read(), ElementsAre(OwnedCpus{"real.slice", cpus("10-11"), OwnedHow::partition},
                                  OwnedCpus{"rt.slice", cpus("8-9"), OwnedHow::exclusive}));
}

TEST_F(CpusetOwnersTest, AGroupOfAUserClaimsNothing) {
  tree.write("", "cpuset.cpus.effective", "0-9\n");
  partition("user.slice/mine.slice", "10-11");
  const std::string container = "user.slice/libpod-" + kId + ".scope";
  tree.make(container);
  tree.write(container, "cpuset.cpus", "3\n");
  if (chown((tree.root() / "user.slice").c_str(), 1234, 1234) != 0) GTEST_SKIP() << "needs root";
  EXPECT_THAT(read(), IsEmpty());
}

TEST_F(CpusetOwnersTest, KubeletsFileSaysWhichPodHasVcpusAlone) {
  const std::string pod = "kubepods.slice/kubepods-pod1_2.slice/cri-containerd-" + kId + ".scope";
  pin(pod, "0-5");
  EXPECT_THAT(read(), ElementsAre(OwnedCpus{pod, cpus("0-5"), OwnedHow::kubelet})) << "by its marks";
  const auto say = [this](const std::string& text) {
    std::ofstream(tree.hierarchy().kubelet_cpus) << text;
    return read();
  };
  const std::string begin = R"({"policyName":"static","defaultCpuSet":"0-5","entries":{"9":{"web":"6-7"})";
  EXPECT_THAT(say(begin + R"(},"checksum":1353318690})"), IsEmpty());
  EXPECT_THAT(say(begin + R"(,"1-2":{"init":"0","db":"0-5"}},"checksum":1})"),
              ElementsAre(OwnedCpus{pod, cpus("0-5"), OwnedHow::kubelet}));
  EXPECT_THAT(say(R"({"policyName":"none","defaultCpuSet":"","checksum":2})"), IsEmpty());
  for (const char* other : {"", "{", R"({"policyName":"static","entries":{"9":"6-7"}})"})
    EXPECT_THAT(say(other), ElementsAre(OwnedCpus{pod, cpus("0-5"), OwnedHow::kubelet})) << other;
}

}  // namespace berth::cgroup
