// SPDX-License-Identifier: Apache-2.0
// Machines of many kinds, told by fake /sys trees.
#include "topology/discover.h"

#include "fake_host.h"

#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace berth::topology {
namespace {

using model::CpuSet;
using model::DomainKind;
using test::FakeCpu;
using test::FakeHost;
using test::regular_host;

model::Topology discovered(const FakeHost& host) {
  auto topology = discover(host.sys(), host.proc());
  EXPECT_TRUE(topology) << topology.error().message();
  if (!topology) throw std::runtime_error(topology.error().message());
  return *topology;
}

std::set<int> distinct(const model::Topology& topology, int model::Cpu::*member) {
  std::set<int> values;
  for (const auto& cpu : topology.cpus()) values.insert(cpu.*member);
  return values;
}

TEST(Discover, TwoSocketsWithSmt) {
  FakeHost host;
  host.set_cpus(regular_host(2, 4, 2));
  const auto topology = discovered(host);
  EXPECT_EQ(topology.usable(), CpuSet::range(0, 15));
  EXPECT_EQ(topology.core_threads(1), (CpuSet{1, 9}));
  EXPECT_EQ(topology.max_threads_per_core(), 2);
  ASSERT_EQ(topology.domains(DomainKind::llc).size(), 2U);
  EXPECT_EQ(topology.domains(DomainKind::llc)[1].cpus, *CpuSet::parse("4-7,12-15"));
  EXPECT_EQ(topology.domains(DomainKind::llc)[1].socket, 1);
  EXPECT_EQ(topology.find(12)->numa, 1);
  EXPECT_EQ(topology.smt_rank(12), 1);
  for (const auto& cpu : topology.cpus()) EXPECT_FALSE(cpu.efficiency);
}

TEST(Discover, DistancesOfNumaNodes) {
  FakeHost host;
  host.set_memory_only_nodes({5});
  host.set_cpus(regular_host(2, 4, 2));
  host.write("devices/system/node/node0/distance", "10 21 28\n");
  host.write("devices/system/node/node1/distance", "22 10 28\n");
  host.write("devices/system/node/node5/distance", "28 28 10\n");
  const model::NumaDistances distances = discovered(host).numa_distances();
  EXPECT_EQ(distances.nodes, (std::vector<int>{0, 1})) << "of nodes with vCPUs alone";
  EXPECT_EQ(distances.values, (std::vector<int>{10, 21, 22, 10}));
  host.set_memory_only_nodes({});
  host.set_cpus(regular_host(1, 4, 2));
  EXPECT_TRUE(discovered(host).numa_distances().nodes.empty());
}

TEST(Discover, FourThreadsPerCore) {
  FakeHost host;
  host.set_cpus(regular_host(1, 4, 4));
  const auto topology = discovered(host);
  EXPECT_EQ(topology.max_threads_per_core(), 4);
  EXPECT_EQ(topology.core_threads(2), (CpuSet{2, 6, 10, 14}));
  EXPECT_EQ(topology.smt_rank(14), 3);
}

TEST(Discover, OneCore) {
  FakeHost host;
  host.set_cpus(regular_host(1, 1, 1));
  const auto topology = discovered(host);
  EXPECT_EQ(topology.usable(), CpuSet{0});
  EXPECT_TRUE(topology.has_llc());
}

TEST(Discover, SeveralCachesPerSocketAreSeveralDomains) {
  FakeHost host;
  auto cpus = regular_host(1, 8, 2);
  for (auto& cpu : cpus) cpu.l3 = cpu.core / 4;
  host.set_cpus(cpus);
  const auto topology = discovered(host);
  ASSERT_EQ(topology.domains(DomainKind::llc).size(), 2U);
  EXPECT_EQ(topology.domains(DomainKind::llc)[0].cpus, *CpuSet::parse("0-3,8-11"));
  EXPECT_EQ(topology.sockets().size(), 1U);
}

TEST(Discover, WithoutLevel3ASharedLevel2Counts) {
  FakeHost host;
  auto cpus = regular_host(1, 8, 1);
  for (auto& cpu : cpus) {
    cpu.l3.reset();
    cpu.l2 = cpu.core / 4;
  }
  host.set_cpus(cpus);
  const auto topology = discovered(host);
  EXPECT_TRUE(topology.has_llc());
  ASSERT_EQ(topology.domains(DomainKind::llc).size(), 2U);
  EXPECT_EQ(topology.domains(DomainKind::llc)[1].cpus, CpuSet::range(4, 7));
}

TEST(Discover, APrivateLevel2IsNoDomain) {
  FakeHost host;
  auto cpus = regular_host(2, 2, 2);
  for (auto& cpu : cpus) cpu.l3.reset();
  host.set_cpus(cpus);
  const auto topology = discovered(host);
  EXPECT_FALSE(topology.has_llc());
  // Sockets stand in for the missing domains.
  EXPECT_EQ(topology.domains(DomainKind::llc).size(), 2U);
}

TEST(Discover, LowPowerCoresOutsideLevel3HaveTheirOwnDomain) {
  FakeHost host;
  auto cpus = regular_host(1, 6, 1);
  for (auto& cpu : cpus) {
    if (cpu.cpu >= 4) {
      cpu.l3.reset();
      cpu.l2 = 100;  // shared by the two
    }
  }
  host.set_cpus(cpus);
  const auto topology = discovered(host);
  EXPECT_TRUE(topology.has_llc());
  ASSERT_EQ(topology.domains(DomainKind::llc).size(), 2U);
  EXPECT_EQ(topology.domains(DomainKind::llc)[1].cpus, (CpuSet{4, 5}));
}

TEST(Discover, SeveralNumaNodesPerSocketAndInsideACache) {
  FakeHost host;
  auto cpus = regular_host(2, 4, 1);
  for (auto& cpu : cpus) cpu.node = cpu.core / 2;
  host.set_cpus(cpus);
  const auto topology = discovered(host);
  EXPECT_EQ(distinct(topology, &model::Cpu::numa), (std::set<int>{0, 1, 2, 3}));
  EXPECT_EQ(topology.find(3)->numa, 1);
  EXPECT_EQ(topology.find(3)->llc, topology.find(0)->llc);
}

TEST(Discover, NodesWithoutProcessorsAreNobodysLocalNode) {
  FakeHost host;
  host.set_memory_only_nodes({0, 3});
  auto cpus = regular_host(2, 2, 2);
  for (auto& cpu : cpus) cpu.node = cpu.package + 1;
  host.set_cpus(cpus);
  const auto topology = discovered(host);
  EXPECT_EQ(distinct(topology, &model::Cpu::numa), (std::set<int>{1, 2}));
  EXPECT_EQ(topology.find(0)->numa, 1);
  EXPECT_EQ(topology.find(2)->numa, 2);
  EXPECT_EQ(topology.nodes_to_bind(), (CpuSet{1, 2}));
  ASSERT_EQ(topology.numa_nodes().size(), 4U);
  EXPECT_EQ(topology.numa_nodes()[3], (model::NumaNode{.number = 3, .memory_bytes = 1U << 30U}));
}

TEST(Discover, SparseNodesAndPackagesKeepTheKernelsNumbers) {
  FakeHost host;
  auto cpus = regular_host(2, 4, 2);
  for (auto& cpu : cpus) cpu.node = cpu.package = cpu.package == 0 ? 0 : 8;
  host.set_cpus(cpus);
  const auto topology = discovered(host);
  EXPECT_EQ(distinct(topology, &model::Cpu::numa), (std::set<int>{0, 8}));
  EXPECT_EQ(distinct(topology, &model::Cpu::socket), (std::set<int>{0, 8}));
  EXPECT_EQ(topology.find(4)->numa, 8);
  EXPECT_EQ(topology.numa_distances().nodes, (std::vector<int>{0, 8}));
  EXPECT_TRUE(topology.numa_nodes().empty()) << "each has vCPUs and memory";
}

// An expander of the first socket gets its number from the firmware, before the nodes of vCPUs.
TEST(Discover, AnExpanderBeforeTheNodesOfVcpusDoesNotShiftThem) {
  FakeHost host;
  host.set_memory_only_nodes({33});
  auto cpus = regular_host(2, 2, 1);
  for (auto& cpu : cpus) cpu.node = cpu.package == 0 ? 34 : 45;
  host.set_cpus(cpus);
  const auto topology = discovered(host);
  EXPECT_EQ(topology.find(0)->numa, 34);
  EXPECT_EQ(topology.find(3)->numa, 45);
  EXPECT_EQ(topology.numa_distances().between(34, 45), 20);
  EXPECT_EQ(topology.nodes_to_bind(), (CpuSet{34, 45}));
}

TEST(Discover, ANodeWithoutMemoryIsKnownAndNotBoundTo) {
  FakeHost host;
  host.set_cpus(regular_host(3, 2, 1));
  host.write("devices/system/node/node1/meminfo", "Node 1 MemTotal:             0 kB\n");
  EXPECT_EQ(discovered(host).nodes_to_bind(), (CpuSet{0, 2}));
  // The kernel's own list counts, if there is one.
  host.write("devices/system/node/has_memory", "1-2\n");
  const auto topology = discovered(host);
  EXPECT_EQ(topology.nodes_to_bind(), (CpuSet{1, 2}));
  ASSERT_EQ(topology.numa_nodes().size(), 3U);
  EXPECT_EQ(topology.numa_nodes()[0].memory_bytes, 0U);
  EXPECT_EQ(topology.numa_nodes()[1].memory_bytes, std::nullopt) << "the two contradict each other";
  EXPECT_EQ(read_memory_nodes(host.sys()), (CpuSet{1, 2}));
  host.remove("devices/system/node/has_memory");
  EXPECT_EQ(read_memory_nodes(host.sys()), std::nullopt);
}

// As on hosts of s390x, where each book counts its packages anew.
TEST(Discover, PackagesThatShareANumberAreNumberedByBerth) {
  FakeHost host;
  auto cpus = regular_host(2, 2, 1);
  host.set_cpus(cpus);
  for (const auto& cpu : cpus)
    host.write("devices/system/cpu/cpu" + std::to_string(cpu.cpu) + "/topology/physical_package_id", "7\n");
  const auto topology = discovered(host);
  EXPECT_EQ(distinct(topology, &model::Cpu::socket), (std::set<int>{0, 1}));
}

TEST(Discover, AnOfflineVcpuOfUnknownPlaceIsOnANodeThatExists) {
  FakeHost host;
  auto cpus = regular_host(1, 4, 1);
  for (auto& cpu : cpus) {
    cpu.node = cpu.package = 8;
    cpu.online = cpu.cpu != 3;
  }
  host.set_cpus(cpus);
  host.remove("devices/system/cpu/cpu3/node8");
  const auto topology = discovered(host);
  EXPECT_EQ(distinct(topology, &model::Cpu::numa), (std::set<int>{8}));
  EXPECT_EQ(distinct(topology, &model::Cpu::socket), (std::set<int>{8}));
}

TEST(Discover, OfflineProcessorsAreListedAndMarked) {
  FakeHost host;
  auto cpus = regular_host(2, 4, 2);
  for (auto& cpu : cpus) cpu.online = cpu.cpu != 5 && cpu.cpu < 12;
  host.set_cpus(cpus);
  const auto topology = discovered(host);
  EXPECT_EQ(topology.all(), CpuSet::range(0, 15));
  EXPECT_EQ(topology.usable(), *CpuSet::parse("0-4,6-11"));
  const auto* offline = topology.find(5);
  ASSERT_NE(offline, nullptr);
  EXPECT_FALSE(offline->online);
  EXPECT_EQ(offline->numa, 1);
  EXPECT_EQ(offline->socket, 1);
  EXPECT_EQ(*read_online(host.sys()), topology.usable());
}

TEST(Discover, SmtSwitchedOffLeavesOneThreadPerCore) {
  FakeHost host;
  auto cpus = regular_host(1, 4, 2);
  for (auto& cpu : cpus) cpu.online = cpu.cpu < 4;
  host.set_cpus(cpus);
  const auto topology = discovered(host);
  EXPECT_EQ(topology.max_threads_per_core(), 1);
  EXPECT_EQ(topology.usable(), CpuSet::range(0, 3));
  EXPECT_EQ(topology.all(), CpuSet::range(0, 7));
}

TEST(Discover, TheRootCpusetSaysWhatIsAllowed) {
  for (const char* file : {"fs/cgroup/cpuset.cpus.effective", "fs/cgroup/cpuset/cpuset.effective_cpus",
                           "fs/cgroup/cpuset/cpuset.cpus"}) {
    FakeHost host;
    host.set_cpus(regular_host(1, 4, 1));
    host.write(file, "1-2\n");
    const auto topology = discovered(host);
    EXPECT_EQ(topology.usable(), (CpuSet{1, 2})) << file;
    EXPECT_EQ(topology.all(), CpuSet::range(0, 3)) << file;
    EXPECT_TRUE(topology.find(0)->online) << file;
    EXPECT_FALSE(topology.find(0)->allowed) << file;
  }
}

TEST(Discover, AnEmptyRootCpusetRestrictsNothing) {
  FakeHost host;
  host.set_cpus(regular_host(1, 2, 1));
  host.write("fs/cgroup/cpuset.cpus.effective", "\n");
  EXPECT_EQ(discovered(host).usable(), (CpuSet{0, 1}));
}

TEST(Discover, HybridCoresAreRankedByTheirPmus) {
  FakeHost host;
  host.set_cpus(regular_host(1, 6, 1));
  host.write("devices/cpu_core/cpus", "0-1\n");
  host.write("devices/cpu_atom/cpus", "2-3\n");
  host.write("devices/cpu_lowpower/cpus", "4-5\n");
  const auto topology = discovered(host);
  EXPECT_EQ(topology.find(0)->efficiency, 2);
  EXPECT_EQ(topology.find(2)->efficiency, 1);
  EXPECT_EQ(topology.find(5)->efficiency, 0);
}

TEST(Discover, HybridCoresAreRankedByCapacity) {
  FakeHost host;
  auto cpus = regular_host(1, 4, 1);
  for (auto& cpu : cpus) cpu.capacity = cpu.cpu < 2 ? 446 : 1024;
  host.set_cpus(cpus);
  const auto topology = discovered(host);
  EXPECT_EQ(topology.find(0)->efficiency, 0);
  EXPECT_EQ(topology.find(3)->efficiency, 1);
}

TEST(Discover, FavouredCoresAreNotAnotherKind) {
  FakeHost host;
  auto cpus = regular_host(1, 4, 1);
  for (auto& cpu : cpus) cpu.max_freq_khz = 4700000 + 100000 * cpu.cpu;
  host.set_cpus(cpus);
  const auto topology = discovered(host);
  for (const auto& cpu : topology.cpus()) EXPECT_FALSE(cpu.efficiency) << cpu.cpu;
}

TEST(Discover, ThreadsTornApartByFirmwareFollowTheirCoresFirst) {
  FakeHost host;
  auto cpus = regular_host(1, 2, 2);
  for (auto& cpu : cpus) cpu.node = cpu.cpu < 2 ? 0 : 1;  // first and second threads in different nodes
  host.set_cpus(cpus);
  const auto topology = discovered(host);
  EXPECT_EQ(topology.find(2)->numa, topology.find(0)->numa);
}

TEST(Discover, ALevel3AcrossSocketsIsCutAtThem) {
  FakeHost host;
  auto cpus = regular_host(2, 2, 1);
  for (auto& cpu : cpus) cpu.l3 = 0;
  host.set_cpus(cpus);
  const auto topology = discovered(host);
  EXPECT_EQ(topology.domains(DomainKind::llc).size(), 2U);
}

TEST(Discover, MoreThanAThousandProcessors) {
  FakeHost host;
  host.set_cpus(regular_host(4, 130, 2));
  const auto topology = discovered(host);
  EXPECT_EQ(topology.usable(), CpuSet::range(0, 1039));
  EXPECT_EQ(topology.domains(DomainKind::llc).size(), 4U);
  EXPECT_EQ(topology.core_threads(0), (CpuSet{0, 520}));
}

TEST(Discover, ARootWithoutProcessorsIsNamed) {
  const FakeHost host;
  const auto topology = discover(host.sys(), host.proc());
  ASSERT_FALSE(topology);
  EXPECT_EQ(topology.error().kind(), model::ErrorKind::gone);
  EXPECT_NE(topology.error().message().find((host.sys() / "devices/system/cpu/online").string()),
            std::string::npos)
      << topology.error().message();
}

TEST(Discover, NothingUsableIsAnError) {
  FakeHost host;
  host.set_cpus(regular_host(1, 2, 1));
  host.write("fs/cgroup/cpuset.cpus.effective", "7\n");
  const auto topology = discover(host.sys(), host.proc());
  ASSERT_FALSE(topology);
  EXPECT_NE(topology.error().message().find((host.sys() / "devices/system/cpu").string()), std::string::npos);
}

TEST(Discover, GarbledFilesAreNamed) {
  FakeHost host;
  host.set_cpus(regular_host(1, 2, 1));
  host.write("fs/cgroup/cpuset.cpus.effective", "0-banana\n");
  const auto topology = discover(host.sys(), host.proc());
  ASSERT_FALSE(topology);
  EXPECT_NE(topology.error().message().find("cpuset.cpus.effective"), std::string::npos);
  host.write("devices/system/cpu/online", "\xff\xff");
  const auto online = read_online(host.sys());
  ASSERT_FALSE(online);
  EXPECT_NE(online.error().message().find("devices/system/cpu/online"), std::string::npos);
}

TEST(Discover, LeavesTheEnvironmentAndTemporaryDirectoryAsTheyWere) {
  FakeHost host;
  host.set_cpus(regular_host(1, 2, 1));
  const auto roots_left = [] {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::temp_directory_path())) {
      const auto name = entry.path().filename().string();
      if (name.rfind("berth-roots-", 0) == 0) names.insert(name);
    }
    return names;
  };
  const auto before = roots_left();
  discovered(host);
  EXPECT_EQ(std::getenv("HWLOC_FSROOT"), nullptr);
  for (const auto& name : roots_left()) EXPECT_TRUE(before.count(name)) << name;
}

TEST(Discover, TheHostItself) {
  const auto topology = discover();
  ASSERT_TRUE(topology) << topology.error().message();
  const auto online = read_online("/sys");
  ASSERT_TRUE(online) << online.error().message();
  EXPECT_TRUE(topology->usable().is_subset_of(*online));
  EXPECT_TRUE(online->is_subset_of(topology->all()));
}

TEST(Discover, TheHostItselfFromAnotherRootIsTheSame) {
  const auto direct = discover();
  ASSERT_TRUE(direct) << direct.error().message();
  const FakeHost host;
  std::filesystem::create_directory_symlink("/sys", host.root() / "elsewhere");
  const auto moved = discover(host.root() / "elsewhere", "/proc");
  ASSERT_TRUE(moved) << moved.error().message();
  EXPECT_EQ(*direct, *moved);
}

}  // namespace
}  // namespace berth::topology
