// SPDX-License-Identifier: Apache-2.0
// The reading of NVML, with a stand-in for it.
#include "fake_gpus.h"
#include "tests/paths.h"
#include "topology/gpus.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::topology {
namespace {

constexpr const char* kWhole = FAKE_NVML_DIR "/libnvidia-ml.so.1";
constexpr const char* kId = "0000:3b:00.0";

PciGpu gpu(const std::string& id) { return {.id = id, .pci_id = "10de:2330", .driver = "nvidia", .numa = 0}; }

class NvmlTest : public testing::Test {
 protected:
  GpuReadings read(const std::string& library = kWhole) { return nvml_reader(library)({gpu(kId)}); }
  GpuReading only(const std::string& library = kWhole) {
    auto readings = read(library);
    EXPECT_EQ(readings.missing, std::nullopt);
    return readings.gpus.at(kId);
  }
  test::FakeNvml nvml;
};

TEST_F(NvmlTest, AHealthyGpuIsReadWhole) {
  nvml.add(kId);
  nvml.write(std::string(kId) + "/compute", "30 10");
  nvml.write(std::string(kId) + "/graphics", "10");
  nvml.write(std::string(kId) + "/mps", "20");
  const auto reading = only();
  EXPECT_EQ(reading.model, "NVIDIA H100");
  EXPECT_EQ(reading.memory_bytes, 100U);
  EXPECT_EQ(reading.memory_used_bytes, 80U);
  EXPECT_EQ(reading.utilisation, 0.4);
  EXPECT_EQ(reading.problem, std::nullopt);
  EXPECT_EQ(reading.pids, (std::vector<pid_t>{10, 20, 30}));
  EXPECT_TRUE(reading.all_pids);
}

TEST_F(NvmlTest, TheOldAndTheThirdListsOfProcessesAreReadTheirOwnWay) {
  nvml.add(kId);
  nvml.write(std::string(kId) + "/compute", "10 20 30");
  for (const char* library : {"libfake-nvml-old.so", "libfake-nvml-v3.so"}) {
    const auto reading = only(std::string(FAKE_NVML_DIR "/") + library);
    EXPECT_EQ(reading.pids, (std::vector<pid_t>{10, 20, 30})) << library;
    EXPECT_TRUE(reading.all_pids) << library;
  }
}

TEST_F(NvmlTest, WithoutTheLibraryThatIsSaid) {
  const auto readings = read(FAKE_NVML_DIR "/no-such-library.so.1");
  EXPECT_TRUE(readings.gpus.empty());
  ASSERT_TRUE(readings.missing);
  EXPECT_NE(readings.missing->find("no-such-library.so.1"), std::string::npos) << *readings.missing;
}

TEST_F(NvmlTest, ALibraryThatIsNotNvmlIsSaid) {
  nvml.add(kId);
  for (const char* library : {FAKE_NVML_DIR "/libfake-nvml-broken.so", "libdl.so.2"}) {
    const auto readings = read(library);
    EXPECT_TRUE(readings.gpus.empty()) << library;
    EXPECT_EQ(readings.missing, std::string(library) + ": lacks functions that NVML has");
  }
}

TEST_F(NvmlTest, WithoutItsDriverThatIsSaidAndMendsItself) {
  nvml.add(kId);
  nvml.write("init", "9");
  const auto reader = nvml_reader(kWhole);
  EXPECT_EQ(reader({gpu(kId)}).missing, "NVML: Driver Not Loaded");
  nvml.remove("init");
  EXPECT_EQ(reader({gpu(kId)}).missing, std::nullopt);
  nvml.write(std::string(kId) + "/error", "9");
  EXPECT_EQ(reader({gpu(kId)}).missing, "NVML: the driver went away");
  nvml.remove(std::string(kId) + "/error");
  EXPECT_EQ(reader({gpu(kId)}).gpus.size(), 1U);
}

TEST_F(NvmlTest, AGpuItDoesNotKnowIsUnhealthy) {
  const auto reading = only();
  EXPECT_EQ(reading.problem, "NVML: Not Found");
  EXPECT_EQ(reading.memory_bytes, std::nullopt);
  EXPECT_FALSE(reading.all_pids);
}

TEST_F(NvmlTest, ALostGpuIsUnhealthyWhicheverCallSaysSo) {
  nvml.add(kId);
  for (const char* file : {"/handle", "/error"}) {
    nvml.write(std::string(kId) + file, "15");
    EXPECT_EQ(only().problem, "NVML: GPU is lost") << file;
    nvml.remove(std::string(kId) + file);
  }
  EXPECT_EQ(only().problem, std::nullopt);
}

TEST_F(NvmlTest, ErrorsOfItsMemoryMakeAGpuUnhealthy) {
  nvml.add(kId);
  nvml.write(std::string(kId) + "/ecc", "1");
  EXPECT_EQ(only().problem,
            "NVML: memory errors that ECC could not correct; stop berthd and reset the GPU to clear them");
  nvml.write(std::string(kId) + "/ecc", "0");
  nvml.write(std::string(kId) + "/remap_failed", "1");
  EXPECT_EQ(only().problem, "NVML: a bad row of its memory could not be remapped");
}

TEST_F(NvmlTest, ErrorsAreNotForgottenBetweenReadings) {
  nvml.add(kId);
  nvml.add("0000:5e:00.0");
  nvml.write(std::string(kId) + "/ecc", "1");
  const auto reader = nvml_reader(kWhole);
  const std::vector<PciGpu> both{gpu(kId), gpu("0000:5e:00.0")};
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(reader(both).gpus.at(kId).problem) << "reading " << i;
  // Nor where another GPU would be let go of.
  nvml.write("0000:5e:00.0/handle", "15");
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(reader(both).gpus.at(kId).problem) << "reading " << i;
  EXPECT_FALSE(nvml.has("let-go"));
  // A reset by a user who found it free.
  nvml.write(std::string(kId) + "/ecc", "0");
  EXPECT_EQ(reader(both).gpus.at(kId).problem, std::nullopt);
}

TEST_F(NvmlTest, ALostGpuIsLetGoOfSoThatItCanBeReset) {
  nvml.add(kId);
  const auto reader = nvml_reader(kWhole);
  EXPECT_EQ(reader({gpu(kId)}).gpus.at(kId).problem, std::nullopt);
  EXPECT_FALSE(nvml.has("let-go"));
  nvml.write(std::string(kId) + "/handle", "15");
  EXPECT_EQ(reader({gpu(kId)}).gpus.at(kId).problem, "NVML: GPU is lost");
  EXPECT_TRUE(nvml.has("let-go"));
}

TEST_F(NvmlTest, AGpuInMigModeIsItsInstances) {
  nvml.add(kId);
  const std::string id = kId;
  nvml.write(id + "/mig", "1");
  nvml.write(id + "/compute", "10 20");
  nvml.write(id + "/0/uuid", "MIG-11111111-2222-3333-4444-555555555555");
  nvml.write(id + "/0/name", "NVIDIA H100 MIG 1g.10gb");
  nvml.write(id + "/0/total", "10");
  nvml.write(id + "/0/used", "4");
  nvml.write(id + "/0/compute", "10");
  nvml.write(id + "/3/total", "40");
  const auto reading = only();
  EXPECT_EQ(reading.mig, true);
  EXPECT_EQ(reading.problem, std::nullopt);
  EXPECT_EQ(reading.memory_bytes, std::nullopt) << "of the whole";
  ASSERT_EQ(reading.instances.size(), 2U);
  const GpuInstance& first = reading.instances[0];
  EXPECT_EQ(first.id, "MIG-11111111-2222-3333-4444-555555555555");
  EXPECT_EQ(first.model, "NVIDIA H100 MIG 1g.10gb");
  EXPECT_EQ(first.memory_bytes, 10U);
  EXPECT_EQ(first.memory_used_bytes, 4U);
  EXPECT_EQ(first.pids, std::vector<pid_t>{10});
  EXPECT_TRUE(first.all_pids);
  // One without a UUID has its place for a name.
  EXPECT_EQ(reading.instances[1].id, id + "/3");
  EXPECT_FALSE(reading.instances[1].all_pids);
}

TEST_F(NvmlTest, WithoutMigModeAGpuIsWhole) {
  nvml.add(kId);
  EXPECT_EQ(only().mig, false) << "not supported";
  nvml.write(std::string(kId) + "/mig", "0");
  EXPECT_EQ(only().mig, false);
  EXPECT_EQ(only().memory_bytes, 100U);
  EXPECT_EQ(only(FAKE_NVML_DIR "/libfake-nvml-old.so").mig, false) << "a library that knows no MIG";
}

TEST_F(NvmlTest, AGpuOfUnknownModeIsUnhealthy) {
  nvml.add(kId);
  nvml.write(std::string(kId) + "/mig_error", "999");
  const auto reading = only();
  EXPECT_EQ(reading.mig, std::nullopt);
  EXPECT_EQ(reading.problem, "NVML does not say whether it is in MIG mode: Unknown Error");
}

TEST_F(NvmlTest, WhatIsNotSupportedIsNotKnown) {
  nvml.write(std::string(kId) + "/name", "");
  const auto reading = only();
  EXPECT_EQ(reading.model, std::nullopt);
  EXPECT_EQ(reading.memory_bytes, std::nullopt);
  EXPECT_EQ(reading.utilisation, std::nullopt);
  EXPECT_EQ(reading.problem, std::nullopt);
  EXPECT_FALSE(reading.all_pids);
}

TEST_F(NvmlTest, FiguresThatCannotBeAreNotKnown) {
  nvml.add(kId);
  nvml.write(std::string(kId) + "/util", "101");
  nvml.write(std::string(kId) + "/used", "101");
  EXPECT_EQ(only().utilisation, std::nullopt);
  EXPECT_EQ(only().memory_bytes, 100U);
  EXPECT_EQ(only().memory_used_bytes, std::nullopt);
  for (const char* total : {"0", "18446744073709551615"}) {
    nvml.write(std::string(kId) + "/total", total);
    EXPECT_EQ(only().memory_bytes, std::nullopt) << total;
  }
}

TEST_F(NvmlTest, ANameWithoutAnEndIsCut) {
  nvml.add(kId);
  nvml.write(std::string(kId) + "/name", std::string(100'000, 'x'));
  const auto name = only().model;
  ASSERT_TRUE(name);
  EXPECT_EQ(name->find_first_not_of('x'), std::string::npos);
  EXPECT_LT(name->size(), 200U);
}

TEST_F(NvmlTest, ANameIsSafeToShow) {
  nvml.add(kId);
  nvml.write(std::string(kId) + "/name", "A\x1b[2J\xff");
  EXPECT_EQ(only().model, "A?[2J?");
}

TEST_F(NvmlTest, MoreProcessesThanThereIsRoomForAreNotKnown) {
  nvml.add(kId);
  std::string pids;
  for (int pid = 1; pid <= 2000; ++pid) pids += fmt::format("{} ", pid);
  nvml.write(std::string(kId) + "/compute", pids);
  EXPECT_FALSE(only().all_pids);
  EXPECT_TRUE(only().pids.empty());
}

TEST_F(NvmlTest, ACountThatCannotBeIsNotBelieved) {
  nvml.add(kId);
  for (const char* count : {"1025", "4294967295"}) {
    nvml.write(std::string(kId) + "/compute", "10");
    nvml.write(std::string(kId) + "/compute_count", count);
    EXPECT_FALSE(only().all_pids) << count;
    EXPECT_TRUE(only().pids.empty()) << count;
  }
}

TEST_F(NvmlTest, NumbersThatAreNoProcessesAreLeftOut) {
  nvml.add(kId);
  nvml.write(std::string(kId) + "/compute", "0 4294967295 2147483648 7");
  EXPECT_EQ(only().pids, std::vector<pid_t>{7});
}

TEST_F(NvmlTest, AnErrorWithoutTextIsANumber) {
  nvml.add(kId);
  nvml.write(std::string(kId) + "/handle", "77");
  EXPECT_EQ(only().problem, "NVML: error 77");
}

TEST_F(NvmlTest, EightAreReadTogetherAndOneThatIsLostKeepsNobody) {
  std::vector<PciGpu> gpus;
  for (int i = 0; i < 8; ++i) {
    gpus.push_back(gpu(fmt::format("0000:{}0:00.0", i)));
    nvml.add(gpus.back().id);
  }
  nvml.write("0000:30:00.0/handle", "15");
  const auto readings = nvml_reader(kWhole)(gpus);
  ASSERT_EQ(readings.gpus.size(), 8U);
  for (const auto& [id, reading] : readings.gpus) {
    EXPECT_EQ(reading.problem.has_value(), id == "0000:30:00.0") << id;
  }
}

// GPUs 0000:00:00.0, 0000:10:00.0 and so on.
class NvmlLinks : public NvmlTest {
 protected:
  void add(int gpus) {
    for (int i = 0; i < gpus; ++i) {
      all.push_back(gpu(fmt::format("0000:{:02x}:00.0", i)));
      nvml.add(all.back().id);
    }
  }
  // "p2p" or "level", of the pair.
  void say(const char* what, std::size_t a, std::size_t b, const std::string& text) const {
    nvml.write(all[a].id + "/" + what + "/" + all[b].id, text);
  }
  // "1NV 2SYS"; "" without links.
  static std::string links_of(const GpuReadings& readings, const std::string& id) {
    std::string text;
    for (const model::GpuPeer& peer : readings.gpus.at(id).links)
      text += (text.empty() ? "" : " ") + peer.id.substr(6, 1) + model::to_string(peer.link);
    return text;
  }
  std::string of_first(const GpuReadings& readings) const { return links_of(readings, all.front().id); }
  std::ptrdiff_t asked() const {
    const std::string lines = nvml.read("links-asked");
    return std::count(lines.begin(), lines.end(), '\n');
  }
  std::vector<PciGpu> all;
};

TEST_F(NvmlLinks, EveryPairHasTheNameThatNvidiaSmiHasForIt) {
  add(8);
  say("p2p", 0, 1, "0");
  say("level", 0, 1, "50");  // NVLink is nearer
  say("p2p", 2, 0, "5");     // no NVLink; either of the two is asked
  int level = 0;
  for (std::size_t other = 2; other < 8; ++other, level += 10)
    say("level", 0, other, fmt::format("{}", level));
  const auto readings = nvml_reader(kWhole)(all);
  EXPECT_EQ(of_first(readings), "1NV 2PIX 3PIX 4PXB 5PHB 6NODE 7SYS");
  EXPECT_EQ(links_of(readings, all[2].id), "0PIX");
  EXPECT_EQ(links_of(readings, all[7].id), "0SYS");
  for (const auto& [id, reading] : readings.gpus) EXPECT_EQ(reading.problem, std::nullopt) << id;
}

TEST_F(NvmlLinks, AnswersThatCannotBeAreNotKnown) {
  add(2);
  for (const char* level : {"-1", "5", "60", "2147483647", "-2147483648"}) {
    say("level", 0, 1, level);
    EXPECT_EQ(of_first(nvml_reader(kWhole)(all)), "") << level;
  }
  // A status that does not exist is no NVLink.
  say("level", 0, 1, "30");
  for (const char* status : {"-1", "7", "2147483647"}) {
    say("p2p", 0, 1, status);
    EXPECT_EQ(of_first(nvml_reader(kWhole)(all)), "1PHB") << status;
  }
}

TEST_F(NvmlLinks, AnErrorLeavesTheLinkUnknownAndTheGpuHealthy) {
  add(3);
  say("p2p", 0, 1, "0");
  say("p2p", 1, 2, "0");
  for (const char* error : {"2", "3", "15", "999", "-1"}) {
    nvml.write(all[2].id + "/link_error", error);
    const auto readings = nvml_reader(kWhole)(all);
    EXPECT_EQ(of_first(readings), "1NV") << error;
    EXPECT_EQ(links_of(readings, all[1].id), "0NV") << error;
    for (const auto& [id, reading] : readings.gpus) EXPECT_EQ(reading.problem, std::nullopt) << id << error;
  }
}

TEST_F(NvmlLinks, ADriverThatGoesAwayMeanwhileIsSaid) {
  add(2);
  say("p2p", 0, 1, "0");
  const auto reader = nvml_reader(kWhole);
  nvml.write(all[1].id + "/link_error", "9");
  const auto readings = reader(all);
  EXPECT_EQ(readings.missing, "NVML: the driver went away");
  EXPECT_TRUE(readings.gpus.empty());
  nvml.remove(all[1].id + "/link_error");
  EXPECT_EQ(of_first(reader(all)), "1NV");
}

TEST_F(NvmlLinks, ADriverThatComesBackWithoutTheGpusHasNoLinks) {
  add(2);
  say("p2p", 0, 1, "0");
  const auto reader = nvml_reader(kWhole);
  EXPECT_EQ(of_first(reader(all)), "1NV");
  nvml.write(all[0].id + "/handle", "9");
  EXPECT_EQ(reader(all).missing, "NVML: the driver went away");
  nvml.remove(all[0].id + "/handle");
  EXPECT_TRUE(reader({}).gpus.empty());
  // Those that are there again, but not well, have none either.
  for (const PciGpu& gpu : all) nvml.write(gpu.id + "/handle", "15");
  EXPECT_EQ(of_first(reader(all)), "");
}

TEST_F(NvmlLinks, ALibraryWithoutTheFunctionsKnowsNoLinks) {
  add(2);
  say("p2p", 0, 1, "0");
  EXPECT_EQ(of_first(nvml_reader(FAKE_NVML_DIR "/libfake-nvml-old.so")(all)), "");
  EXPECT_EQ(of_first(nvml_reader(FAKE_NVML_DIR "/libfake-nvml-v3.so")(all)), "1NV");
}

TEST_F(NvmlLinks, TheyAreAskedForOnceWhileTheSameGpusAreHealthy) {
  add(4);
  say("p2p", 0, 1, "0");
  const auto reader = nvml_reader(kWhole);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(of_first(reader(all)), "1NV");
  EXPECT_EQ(asked(), 6);
  // Another list: all pairs of it.
  const std::vector<PciGpu> fewer(all.begin(), all.begin() + 2);
  EXPECT_EQ(of_first(reader(fewer)), "1NV");
  EXPECT_EQ(of_first(reader(fewer)), "1NV");
  EXPECT_EQ(asked(), 7);
  // One that is lost is not asked about, and is when it is back.
  nvml.write(all[1].id + "/handle", "15");
  EXPECT_EQ(of_first(reader(fewer)), "");
  EXPECT_EQ(asked(), 7);
  nvml.remove(all[1].id + "/handle");
  EXPECT_EQ(of_first(reader(fewer)), "1NV");
  EXPECT_EQ(asked(), 8);
}

TEST_F(NvmlLinks, ALinkThatComesUpLaterIsSeen) {
  add(2);
  say("level", 0, 1, "50");
  const auto reader = nvml_reader(kWhole);
  EXPECT_EQ(of_first(reader(all)), "1SYS");
  say("p2p", 0, 1, "0");
  std::string links;
  for (int i = 0; i < 60; ++i) {
    links = of_first(reader(all));
    EXPECT_EQ(links, i < 59 ? "1SYS" : "1NV") << i;
  }
  EXPECT_EQ(asked(), 2);
}

TEST_F(NvmlLinks, NoMoreThan64GpusAreAskedAbout) {
  add(70);
  say("p2p", 0, 1, "0");
  say("p2p", 62, 63, "0");
  say("p2p", 0, 64, "0");
  const auto readings = nvml_reader(kWhole)(all);
  EXPECT_EQ(asked(), 64 * 63 / 2);
  EXPECT_EQ(readings.gpus.at(all[63].id).links.size(), 1U);
  EXPECT_EQ(readings.gpus.at(all[0].id).links.size(), 1U);
  EXPECT_TRUE(readings.gpus.at(all[64].id).links.empty());
}

// With any numbers in its lists, the result is all listed processes, ascending, each once.
RC_GTEST_PROP(NvmlProperty, ListsOfProcessesComeOutAsTheyWere, (std::vector<std::uint32_t> listed)) {
  const test::FakeNvml nvml;
  nvml.add(kId);
  if (listed.size() > 1024) listed.resize(1024);
  std::string words;
  std::set<pid_t> expected;
  for (const std::uint32_t pid : listed) {
    words += fmt::format("{} ", pid);
    if (pid > 0 && pid <= 0x7fffffffU) expected.insert(static_cast<pid_t>(pid));
  }
  nvml.write(std::string(kId) + "/compute", words);
  const auto readings = nvml_reader(kWhole)({gpu(kId)});
  RC_ASSERT(readings.gpus.at(kId).pids == std::vector<pid_t>(expected.begin(), expected.end()));
}

}  // namespace
}  // namespace berth::topology
