// SPDX-License-Identifier: Apache-2.0
// The host's GPUs over time: found, asked, lost, back.
#include "topology/gpu_inventory.h"

#include "fake_gpus.h"
#include "tests/no_threads.h"
#include "tests/paths.h"
#include "tests/patience.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace berth::topology {
namespace {

using test::add_pci;
using test::comes_true;

constexpr const char* kId = "0000:3b:00.0";

class GpuInventoryTest : public testing::Test {
 protected:
  GpuOptions options() const {
    return {.sys_root = host.sys(),
            .proc_root = host.proc(),
            .nvml_library = FAKE_NVML_DIR "/libnvidia-ml.so.1",
            .scan_s = 0,
            .nvml_s = 0.002,
            .drm_s = 0.002};
  }
  const model::Gpu& only(const GpuInventory& inventory) const {
    EXPECT_EQ(inventory.gpus().size(), 1U);
    return inventory.gpus().front().gpu;
  }
  // Looks until its one GPU is so.
  testing::AssertionResult becomes(GpuInventory& inventory, const std::optional<std::string>& problem) {
    const bool done = comes_true([&] {
      inventory.look(cpus);
      return inventory.gpus().size() == 1 && inventory.gpus().front().gpu.problem == problem;
    });
    if (done) return testing::AssertionSuccess();
    return testing::AssertionFailure() << inventory.gpus().front().gpu.problem.value_or("healthy");
  }
  static std::vector<std::string> texts(GpuInventory& inventory) {
    std::vector<std::string> list;
    for (const auto& news : inventory.take_news()) list.push_back(news.text);
    return list;
  }

  test::FakeHost host;
  test::FakeNvml nvml;
  std::vector<model::Cpu> cpus{{.cpu = 0, .core = 0, .llc = {}, .efficiency = {}}};
};

TEST_F(GpuInventoryTest, AGpuInMigModeIsItsInstancesOrNothing) {
  const std::string id = kId;
  add_pci(host, id, {});
  nvml.add(id);
  GpuInventory inventory(options());
  ASSERT_TRUE(becomes(inventory, std::nullopt));
  EXPECT_EQ(only(inventory).id, id);
  const auto ids_are = [&](const std::vector<std::string>& wanted) {
    return comes_true([&] {
      inventory.look(cpus);
      std::vector<std::string> ids;
      for (const KnownGpu& known : inventory.gpus()) ids.push_back(known.gpu.id);
      return ids == wanted;
    });
  };
  nvml.write(id + "/mig", "1");
  EXPECT_TRUE(ids_are({})) << "never the whole GPU";
  nvml.write(id + "/0/uuid", "MIG-b");
  nvml.write(id + "/0/name", "NVIDIA H100 MIG 1g.10gb");
  nvml.write(id + "/0/total", "10");
  nvml.write(id + "/0/used", "4");
  nvml.write(id + "/1/uuid", "MIG-a");
  EXPECT_TRUE(ids_are({"MIG-a", "MIG-b"}));
  ASSERT_TRUE(comes_true([&] {
    inventory.look(cpus);
    return inventory.gpus().back().gpu.memory_used_bytes == 4U;
  }));
  const model::Gpu& instance = inventory.gpus().back().gpu;
  EXPECT_EQ(instance.model, "NVIDIA H100 MIG 1g.10gb");
  EXPECT_EQ(instance.vendor, "nvidia");
  EXPECT_EQ(instance.numa, 0);
  EXPECT_EQ(instance.memory_bytes, 10U);
  EXPECT_TRUE(instance.healthy);
  EXPECT_EQ(inventory.gpus().front().gpu.model, "NVIDIA H100 MIG");
  // They are as healthy as their GPU.
  nvml.write(id + "/handle", "15");
  ASSERT_TRUE(comes_true([&] {
    inventory.look(cpus);
    return !inventory.gpus().back().gpu.healthy;
  }));
  EXPECT_TRUE(ids_are({"MIG-a", "MIG-b"}));
  EXPECT_EQ(inventory.gpus().front().gpu.problem, "NVML: GPU is lost");
  nvml.remove(id + "/handle");
  nvml.write(id + "/mig", "0");
  EXPECT_TRUE(ids_are({id}));
}

TEST_F(GpuInventoryTest, AHostWithoutGpusHasNone) {
  GpuInventory inventory(options());
  inventory.settle(cpus, 20);
  EXPECT_TRUE(inventory.settled());
  EXPECT_TRUE(inventory.gpus().empty());
  EXPECT_FALSE(inventory.capability().available);
  EXPECT_TRUE(inventory.take_news().empty());
}

TEST_F(GpuInventoryTest, AGpuIsUnhealthyUntilItsDriverWasAskedAndNothingIsSaidOfThat) {
  add_pci(host, kId, {});
  nvml.add(kId);
  nvml.write("hang", "");
  GpuInventory inventory(options());
  inventory.look(cpus);
  EXPECT_FALSE(only(inventory).healthy);
  EXPECT_FALSE(inventory.settled());
  nvml.remove("hang");
  inventory.settle(cpus, 20);
  EXPECT_TRUE(only(inventory).healthy);
  EXPECT_EQ(only(inventory).model, "NVIDIA H100");
  EXPECT_EQ(only(inventory).numa, 0);
  EXPECT_EQ(only(inventory).memory_used_bytes, 80U);
  EXPECT_EQ(inventory.capability(), (model::Capability{"gpus", true, "1 of 1 healthy"}));
  EXPECT_TRUE(inventory.take_news().empty());
}

TEST_F(GpuInventoryTest, AGpuThatIsLostIsSaidOnceAndItsReturnOnce) {
  add_pci(host, kId, {});
  nvml.add(kId);
  GpuInventory inventory(options());
  ASSERT_TRUE(becomes(inventory, std::nullopt));
  nvml.write(std::string(kId) + "/handle", "15");
  ASSERT_TRUE(becomes(inventory, "NVML: GPU is lost"));
  inventory.look(cpus);
  EXPECT_EQ(texts(inventory),
            std::vector<std::string>{"GPU 0000:3b:00.0 (NVIDIA H100) is unhealthy: NVML: GPU is lost"});
  EXPECT_EQ(inventory.capability().detail, "0 of 1 healthy");
  nvml.remove(std::string(kId) + "/handle");
  ASSERT_TRUE(becomes(inventory, std::nullopt));
  inventory.look(cpus);
  EXPECT_EQ(texts(inventory), std::vector<std::string>{"GPU 0000:3b:00.0 (NVIDIA H100) is healthy again"});
}

TEST_F(GpuInventoryTest, AGpuThatLeavesTheBusStaysListed) {
  add_pci(host, kId, {});
  nvml.add(kId);
  nvml.write(std::string(kId) + "/compute", "41");
  GpuInventory inventory(options());
  ASSERT_TRUE(becomes(inventory, std::nullopt));
  EXPECT_EQ(inventory.gpus().front().pids, std::vector<pid_t>{41});
  host.remove(test::pci_file(kId));
  nvml.remove(kId);
  ASSERT_TRUE(becomes(inventory, "it is no longer on the PCI bus, or has lost its driver"));
  EXPECT_EQ(only(inventory).model, "NVIDIA H100");
  EXPECT_EQ(only(inventory).memory_bytes, std::nullopt);
  EXPECT_TRUE(inventory.gpus().front().pids.empty());
  EXPECT_EQ(texts(inventory).size(), 1U);
  add_pci(host, kId, {});
  nvml.add(kId);
  ASSERT_TRUE(becomes(inventory, std::nullopt));
  EXPECT_EQ(texts(inventory), std::vector<std::string>{"GPU 0000:3b:00.0 (NVIDIA H100) is healthy again"});
}

TEST_F(GpuInventoryTest, AnotherCardInTheSameSlotIsNotTakenForTheOldOne) {
  add_pci(host, kId, {});
  nvml.add(kId);
  GpuInventory inventory(options());
  ASSERT_TRUE(becomes(inventory, std::nullopt));
  nvml.remove(std::string(kId) + "/name");
  add_pci(host, kId, {.device = "0x1eb8"});
  inventory.look(cpus);
  EXPECT_EQ(only(inventory).model, "PCI 10de:1eb8");
  EXPECT_FALSE(only(inventory).healthy) << "what is known is of the card before";
  ASSERT_TRUE(becomes(inventory, std::nullopt));
  EXPECT_EQ(only(inventory).model, "PCI 10de:1eb8");
  EXPECT_TRUE(inventory.take_news().empty());
}

TEST_F(GpuInventoryTest, ADriverThatHangsMakesItsGpusUnhealthyAndNobodyElses) {
  add_pci(host, kId, {});
  add_pci(host, "0000:03:00.0", test::amd_gpu());
  nvml.add(kId);
  nvml.write("hang", "");
  auto impatient = options();
  impatient.patience_s = 1;
  auto inventory = std::make_unique<GpuInventory>(impatient);
  // On a busy machine the other driver may take longer than 1 s, too, though not for ever.
  EXPECT_TRUE(comes_true([&] {
    inventory->look(cpus);
    return inventory->settled() && inventory->gpus().size() == 2 && inventory->gpus()[0].gpu.healthy &&
           inventory->gpus()[1].gpu.problem == "its driver has not answered for more than 1 s";
  }));
  ASSERT_EQ(inventory->gpus().size(), 2U);
  EXPECT_TRUE(inventory->gpus()[0].gpu.healthy);
  EXPECT_EQ(inventory->gpus()[1].gpu.problem, "its driver has not answered for more than 1 s");
  const auto begin = std::chrono::steady_clock::now();
  inventory.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, berth::test::kPatience);
}

TEST_F(GpuInventoryTest, WithoutAThreadForItsDriverThatIsSaidAndTriedAgain) {
  add_pci(host, kId, {});
  nvml.add(kId);
  GpuInventory inventory(options());
  {
    const test::NoThreads none;
    for (int i = 0; i < 3; ++i) inventory.look(cpus);
    EXPECT_FALSE(only(inventory).healthy);
    EXPECT_TRUE(inventory.settled());
  }
  const auto said = texts(inventory);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_NE(said[0].find("is unhealthy: its driver cannot be asked: no thread can be had: "),
            std::string::npos)
      << said[0];
  ASSERT_TRUE(becomes(inventory, std::nullopt));
  EXPECT_EQ(texts(inventory), std::vector<std::string>{"GPU 0000:3b:00.0 (NVIDIA H100) is healthy again"});
}

TEST_F(GpuInventoryTest, AGpuWhoseNumaNodeIsRenumberedKeepsWhatWasRead) {
  cpus.push_back({.cpu = 1, .core = 1, .llc = {}, .efficiency = {}});
  add_pci(host, kId, {.local_cpulist = "1"});
  nvml.add(kId);
  GpuInventory inventory(options());
  ASSERT_TRUE(becomes(inventory, std::nullopt));
  EXPECT_EQ(only(inventory).numa, 0);
  // So that nothing newer than what was read before can be had.
  nvml.write("hang", "");
  cpus[1].numa = 1;
  inventory.look(cpus);
  EXPECT_EQ(only(inventory).numa, 1);
  EXPECT_TRUE(only(inventory).healthy) << only(inventory).problem.value_or("");
  EXPECT_EQ(only(inventory).memory_used_bytes, 80U);
  EXPECT_TRUE(inventory.take_news().empty());
  nvml.remove("hang");
}

TEST_F(GpuInventoryTest, WithoutNvmlGpusAreListedAndWhyNoMoreIsKnown) {
  add_pci(host, kId, {});
  auto without = options();
  without.nvml_library = FAKE_NVML_DIR "/no-such-library.so.1";
  GpuInventory inventory(without);
  inventory.settle(cpus, 20);
  EXPECT_FALSE(only(inventory).healthy) << "who uses it cannot be told";
  EXPECT_NE(only(inventory).problem.value_or("").find("no-such-library.so.1"), std::string::npos);
  EXPECT_EQ(only(inventory).memory_bytes, std::nullopt);
  EXPECT_FALSE(inventory.gpus().front().all_pids);
  EXPECT_FALSE(inventory.capability().available);
  EXPECT_NE(inventory.capability().detail.find("no-such-library.so.1"), std::string::npos)
      << inventory.capability().detail;
}

TEST_F(GpuInventoryTest, NvmlIsNotLoadedForAGpuThatItDoesNotDrive) {
  add_pci(host, kId, {.driver = "vfio-pci"});
  auto without = options();
  without.nvml_library = FAKE_NVML_DIR "/no-such-library.so.1";
  GpuInventory inventory(without);
  inventory.settle(cpus, 20);
  EXPECT_EQ(inventory.capability(), (model::Capability{"gpus", true, "0 of 1 healthy"}));
  EXPECT_EQ(texts(inventory).size(), 1U);
}

class LinkedGpus : public GpuInventoryTest {
 protected:
  static constexpr const char* kOther = "0000:5e:00.0";
  LinkedGpus() {
    for (const char* id : {kId, kOther}) {
      add_pci(host, id, {});
      nvml.add(id);
    }
    nvml.write(std::string(kId) + "/p2p/" + kOther, "0");
  }
  // Looks until each has so many links, and the snapshot of a host can have them.
  bool have_links(GpuInventory& inventory, std::size_t count) {
    return comes_true([&] {
      inventory.look(cpus);
      std::vector<model::Gpu> gpus;
      for (const auto& known : inventory.gpus()) gpus.push_back(known.gpu);
      EXPECT_TRUE(model::Topology::make(cpus, gpus));
      return std::all_of(gpus.begin(), gpus.end(),
                         [count](const model::Gpu& gpu) { return gpu.links.size() == count; });
    });
  }
};

TEST_F(LinkedGpus, AGpuThatIsGoneHasNoLinks) {
  GpuInventory inventory(options());
  ASSERT_TRUE(have_links(inventory, 1));
  EXPECT_EQ(inventory.gpus()[0].gpu.links,
            (std::vector<model::GpuPeer>{{.id = kOther, .link = model::GpuLink::nv}}));
  host.remove(test::pci_file(kOther));
  inventory.look(cpus);
  EXPECT_TRUE(inventory.gpus()[0].gpu.links.empty());
  EXPECT_TRUE(inventory.gpus()[1].gpu.links.empty());
  add_pci(host, kOther, {});
  EXPECT_TRUE(have_links(inventory, 1));
}

TEST_F(LinkedGpus, TheLinksOfACardAreNotThoseOfTheNextOneInItsSlot) {
  GpuInventory inventory(options());
  ASSERT_TRUE(have_links(inventory, 1));
  // So that nothing newer than what was read before can be had.
  nvml.write("hang", "");
  add_pci(host, kOther, {.device = "0x1eb8"});
  inventory.look(cpus);
  EXPECT_TRUE(inventory.gpus()[0].gpu.healthy);
  EXPECT_TRUE(inventory.gpus()[0].gpu.links.empty());
  EXPECT_TRUE(inventory.gpus()[1].gpu.links.empty());
  nvml.remove("hang");
  EXPECT_TRUE(have_links(inventory, 1));
}

TEST_F(LinkedGpus, AHangAtTheLinksIsOneOfTheDriver) {
  nvml.write("links-hang", "");
  auto impatient = options();
  impatient.patience_s = 0.2;
  GpuInventory inventory(impatient);
  ASSERT_TRUE(comes_true([&] {
    inventory.look(cpus);
    return inventory.gpus()[0].gpu.problem == "its driver has not answered for more than 0 s";
  }));
  nvml.remove("links-hang");
  ASSERT_TRUE(have_links(inventory, 1));
}

TEST_F(GpuInventoryTest, EightGpusOfOneHost) {
  for (int i = 1; i <= 8; ++i) {
    const std::string id = "0000:0" + std::to_string(i) + ":00.0";
    add_pci(host, id, {});
    nvml.add(id);
  }
  GpuInventory inventory(options());
  inventory.settle(cpus, 20);
  ASSERT_EQ(inventory.gpus().size(), 8U);
  for (const auto& known : inventory.gpus()) {
    EXPECT_TRUE(known.gpu.healthy) << known.gpu.id;
    EXPECT_TRUE(known.all_pids) << known.gpu.id;
  }
}

}  // namespace
}  // namespace berth::topology
