// SPDX-License-Identifier: Apache-2.0
// Answers about single workloads, and their settings, while they run.
#include "tests/unit/daemon/daemon_fixture.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace berth::daemon {
namespace {

using DaemonTest = test::DaemonFixture;
using nlohmann::json;

TEST_F(DaemonTest, ShowsTheProgressThatIsReported) {
  load_node();
  start();
  tick();
  ASSERT_TRUE(daemon->control().report_progress("web/a", 0.25));
  tick();
  ASSERT_TRUE(test::eventually([&] {
    tick();
    return daemon->control().workload("web/a")->progress == 0.25;
  }));
  const auto listed = json::parse(daemon->control().workloads_json())["workloads"];
  EXPECT_EQ(listed[1]["progress"], 0.25);
  EXPECT_EQ(listed[2]["progress"], nullptr);
  EXPECT_NE(daemon->control().metrics_text().find("berth_workload_progress_ratio"), std::string::npos);
  EXPECT_EQ(daemon->control().report_progress("no/such", 0.5).error().kind(), model::ErrorKind::gone);
  EXPECT_EQ(daemon->control().report_progress("web/a", 2).error().kind(), model::ErrorKind::invalid_input);
}

TEST_F(DaemonTest, ReadsTheProgressFileOfARule) {
  const auto file = node.state_dir() / "a.progress";
  node.configure(std::string(test::kMixedLoad) +
                 "[[workload]]\nmatch = \"job/*\"\nclass = \"latency-sensitive\"\n" +
                 "progress = {file = \"" + (node.state_dir() / "%n.progress").string() + "\"}\n");
  node.add_group("job/a");
  start();
  tick();
  std::ofstream(file) << "3/4\n";
  EXPECT_TRUE(test::eventually([&] {
    tick();
    return daemon->control().workload("job/a")->progress == 0.75;
  }));
}

TEST_F(DaemonTest, FindsTheWorkloadOfAProcess) {
  load_node();
  start();
  tick();
  const auto process = node.proc() / "42";
  std::filesystem::create_directories(process);
  std::ofstream(process / "cgroup") << "0::/web/a/inner/most\n";
  std::ofstream(process / "status") << "Uid:\t1000\t1000\t1000\t1000\n";
  EXPECT_EQ(daemon->control().workload_of(42, 1000), "web/a");
  EXPECT_EQ(daemon->control().workload_of(42, 1001), std::nullopt);
  std::ofstream(process / "cgroup") << "0::/web\n";
  EXPECT_EQ(daemon->control().workload_of(42, 1000), std::nullopt);
}

TEST_F(DaemonTest, SetWorkloadHoldsForTheRun) {
  load_node();
  start();
  ASSERT_TRUE(daemon->control().set_workload("batch/x", {{"class", "latency-sensitive"}, {"vcpus", "1"}}));
  tick();
  EXPECT_EQ(daemon->control().counts().latency_sensitive, 3U);
  EXPECT_EQ(daemon->control().workload("batch/x")->vcpus, 1U);
  node.restart_group("batch/x");
  ASSERT_TRUE(test::eventually([&] {
    tick();
    return daemon->control().counts().latency_sensitive == 2;
  }));
}

TEST_F(DaemonTest, SetWorkloadOutlivesAnEmptyGroupAndARestartOfTheDaemon) {
  load_node();
  start();
  ASSERT_TRUE(daemon->control().set_workload("batch/x", {{"class", "latency-sensitive"}, {"vcpus", "1"}}));
  node.put("batch/x", "cgroup.events", "populated 0\nfrozen 0");
  ASSERT_TRUE(test::eventually([&] {
    tick();
    return daemon->control().counts().latency_sensitive == 2;
  }));
  node.put("batch/x", "cgroup.events", "populated 1\nfrozen 0");
  ASSERT_TRUE(test::eventually([&] {
    tick();
    return daemon->control().counts().latency_sensitive == 3;
  }));
  daemon.reset();
  start();
  tick();
  EXPECT_EQ(daemon->control().counts().latency_sensitive, 3U);
}

TEST_F(DaemonTest, SetWorkloadRefusesUnknownOnesAndBadValues) {
  load_node();
  start();
  EXPECT_EQ(daemon->control().set_workload("web/none", {{"vcpus", "1"}}).error().kind(),
            model::ErrorKind::gone);
  EXPECT_EQ(daemon->control().set_workload("web/a", {{"vcpus", "-1"}}).error().kind(),
            model::ErrorKind::invalid_input);
  EXPECT_EQ(daemon->control().set_workload("web/a", {}).error().kind(), model::ErrorKind::invalid_input);
}

TEST_F(DaemonTest, WhatWasSetOfARunIsShownAndCanBeTakenBack) {
  load_node();
  start();
  tick();
  const auto listed = [&] { return json::parse(daemon->control().workloads_json())["workloads"][1]; };
  EXPECT_EQ(listed()["overridden"], json::array());
  ASSERT_TRUE(daemon->control().set_workload("web/a", {{"vcpus", "3"}, {"priority", "5"}}));
  EXPECT_EQ(listed()["overridden"], (json{"priority", "vcpus"}));
  EXPECT_EQ(json::parse(daemon->control().status_json())["overridden_workloads"], 1);
  tick();
  EXPECT_EQ(listed()["vcpus"], 3);
  ASSERT_TRUE(daemon->control().set_workload("web/a", {{"vcpus", ""}, {"priority", ""}, {"class", ""}}));
  tick();
  EXPECT_EQ(listed()["overridden"], json::array());
  EXPECT_EQ(listed()["vcpus"], 2);
  EXPECT_EQ(json::parse(daemon->control().status_json())["overridden_workloads"], 0);
}

TEST_F(DaemonTest, AServiceThatBecomesSharedHasAHomeInsteadOfItsPin) {
  load_node();
  configure("mode = \"enforce\"\n");
  start();
  tick();
  ASSERT_NE(node.cpus("web/a"), "");
  ASSERT_TRUE(daemon->control().set_workload("web/a", {{"isolation", "shared"}}));
  tick();
  node.use_cpu("web/a", 1e-3);
  ASSERT_TRUE(test::eventually([&] {
    tick();
    return daemon->control().workload("web/a")->cpu_cores.value_or(0) > 0;
  }));
  tick();
  const auto listed = json::parse(daemon->control().workloads_json())["workloads"];
  EXPECT_EQ(listed[1]["isolation"], "shared");
  EXPECT_TRUE(listed[1]["home"].is_string() && listed[1]["home"] != "") << listed[1];
  EXPECT_EQ(listed[2]["isolation"], "vcpus");
  EXPECT_TRUE(listed[2]["home"].is_null());
  const auto own = model::CpuSet::parse(node.cpus("web/b")).value();
  const auto at_home = model::CpuSet::parse(node.cpus("web/a")).value();
  EXPECT_FALSE(at_home.intersects(own)) << at_home.to_string();
}

TEST_F(DaemonTest, AForeignWriterLeavesTheWorkloadAlone) {
  load_node();
  configure("mode = \"enforce\"\n");
  start();
  tick();
  tick();  // the pin is there
  node.put("web/a", "cpuset.cpus", "7");
  for (unsigned i = 0; i < cgroup::Sampler::kSettingsPeriod; ++i) tick();
  EXPECT_EQ(daemon->control().counts().left_alone, 1U);
  const auto document = json::parse(daemon->control().workloads_json());
  for (const auto& workload : document["workloads"]) {
    EXPECT_EQ(workload["managed"], workload["id"] != "web/a");
    EXPECT_EQ(workload["left_alone_reason"].is_null(), workload["id"] != "web/a");
  }
  EXPECT_FALSE(daemon->control().workload("web/a")->managed);
}

TEST_F(DaemonTest, AWorkloadLeftAloneKeepsTheVcpusItAskedFor) {
  load_node();
  configure("mode = \"enforce\"\n");
  start();
  tick();
  tick();  // the pin is there
  node.put("web/a", "cpuset.cpus", "7");
  ASSERT_TRUE(test::eventually([&] {
    tick();
    return !daemon->control().workload("web/a")->managed;
  }));
  tick();
  EXPECT_EQ(json::parse(daemon->control().workloads_json())["workloads"][1]["vcpus"], 2);
  EXPECT_EQ(daemon->control().workload("web/a")->vcpus, 2U);
  EXPECT_NE(daemon->control().metrics_text().find("berth_workload_vcpus{workload=\"web/a\""),
            std::string::npos);
}

}  // namespace
}  // namespace berth::daemon
