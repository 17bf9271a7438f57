// SPDX-License-Identifier: Apache-2.0
// Finds the devices of the PCI bus that are GPUs.
#include "topology/gpus.h"

#include "fake_gpus.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::topology {
namespace {

using test::add_pci;
using test::FakePci;

// vCPUs 0-3 on NUMA node 0, 4-7 on node 1.
std::vector<model::Cpu> two_nodes() {
  std::vector<model::Cpu> cpus;
  for (int cpu = 0; cpu < 8; ++cpu) {
    cpus.push_back(
        {.cpu = cpu, .core = cpu, .llc = {}, .numa = cpu / 4, .socket = cpu / 4, .efficiency = {}});
  }
  return cpus;
}

class Gpus : public testing::Test {
 protected:
  std::vector<PciGpu> found() const { return find_gpus(host.sys(), two_nodes()); }
  std::vector<std::string> ids() const {
    std::vector<std::string> list;
    for (const auto& gpu : found()) list.push_back(gpu.id);
    return list;
  }
  test::FakeHost host;
};

TEST_F(Gpus, NoneWithoutAPciBus) { EXPECT_TRUE(found().empty()); }

TEST_F(Gpus, AnNvidiaGpuIsFoundWithItsPlace) {
  add_pci(host, "0000:3b:00.0", {.local_cpulist = "4-7"});
  EXPECT_EQ(found(), (std::vector<PciGpu>{{.id = "0000:3b:00.0",
                                           .vendor = GpuVendor::nvidia,
                                           .pci_id = "10de:2330",
                                           .driver = "nvidia",
                                           .numa = 1}}));
}

TEST_F(Gpus, EightComeAscending) {
  std::vector<std::string> expected;
  for (int i = 7; i >= 0; --i) add_pci(host, fmt::format("0000:{:02x}:00.0", 0x1a + 0x20 * i), {});
  for (int i = 0; i < 8; ++i) expected.push_back(fmt::format("0000:{:02x}:00.0", 0x1a + 0x20 * i));
  EXPECT_EQ(ids(), expected);
}

TEST_F(Gpus, ConsoleChipsAndOtherDevicesAreNone) {
  add_pci(host, "0000:00:01.0",
          {.pci_class = "0x030000", .vendor = "0x1a03", .driver = "ast", .render_node = true});
  add_pci(host, "0000:00:02.0", {.pci_class = "0x030000", .vendor = "0x102b", .driver = "mgag200"});
  add_pci(host, "0000:00:03.0", {.pci_class = "0x030000", .vendor = "0x1234", .driver = "bochs-drm"});
  add_pci(host, "0000:00:04.0",
          {.pci_class = "0x038000", .vendor = "0x1af4", .driver = "virtio-pci", .render_node = true});
  add_pci(host, "0000:00:05.0",
          {.pci_class = "0x030000", .vendor = "0x1002", .driver = "radeon", .render_node = true});
  add_pci(host, "0000:00:06.0", {.pci_class = "0x040300"});  // the sound of an NVIDIA GPU
  add_pci(host, "0000:00:07.0", {.pci_class = "0x120000"});  // an accelerator that is not AMD's
  EXPECT_TRUE(found().empty());
}

TEST_F(Gpus, AmdAndIntelCountWithTheirDriverAndARenderNode) {
  add_pci(host, "0000:01:00.0", test::amd_gpu());
  FakePci accelerator = test::amd_gpu();
  accelerator.pci_class = "0x120000";
  add_pci(host, "0000:02:00.0", accelerator);
  add_pci(host, "0000:03:00.0",
          {.pci_class = "0x038000", .vendor = "0x8086", .driver = "xe", .render_node = true});
  add_pci(host, "0000:04:00.0", {.pci_class = "0x038000", .vendor = "0x8086", .driver = "xe"});
  add_pci(host, "0000:05:00.0",
          {.pci_class = "0x038000", .vendor = "0x8086", .driver = "vfio-pci", .render_node = true});
  EXPECT_EQ(ids(), (std::vector<std::string>{"0000:01:00.0", "0000:02:00.0", "0000:03:00.0"}));
}

TEST_F(Gpus, AVirtualFunctionIsPartOfAnother) {
  add_pci(host, "0000:3b:00.0", {});
  add_pci(host, "0000:3b:00.4", {});
  std::filesystem::create_directory_symlink("../0000:3b:00.0",
                                            host.sys() / test::pci_file("0000:3b:00.4", "physfn"));
  EXPECT_EQ(ids(), std::vector<std::string>{"0000:3b:00.0"});
}

TEST_F(Gpus, WithoutOneNodeItsPlaceIsNotKnown) {
  for (const char* list : {"0-7", "", "2-5", "banana", "64-127"}) {
    add_pci(host, "0000:3b:00.0", {.local_cpulist = list});
    ASSERT_EQ(found().size(), 1U) << list;
    EXPECT_EQ(found().front().numa, std::nullopt) << list;
  }
  host.remove(test::pci_file("0000:3b:00.0", "local_cpulist"));
  EXPECT_EQ(found().front().numa, std::nullopt);
}

TEST_F(Gpus, DamagedDevicesAreSkipped) {
  for (const auto& [name, pci] : std::vector<std::pair<std::string, FakePci>>{
           {"0000:3b:00", {}},
           {"0000:3b:00.0.bak", {}},
           {"0000:3B:00.0", {}},
           {"zzzz:3b:00.0", {}},
           {"0000:01:00.0", {.pci_class = ""}},
           {"0000:02:00.0", {.pci_class = "030200"}},
           {"0000:03:00.0", {.pci_class = "0xffffffffffffff"}},
           {"0000:04:00.0", {.vendor = "nvidia"}},
           {"0000:05:00.0", {.device = ""}},
           {"0000:06:00.0", {.pci_class = std::string(100'000, 'x')}}}) {
    add_pci(host, name, pci);
  }
  EXPECT_TRUE(found().empty()) << ids().front();
}

TEST_F(Gpus, OfAbsurdlyManyTheFirstAreTaken) {
  for (int i = 0; i < 260; ++i) add_pci(host, fmt::format("{:04x}:01:00.0", i), {});
  EXPECT_EQ(found().size(), kMostGpus);
  EXPECT_EQ(found().front().id, "0000:01:00.0");
}

TEST_F(Gpus, OneWithoutADriverToComputeWithIsUnhealthy) {
  add_pci(host, "0000:01:00.0", {});
  add_pci(host, "0000:02:00.0", {.driver = ""});
  add_pci(host, "0000:03:00.0", {.driver = "vfio-pci"});
  const auto gpus = found();
  ASSERT_EQ(gpus.size(), 3U);
  EXPECT_TRUE(gpu_of(gpus[0]).healthy);
  EXPECT_EQ(gpu_of(gpus[0]).model, "PCI 10de:2330");
  EXPECT_EQ(gpu_of(gpus[0]).memory_bytes, std::nullopt);
  EXPECT_EQ(gpu_of(gpus[1]).problem, "it has no driver");
  EXPECT_FALSE(gpu_of(gpus[2]).healthy);
  EXPECT_EQ(gpu_of(gpus[2]).problem, "its driver is vfio-pci, with which nothing on this host can compute");
}

// With any content of the files: only GPUs of the three, each once, ascending, and a topology takes them.
RC_GTEST_PROP(GpusProperty, AnyBusGivesGpusThatATopologyTakes, ()) {
  const test::FakeHost host;
  const auto count = *rc::gen::inRange(0, 12);
  for (int i = 0; i < count; ++i) {
    FakePci pci;
    pci.pci_class =
        *rc::gen::element<std::string>("0x030000", "0x030200", "0x038000", "0x120000", "0x020000", "0x", "x");
    pci.vendor = *rc::gen::element<std::string>("0x10de", "0x1002", "0x8086", "0x1a03", "");
    pci.driver = *rc::gen::element<std::string>("nvidia", "amdgpu", "i915", "vfio-pci", "");
    pci.local_cpulist = *rc::gen::element<std::string>("0-3", "4-7", "0-7", "", "-");
    pci.render_node = *rc::gen::arbitrary<bool>();
    add_pci(host, fmt::format("0000:{:02x}:00.{}", *rc::gen::inRange(0, 256), *rc::gen::inRange(0, 8)), pci);
  }
  const auto found = find_gpus(host.sys(), two_nodes());
  std::vector<model::Gpu> gpus;
  for (const auto& gpu : found) gpus.push_back(gpu_of(gpu));
  RC_ASSERT(
      std::is_sorted(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.id < b.id; }));
  RC_ASSERT(model::Topology::make(two_nodes(), gpus).has_value());
}

}  // namespace
}  // namespace berth::topology
