// SPDX-License-Identifier: Apache-2.0
// The daemon finds tasks that will be late, and has other work pay for them.
#include "tests/unit/daemon/daemon_fixture.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace berth::daemon {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class DaemonStragglersTest : public test::DaemonFixture {
 protected:
  // A host whose vCPUs are promised: to a task, and to batch work that uses nothing of its large quotas.
  void begin(const std::string& mode, int vcpus = 2) {
    node.configure("mode = \"" + mode + "\"\n[straggler]\nrestore_hold = \"5s\"\n" + test::kMixedLoad +
                   "[[workload]]\nmatch = \"job/*\"\nclass = \"latency-sensitive\"\nvcpus = " +
                   std::to_string(vcpus) + "\n");
    for (const char* path : {"batch/x", "batch/y"}) {
      node.add_group(path);
      node.put(path, "cpu.max", "400000 100000");
    }
    node.add_group("job/late");
    start();
    tick();
    ASSERT_TRUE(daemon->control().set_workload("job/late", {{"deadline", "60s"}}));
  }
  // `fraction`: the progress that the task reports in this second; below 0: none.
  void pass(double fraction) {
    if (fraction >= 0) {
      ASSERT_TRUE(daemon->control().report_progress("job/late", fraction));
    }
    tick();
  }
  // The task crawls until `seen`, for some minutes at most.
  template <typename Seen>
  bool crawls_until(Seen seen) {
    double gain = 0.02;
    double done = 0;
    for (int i = 0; i < 200; ++i) {
      pass(done += gain);
      gain *= 0.85;
      if (seen()) return true;
    }
    return false;
  }
  json found() { return json::parse(daemon->control().plan_json())["findings"]["straggler"]; }
  json task() { return found()["tasks"]["job/late"]; }
  bool is_straggler() { return task().is_object() && task()["straggler"] == true; }
  std::string quota(const std::string& path) { return node.get(path, "cpu.max"); }
  // Batch work that pays; empty while there is none.
  std::string payer() {
    for (const char* path : {"batch/x", "batch/y"}) {
      if (quota(path) != "400000 100000") return path;
    }
    return {};
  }
};

TEST_F(DaemonStragglersTest, InObserveModeTheyAreFoundAndNothingIsWritten) {
  begin("observe");
  const auto before = node.tree_bytes();
  ASSERT_TRUE(crawls_until([this] { return is_straggler(); }));
  for (int i = 0; i < 5; ++i) pass(-1);
  const auto after = node.tree_bytes();
  for (const char* path : {"batch/x", "batch/y", "job/late"}) {
    for (const char* file : {"cpuset.cpus", "cpu.max", "memory.high"}) {
      const std::string name = std::string(path) + '/' + file;
      EXPECT_EQ(before.count(name), after.count(name));
      if (before.contains(name)) {
        EXPECT_EQ(before.at(name), after.at(name)) << name;
      }
    }
  }
}

TEST_F(DaemonStragglersTest, ThePageOfTheTaskAndThatOfThePayerSayWhatIsPaid) {
  begin("enforce");
  ASSERT_TRUE(crawls_until([this] { return !payer().empty(); }));
  const json of_task = json::parse(*daemon->control().explain_json("job/late"))["workload"]["task"];
  EXPECT_EQ(of_task["straggler"], true) << of_task;
  EXPECT_TRUE(of_task["v1"].is_number() && of_task["v2"].is_number() && of_task["deadline"].is_number())
      << of_task;
  const auto of_payer = json::parse(*daemon->control().explain_json(payer())).dump();
  EXPECT_THAT(of_payer, testing::AnyOf(HasSubstr("lends"), HasSubstr("shrunk for a straggler")));
}

TEST_F(DaemonStragglersTest, AQuotaThatAnotherProgramChangesStays) {
  begin("enforce");
  ASSERT_TRUE(crawls_until([this] { return !payer().empty(); }));
  const std::string owner = payer();
  node.put(owner, "cpu.max", "77000 100000");
  ASSERT_TRUE(crawls_until([&] {
    const auto listed = json::parse(daemon->control().workloads_json())["workloads"];
    for (const auto& workload : listed) {
      if (workload["id"] == owner) return workload["managed"] == false;
    }
    return false;
  }));
  daemon->stop();
  EXPECT_EQ(quota(owner), "77000 100000");
  EXPECT_EQ(quota(owner == "batch/x" ? "batch/y" : "batch/x"), "400000 100000");
}

TEST_F(DaemonStragglersTest, ATaskWithoutProgressOrWhoseProgressJumpsBackIsNotJudged) {
  begin("enforce");
  for (int i = 0; i < 5; ++i) pass(-1);
  ASSERT_TRUE(task().is_object());
  EXPECT_EQ(task()["straggler"], false);
  EXPECT_THAT(task()["reason"].get<std::string>(), HasSubstr("progress"));
  for (const double fraction : {0.2, 0.4, 0.3, 0.5}) pass(fraction);
  EXPECT_EQ(task()["straggler"], false);
  EXPECT_NE(task()["reason"], "");
}

TEST_F(DaemonStragglersTest, OneThatCannotGrowHereIsPublished) {
  begin("enforce", 4);  // the whole of a domain
  ASSERT_TRUE(crawls_until([this] { return !found()["relocate"].empty(); }));
  EXPECT_EQ(found()["relocate"][0]["workload"], "job/late");
  EXPECT_GT(found()["relocate"][0]["lacks"]["cpu"].get<double>(), 0);
  EXPECT_THAT(daemon->control().metrics_text(), HasSubstr("berth_relocations"));
}

}  // namespace
}  // namespace berth::daemon
