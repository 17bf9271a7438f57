// SPDX-License-Identifier: Apache-2.0
// Admission of requests, and the effect of a reservation until the workload comes.
#include "tests/unit/daemon/daemon_fixture.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace berth::daemon {
namespace {

using nlohmann::json;

class AdmissionTest : public test::DaemonFixture {
 protected:
  static std::string request(const std::string& id, int vcpus = 2) {
    return json{{"schema", "berth.request/1"}, {"id", id}, {"vcpus", vcpus}}.dump();
  }
  json admit(const std::string& text, double hold_s = 0) {
    const auto answer = daemon->control().admit(text, hold_s);
    if (!answer) throw std::runtime_error(answer.error().message());
    return json::parse(*answer);
  }
  json snapshot() { return json::parse(daemon->control().snapshot_json()); }
  std::set<std::string> pending() {
    std::set<std::string> ids;
    const json shown = snapshot();
    for (const auto& item : shown["pending"]) ids.insert(item["id"].get<std::string>());
    return ids;
  }
  // The log of admissions, oldest first: "job-1 held", "job-2 refused".
  std::vector<std::string> steps() {
    std::vector<std::string> said;
    const json log = json::parse(daemon->control().log_json(100));
    for (const auto& entry : log["entries"]) {
      if (entry["kind"] != "admit") continue;
      const auto became = entry["new"].get<std::string>();
      said.push_back(entry["workload"].get<std::string>() + " " +
                     (became.empty() ? entry["result"].get<std::string>() : became));
    }
    std::reverse(said.begin(), said.end());
    return said;
  }
  void set_available(int kib) {
    std::ofstream(node.proc() / "meminfo")
        << "MemTotal: 16384 kB\nMemFree: 1 kB\nMemAvailable: " << kib << " kB\n";
  }
};

}  // namespace

TEST_F(AdmissionTest, HoldsAPlaceUntilTheWorkloadComes) {
  node.add_group("batch/x");
  start();
  tick();
  const json answer = admit(request("web/new"));
  EXPECT_EQ(answer["schema"], "berth.admission/1");
  EXPECT_EQ(answer["admitted"], true);
  EXPECT_EQ(answer["until"], now + 120);
  EXPECT_FALSE(answer["fitting"][0]["cpus"].get<std::string>().empty());
  EXPECT_EQ(pending(), std::set<std::string>{"web/new"});
  tick();
  // The plan keeps its vCPUs free of others.
  const auto plan = json::parse(daemon->control().plan_json());
  EXPECT_TRUE(plan["findings"]["interference"]["instances"].contains("web/new"));
  EXPECT_EQ(json::parse(daemon->control().status_json())["reservations"], 1);
  EXPECT_NE(daemon->control().metrics_text().find("berth_reservations 1"), std::string::npos);
  node.add_group("web/new");
  ASSERT_TRUE(test::eventually([&] {
    tick();
    return pending().empty();
  }));
  EXPECT_EQ(snapshot()["workloads"].size(), 2U);
}

TEST_F(AdmissionTest, TheWorkloadIsPinnedWhereItsAdmissionTold) {
  start();
  tick();
  // The first one takes the place that the second one would have if it came alone.
  const auto told = [this](const std::string& id) {
    return admit(request(id))["fitting"][0]["cpus"].get<std::string>();
  };
  const std::string of_first = told("web/first");
  const std::string of_second = told("web/second");
  EXPECT_NE(of_first, of_second);
  EXPECT_EQ(told("web/second"), of_second) << "asked again";
  tick();
  EXPECT_EQ(json::parse(
                daemon->control().plan_json())["findings"]["interference"]["instances"]["web/second"]["cpus"],
            of_second);
  ASSERT_TRUE(daemon->control().cancel_reservation("web/first"));
  EXPECT_EQ(told("web/second"), of_second) << "although the better place is free now";
  node.add_group("web/second");
  ASSERT_TRUE(test::eventually([&] {
    tick();
    return pending().empty();
  }));
  EXPECT_EQ(json::parse(
                daemon->control().plan_json())["findings"]["interference"]["instances"]["web/second"]["cpus"],
            of_second);
}

TEST_F(AdmissionTest, APlaceIsFreeAgainWhenItsTimeIsOver) {
  start();
  tick();
  EXPECT_EQ(admit(request("a", 4), 5)["admitted"], true);
  EXPECT_EQ(admit(request("b", 4))["admitted"], false);
  for (int i = 0; i < 5; ++i) tick();
  EXPECT_TRUE(pending().empty());
  EXPECT_EQ(admit(request("b", 4))["admitted"], true);
}

TEST_F(AdmissionTest, AHundredWhoAskAtOnceAreGivenWhatThereIsAndNoMore) {
  start();
  tick();
  int admitted = 0;
  std::set<std::string> cpus;
  for (int i = 0; i < 100; ++i) {
    const json answer = admit(request("job-" + std::to_string(i), 1));
    if (answer["admitted"] != true) {
      EXPECT_FALSE(answer["reason"].get<std::string>().empty());
      EXPECT_FALSE(answer["change"].empty());
      continue;
    }
    ++admitted;
    EXPECT_TRUE(cpus.insert(answer["fitting"][0]["cpus"].get<std::string>()).second);
  }
  EXPECT_EQ(admitted, 7);  // of eight vCPUs one stays with best-effort work
  EXPECT_EQ(pending().size(), 7U);
  tick();
  EXPECT_EQ(pending().size(), 7U);
}

TEST_F(AdmissionTest, ANodeInStateNoScheduleLetsNobodyIn) {
  start();
  set_available(1600);
  tick();
  const json answer = admit(request("a", 1));
  EXPECT_EQ(answer["admitted"], false);
  EXPECT_EQ(answer["until"], nullptr);
  EXPECT_NE(answer["reason"].get<std::string>().find("memory is in state no-schedule"), std::string::npos);
  EXPECT_NE(answer["change"][0].get<std::string>().find("80 %"), std::string::npos);
  EXPECT_TRUE(pending().empty());
  set_available(8192);
  tick();
  EXPECT_EQ(admit(request("a", 1))["admitted"], true);
}

TEST_F(AdmissionTest, WhoRunsAlreadyIsNotLetInAgain) {
  node.add_group("web/a");
  start();
  tick();
  const json answer = admit(request("web/a"));
  EXPECT_EQ(answer["admitted"], false);
  EXPECT_NE(answer["reason"].get<std::string>().find("is already running"), std::string::npos);
}

TEST_F(AdmissionTest, AskingAgainHoldsThePlaceAnewAndOnce) {
  start();
  tick();
  EXPECT_EQ(admit(request("a", 4), 5)["admitted"], true);
  tick();
  const json again = admit(request("a", 4), 5);
  EXPECT_EQ(again["admitted"], true);
  EXPECT_EQ(again["until"], now + 5);
  EXPECT_EQ(pending().size(), 1U);
  // A promise stands, whatever has come to the node since.
  set_available(1600);
  tick();
  EXPECT_EQ(admit(request("a", 4), 5)["admitted"], true);
  // Another request of that name is another one, and where it is refused the first promise stands.
  EXPECT_EQ(admit(request("a", 3), 5)["admitted"], false);
  EXPECT_EQ(pending(), std::set<std::string>{"a"});
}

TEST_F(AdmissionTest, PromisesOutliveTheDaemon) {
  start();
  tick();
  EXPECT_EQ(admit(request("a", 4))["admitted"], true);
  daemon->stop();
  daemon.reset();
  start();
  tick();
  EXPECT_EQ(pending(), std::set<std::string>{"a"});
  EXPECT_EQ(admit(request("b", 4))["admitted"], false);
}

TEST_F(AdmissionTest, APlaceThatIsGivenUpIsTheNextOnes) {
  start();
  tick();
  const json first = admit(request("a", 4));
  EXPECT_EQ(admit(request("b", 4))["admitted"], false);
  const auto cancelled = daemon->control().cancel_reservation("a");
  ASSERT_TRUE(cancelled);
  EXPECT_EQ(*cancelled, first["decision"]);
  EXPECT_TRUE(pending().empty());
  EXPECT_EQ(admit(request("b", 4))["admitted"], true);
  const auto again = daemon->control().cancel_reservation("a");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().kind(), model::ErrorKind::gone);
}

TEST_F(AdmissionTest, ThoseWaitedForAreListedWithTheirPlaces) {
  start();
  tick();
  const json first = admit(request("a", 3), 30);
  const auto list = [&] { return json::parse(daemon->control().reservations_json()); };
  ASSERT_EQ(list()["reservations"].size(), 1U);
  const json shown = list()["reservations"][0];
  EXPECT_EQ(shown["request"]["id"], "a");
  EXPECT_EQ(shown["decision"], first["decision"]);
  EXPECT_EQ(shown["until"], now + 30);
  EXPECT_EQ(shown["place"]["cpus"], first["fitting"][0]["cpus"]);
  admit(request("b", 2));
  EXPECT_EQ(list()["reservations"].size(), 2U);
  set_available(1600);
  tick();
  EXPECT_EQ(list()["reservations"][0]["place"], nullptr);
  now += 40;
  EXPECT_EQ(list()["reservations"].size(), 1U);
}

TEST_F(AdmissionTest, TheLogHasEachAnswerAndWhatBecomesOfThePlace) {
  start();
  tick();
  const json first = admit(request("a", 3), 5);
  const json refused = admit(request("b", 5));
  admit(request("a", 3), 5);
  tick();
  const json other = admit(request("a", 2), 5);
  EXPECT_NE(other["decision"], first["decision"]);
  admit(request("web/c", 1));
  ASSERT_TRUE(daemon->control().cancel_reservation("web/c"));
  for (int i = 0; i < 5; ++i) tick();
  admit(request("web/d", 1));
  node.add_group("web/d");
  ASSERT_TRUE(test::eventually([&] {
    tick();
    return pending().empty();
  }));
  EXPECT_EQ(steps(),
            (std::vector<std::string>{"a held", "b refused", "a held", "a replaced", "a held", "web/c held",
                                      "web/c cancelled", "a expired", "web/d held", "web/d came"}));
  const auto entries_of = [&](const json& answer) {
    return json::parse(
        *daemon->control().explain_json(answer["decision"].get<std::string>()))["decision"]["entries"];
  };
  ASSERT_EQ(entries_of(refused).size(), 1U);
  EXPECT_NE(entries_of(refused)[0]["reason"].get<std::string>().find("any one of these changes would help: "),
            std::string::npos);
  ASSERT_EQ(entries_of(first).size(), 3U);
  EXPECT_EQ(entries_of(first)[0]["new"], "replaced");
  EXPECT_EQ(entries_of(other)[0]["new"], "expired");
}

TEST_F(AdmissionTest, BadRequestsAreErrors) {
  start();
  tick();
  for (const char* text :
       {"", "{}", R"({"schema": "berth.request/1"})", R"({"schema": "berth.request/1", "vcpus": 0})"}) {
    const auto answer = daemon->control().admit(text, 0);
    ASSERT_FALSE(answer) << text;
    EXPECT_EQ(answer.error().kind(), model::ErrorKind::invalid_input);
  }
  for (const double hold_s : {-1.0, 0.5, 1e6, std::nan("")})
    EXPECT_FALSE(daemon->control().admit(request("a"), hold_s));
  EXPECT_TRUE(pending().empty());
}

TEST_F(AdmissionTest, RoomIsMadeOnceWhereMoreIsPromisedThanThereIs) {
  configure("mode = \"enforce\"\n");
  node.add_group("batch/x");
  node.add_group("batch/y");
  node.put("batch/x", "cpu.max", "800000 100000");
  node.put("batch/y", "cpu.max", "800000 100000");
  start();
  tick();
  EXPECT_EQ(admit(request("web/new", 2))["admitted"], true);
  for (int i = 0; i < 3; ++i) tick();
  const auto quotas = [&] { return node.get("batch/x", "cpu.max") + ", " + node.get("batch/y", "cpu.max"); };
  const std::string made = quotas();
  EXPECT_NE(made, "800000 100000, 800000 100000");
  EXPECT_EQ(snapshot()["pending"][0]["room"]["cpu"], 2);
  for (int i = 0; i < 10; ++i) tick();
  EXPECT_EQ(quotas(), made);
  EXPECT_EQ(admit(request("web/new", 2))["admitted"], true) << "asked again";
  for (int i = 0; i < 3; ++i) tick();
  EXPECT_EQ(quotas(), made);
}

TEST_F(AdmissionTest, ALimitGoesBackWhenItsWorkloadGetsVcpusFromAnotherProgram) {
  configure("mode = \"enforce\"\n");
  node.add_group("batch/x");
  node.put("batch/x", "cpu.max", "800000 100000");
  start();
  tick();
  EXPECT_EQ(admit(request("web/new", 2))["admitted"], true);
  for (int i = 0; i < 3; ++i) tick();
  ASSERT_NE(node.get("batch/x", "cpu.max"), "800000 100000");
  node.put("batch", "cpuset.cpus", "4-7");
  node.put("batch", "cpuset.cpus.partition", "root");
  node.put("batch", "cpuset.cpus.effective", "4-7");
  node.put("", "cpuset.cpus.effective", "0-3");
  for (int i = 0; i < 60; ++i) tick();
  EXPECT_EQ(node.get("batch/x", "cpu.max"), "800000 100000");
}

TEST_F(AdmissionTest, WhatHasNoNameIsNotWaitedFor) {
  start();
  tick();
  const auto answer = daemon->control().admit(R"({"schema":"berth.request/1","vcpus":1})", 60);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind(), model::ErrorKind::invalid_input);
  EXPECT_NE(answer.error().message().find("$.id: missing"), std::string::npos) << answer.error().message();
}

}  // namespace berth::daemon
