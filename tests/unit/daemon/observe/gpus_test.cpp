// SPDX-License-Identifier: Apache-2.0
// GPUs of a whole host in the daemon: their users, the published figures, the admitted requests.
#include "model/json.h"
#include "tests/unit/daemon/daemon_fixture.h"
#include "tests/unit/topology/fake_gpus.h"

#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace berth::daemon {
namespace {

using berth::test::add_pci;
using nlohmann::json;
using testing::HasSubstr;

constexpr const char* kFirst = "0000:3b:00.0";
constexpr const char* kSecond = "0000:5e:00.0";

class GpusOfADaemon : public test::DaemonFixture {
 protected:
  void SetUp() override {
    add_pci(node.host(), kFirst, {.local_cpulist = "0-1,4-5"});
    add_pci(node.host(), kSecond, {.local_cpulist = "2-3,6-7"});
    nvml.add(kFirst);
    nvml.add(kSecond);
    node.add_group("web/a");
    node.add_group("batch/x");
    node.add_group("batch/y");
    node.add_process(41, "batch/x");
    node.add_process(42, "batch/x/below/it");
    node.add_process(43, "batch/y");
    node.add_process(44, "user.slice/shell");
  }
  void use(const std::string& gpu, const std::string& pids) { nvml.write(gpu + "/compute", pids); }
  json snapshot() { return json::parse(daemon->control().snapshot_json()); }
  json gpu(std::size_t index) { return snapshot()["topology"]["gpus"][index]; }
  json gpus_of(const std::string& id) {
    const auto document = snapshot();
    for (const auto& workload : document["workloads"]) {
      if (workload["id"] == id) return workload["gpus"];
    }
    return nullptr;
  }
  // Starts, and ticks until every driver has answered.
  void start_settled() {
    start();
    ASSERT_TRUE(test::eventually([this] {
      tick();
      return gpu(0)["healthy"] == true && gpu(1)["healthy"] == true;
    }));
  }
  berth::test::FakeNvml nvml;
};

TEST_F(GpusOfADaemon, AWorkloadThatIsAloneOnAGpuHoldsIt) {
  use(kFirst, "41 42");
  start_settled();
  EXPECT_EQ(gpu(0)["holder"], "batch/x");
  EXPECT_EQ(gpu(0)["other_processes"], 0);
  EXPECT_EQ(gpu(0)["model"], "NVIDIA H100");
  EXPECT_EQ(gpu(0)["numa"], 0);
  EXPECT_EQ(gpu(1)["holder"], nullptr);
  EXPECT_EQ(gpu(1)["numa"], 1);
  EXPECT_EQ(gpus_of("batch/x"), json::array({kFirst}));
  EXPECT_EQ(gpus_of("batch/y"), json::array());
}

TEST_F(GpusOfADaemon, SeveralWorkloadsShareAGpuThatNobodyHolds) {
  use(kFirst, "41 43");
  start_settled();
  EXPECT_EQ(gpu(0)["holder"], nullptr);
  EXPECT_EQ(gpus_of("batch/x"), json::array({kFirst}));
  EXPECT_EQ(gpus_of("batch/y"), json::array({kFirst}));
}

TEST_F(GpusOfADaemon, AProcessOfNoWorkloadTakesAGpuFromWhoWouldHoldIt) {
  use(kFirst, "41 44");
  use(kSecond, "44 4711");  // the latter has ended
  start_settled();
  EXPECT_EQ(gpu(0)["holder"], nullptr);
  EXPECT_EQ(gpu(0)["other_processes"], 1);
  EXPECT_EQ(gpu(1)["other_processes"], 1);
  EXPECT_EQ(gpus_of("batch/x"), json::array({kFirst}));
}

TEST_F(GpusOfADaemon, ItsSnapshotCanBeReadBack) {
  use(kFirst, "41");
  use(kSecond, "41 43 44");
  start_settled();
  const auto read = model::parse_snapshot(daemon->control().snapshot_json());
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->snapshot.topology.gpus().size(), 2U);
}

TEST_F(GpusOfADaemon, LinksAreInTheSnapshotAndTheStatus) {
  nvml.write(std::string(kFirst) + "/p2p/" + kSecond, "0");
  start_settled();
  EXPECT_EQ(gpu(0)["links"], (json{{kSecond, "NV"}}));
  EXPECT_EQ(gpu(1)["links"], (json{{kFirst, "NV"}}));
  EXPECT_EQ(json::parse(daemon->control().status_json())["gpus"][1]["links"], (json{{kFirst, "NV"}}));
  const auto read = model::parse_snapshot(daemon->control().snapshot_json());
  ASSERT_TRUE(read) << read.error().message();
}

TEST_F(GpusOfADaemon, ADocumentOfEachKindShowsThem) {
  use(kFirst, "41");
  start_settled();
  const auto status = json::parse(daemon->control().status_json());
  ASSERT_EQ(status["gpus"].size(), 2U);
  EXPECT_EQ(status["gpus"][0]["holder"], "batch/x");
  EXPECT_EQ(status["gpus"][0]["workloads"], json::array({"batch/x"}));
  EXPECT_EQ(status["gpus"][0]["memory_used_bytes"], 80);
  EXPECT_EQ(capability("gpus")["detail"], "2 of 2 healthy");
  const auto topology = json::parse(daemon->control().topology_json());
  EXPECT_EQ(topology["gpus"][1]["id"], kSecond);
  const auto workloads = json::parse(daemon->control().workloads_json());
  EXPECT_EQ(workloads["workloads"][0]["id"], "batch/x");
  EXPECT_EQ(workloads["workloads"][0]["gpus"], json::array({kFirst}));
  const auto explained = daemon->control().explain_json("batch/x");
  ASSERT_TRUE(explained);
  EXPECT_EQ(json::parse(*explained)["workload"]["gpus"], json::array({kFirst}));
  const std::string metrics = daemon->control().metrics_text();
  const std::string labels = R"({gpu="0000:3b:00.0",vendor="nvidia",model="NVIDIA H100"} )";
  EXPECT_THAT(metrics, HasSubstr("berth_gpu_healthy" + labels + "1\n"));
  EXPECT_THAT(metrics, HasSubstr("berth_gpu_memory_bytes" + labels + "100\n"));
  EXPECT_THAT(metrics, HasSubstr("berth_gpu_memory_used_bytes" + labels + "80\n"));
  EXPECT_THAT(metrics, HasSubstr("berth_gpu_utilisation_ratio" + labels + "0.4\n"));
  EXPECT_THAT(metrics, HasSubstr("berth_gpu_workloads" + labels + "1\n"));
}

TEST_F(GpusOfADaemon, OneThatIsLostIsShownAsSuchAndGivenToNobody) {
  use(kFirst, "41");
  start_settled();
  nvml.write(std::string(kSecond) + "/handle", "15");
  ASSERT_TRUE(test::eventually([this] {
    tick();
    return gpu(1)["healthy"] == false;
  }));
  EXPECT_EQ(gpu(1)["problem"], "NVML: GPU is lost");
  EXPECT_EQ(gpu(1)["memory_bytes"], nullptr);
  EXPECT_THAT(daemon->control().metrics_text(),
              HasSubstr(R"(berth_gpu_healthy{gpu="0000:5e:00.0",vendor="nvidia",model="NVIDIA H100"} 0)"));
  const auto answer = daemon->control().admit(
      R"({"schema":"berth.request/1","id":"train","class":"best-effort","vcpus":1,"gpus":1})", 60);
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(json::parse(*answer)["admitted"], false) << *answer;
  EXPECT_THAT(*answer, HasSubstr("1 held"));
  EXPECT_THAT(*answer, HasSubstr("1 unhealthy"));
}

TEST_F(GpusOfADaemon, AnIdleOneIsAdmittedOnTheNodeItIsNearTo) {
  use(kFirst, "41");
  start_settled();
  const auto answer = daemon->control().admit(
      R"({"schema":"berth.request/1","id":"train","class":"best-effort","vcpus":1,"gpus":1,"gpu_memory_bytes":20})",
      60);
  ASSERT_TRUE(answer) << answer.error().message();
  const auto document = json::parse(*answer);
  EXPECT_EQ(document["admitted"], true) << *answer;
  EXPECT_EQ(document["fitting"][0]["gpus"], json::array({kSecond}));
  EXPECT_EQ(document["fitting"][0]["numa"], 1);
}

TEST_F(GpusOfADaemon, WhoWasLetInKeepsItsGpuUntilItsTimeIsOver) {
  use(kFirst, "41");
  start_settled();
  const char* request =
      R"({"schema":"berth.request/1","id":"train","class":"best-effort","vcpus":1,"gpus":1})";
  ASSERT_EQ(json::parse(daemon->control().admit(request, 60).value())["admitted"], true);
  node.add_group("batch/train");
  tick();
  tick();
  EXPECT_EQ(gpu(1)["holder"], "batch/train");
  EXPECT_EQ(gpus_of("batch/train"), json::array({kSecond}));
  const char* another =
      R"({"schema":"berth.request/1","id":"next","class":"best-effort","vcpus":1,"gpus":1})";
  EXPECT_EQ(json::parse(daemon->control().admit(another, 60).value())["admitted"], false);
  now += 60;
  tick();
  EXPECT_EQ(gpu(1)["holder"], nullptr);
  EXPECT_EQ(gpus_of("batch/train"), json::array());
}

TEST_F(GpusOfADaemon, WhoWasLetInToShareLetsOthersInWhenItWorksToo) {
  use(kFirst, "41");
  start_settled();
  const char* request =
      R"({"schema":"berth.request/1","id":"train","class":"best-effort","vcpus":1,"gpus":1,"gpu_exclusive":false})";
  ASSERT_EQ(json::parse(daemon->control().admit(request, 60).value())["admitted"], true);
  node.add_group("batch/train");
  node.add_process(45, "batch/train");
  use(kSecond, "45");
  tick();
  now += 61;
  ASSERT_TRUE(test::eventually([this] {
    tick();
    return gpus_of("batch/train") == json::array({kSecond});
  }));
  EXPECT_EQ(gpu(1)["holder"], nullptr);
  const char* another =
      R"({"schema":"berth.request/1","id":"next","class":"best-effort","vcpus":1,"gpus":1,"gpu_exclusive":false})";
  EXPECT_EQ(json::parse(daemon->control().admit(another, 60).value())["admitted"], true);
}

TEST_F(GpusOfADaemon, WhatWasPromisedIsKeptWhileTheRunOpensOneGpuAfterTheOther) {
  for (const char* id : {kFirst, kSecond}) add_pci(node.host(), id, {.local_cpulist = "0-1,4-5"});
  start_settled();
  const char* request =
      R"({"schema":"berth.request/1","id":"train","class":"best-effort","vcpus":1,"gpus":2})";
  ASSERT_EQ(json::parse(daemon->control().admit(request, 60).value())["admitted"], true);
  node.add_group("batch/train");
  node.add_process(45, "batch/train");
  use(kFirst, "45");
  ASSERT_TRUE(test::eventually([this] {
    tick();
    return gpu(0)["holder"] == "batch/train";
  }));
  EXPECT_EQ(gpu(1)["holder"], "batch/train");
}

TEST_F(GpusOfADaemon, NoGpuIsPromisedToTwo) {
  for (const char* id : {kFirst, kSecond}) add_pci(node.host(), id, {.local_cpulist = "0-1,4-5"});
  start_settled();
  const auto told = [this](const std::string& id) {
    const auto answer = json::parse(daemon->control()
                                        .admit(R"({"schema":"berth.request/1","id":")" + id +
                                                   R"(","class":"best-effort","vcpus":1,"gpus":1})",
                                               60)
                                        .value());
    EXPECT_EQ(answer["admitted"], true) << answer;
    return answer["fitting"][0]["gpus"][0].get<std::string>();
  };
  const std::string of_one = told("one");
  const std::string of_two = told("two");
  EXPECT_NE(of_one, of_two);
  EXPECT_EQ(told("one"), of_one) << "asked again";
  ASSERT_TRUE(daemon->control().cancel_reservation("one"));
  EXPECT_EQ(told("three"), of_one) << "the second one's is its own";
}

TEST_F(GpusOfADaemon, WhoAsksAgainIsToldTheSameAlthoughAnotherIsIdleNow) {
  for (const char* id : {kFirst, kSecond}) add_pci(node.host(), id, {.local_cpulist = "0-1,4-5"});
  use(kFirst, "41");
  start_settled();
  const char* request =
      R"({"schema":"berth.request/1","id":"train","class":"best-effort","vcpus":1,"gpus":1})";
  const auto told = [&] {
    return json::parse(daemon->control().admit(request, 86400).value())["fitting"][0]["gpus"];
  };
  EXPECT_EQ(told(), json::array({kSecond}));
  use(kFirst, "");
  ASSERT_TRUE(test::eventually([this] {
    tick();
    return gpu(0)["holder"] == nullptr;
  }));
  EXPECT_EQ(told(), json::array({kSecond}));
  EXPECT_EQ(snapshot()["pending"][0]["told_gpus"], json::array({kSecond}));
}

TEST_F(GpusOfADaemon, WhatWasPromisedIsKeptWhileItHasNoPlace) {
  use(kFirst, "41");
  start_settled();
  const auto admitted = [this](const std::string& id, std::uint64_t memory) {
    const json request = {
        {"schema", "berth.request/1"},   {"id", id}, {"class", "best-effort"}, {"vcpus", 1}, {"gpus", 1},
        {"memory_request_bytes", memory}};
    return json::parse(daemon->control().admit(request.dump(), 60).value())["admitted"].get<bool>();
  };
  EXPECT_TRUE(admitted("train", 6 << 20));
  std::ofstream(node.proc() / "meminfo") << "MemTotal: 16384 kB\nMemFree: 1 kB\nMemAvailable: 6000 kB\n";
  tick();
  EXPECT_FALSE(admitted("next", 1 << 20));
  EXPECT_TRUE(admitted("train", 6 << 20)) << "asked again";
}

TEST_F(GpusOfADaemon, WhoAsksForNoneAnyMoreKeepsNone) {
  use(kFirst, "41");
  start_settled();
  const auto admit = [this](const char* more) {
    const std::string request =
        std::string(R"({"schema":"berth.request/1","id":"train","class":"best-effort","vcpus":1)") + more +
        "}";
    EXPECT_EQ(json::parse(daemon->control().admit(request, 60).value())["admitted"], true);
  };
  admit(R"(,"gpus":1)");
  EXPECT_EQ(snapshot()["pending"][0]["told_gpus"], json::array({kSecond}));
  admit("");
  EXPECT_FALSE(snapshot()["pending"][0].contains("told_gpus"));
}

TEST_F(GpusOfADaemon, AnotherRunOfWhoWasLetInWasNotLetIn) {
  start_settled();
  const char* request =
      R"({"schema":"berth.request/1","id":"train","class":"best-effort","vcpus":1,"gpus":3})";
  // The host has two.
  EXPECT_EQ(json::parse(daemon->control().admit(request, 60).value())["admitted"], false);
  const char* one = R"({"schema":"berth.request/1","id":"train","class":"best-effort","vcpus":1,"gpus":1})";
  ASSERT_EQ(json::parse(daemon->control().admit(one, 60).value())["admitted"], true);
  node.add_group("batch/train");
  tick();
  tick();
  ASSERT_EQ(gpus_of("batch/train").size(), 1U);
  node.restart_group("batch/train");
  tick();
  tick();
  EXPECT_EQ(gpus_of("batch/train"), json::array());
}

TEST_F(GpusOfADaemon, AWorkloadThatEndsLetsGo) {
  use(kFirst, "41");
  start_settled();
  node.remove_group("batch/x");
  ASSERT_TRUE(test::eventually([this] {
    tick();
    return gpu(0)["holder"] == nullptr;
  }));
  EXPECT_EQ(gpus_of("batch/x"), nullptr);
}

TEST_F(GpusOfADaemon, VcpusThatGoOfflineLeaveTheGpusListed) {
  start_settled();
  node.set_online(7);  // which writes /sys anew
  add_pci(node.host(), kFirst, {.local_cpulist = "0-1,4-5"});
  tick();
  ASSERT_EQ(snapshot()["topology"]["gpus"].size(), 2U);
  EXPECT_EQ(gpu(0)["healthy"], true);
  EXPECT_EQ(gpu(1)["problem"], "it is no longer on the PCI bus, or has lost its driver");
}

}  // namespace
}  // namespace berth::daemon
