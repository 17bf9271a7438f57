// SPDX-License-Identifier: Apache-2.0
// Documents of docs/contract.
#include "model/json.h"
#include "tests/paths.h"
#include "tests/unit/daemon/daemon_fixture.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace berth::daemon {
namespace {

using DaemonTest = test::DaemonFixture;
using nlohmann::json;
using testing::HasSubstr;

// The JSON of a page of docs/contract that has this schema, as it is written there.
std::vector<std::string> examples_of(const std::string& page, const std::string& schema) {
  std::ifstream file(BERTH_DOCS "/contract/" + page);
  const std::string contract((std::istreambuf_iterator<char>(file)), {});
  const std::string fence = "```json\n";
  std::vector<std::string> found;
  for (std::size_t at = contract.find(fence); at != std::string::npos; at = contract.find(fence, at)) {
    at += fence.size();
    const std::string block = contract.substr(at, contract.find("```", at) - at);
    if (block.starts_with("{\"schema\": \"" + schema)) found.push_back(block);
  }
  return found;
}

TEST(ContractExamples, OfWhatIsReadAreRead) {
  for (const std::string& example : examples_of("snapshot.md", "berth.snapshot/1")) {
    const auto parsed = model::parse_snapshot(example);
    ASSERT_TRUE(parsed) << parsed.error().message();
    EXPECT_TRUE(parsed->warnings.empty());
  }
  for (const std::string& example : examples_of("requests.md", "berth.request/1")) {
    const auto parsed = model::parse_request(example);
    EXPECT_TRUE(parsed) << parsed.error().message();
  }
  EXPECT_EQ(examples_of("snapshot.md", "berth.snapshot/1").size() +
                examples_of("requests.md", "berth.request/1").size(),
            2U);
}

TEST_F(DaemonTest, StatusHasEveryMember) {
  load_node();
  start();
  tick();
  const auto status = json::parse(daemon->control().status_json());
  EXPECT_EQ(status["schema"], "berth.status/1");
  EXPECT_EQ(status["mode"], "observe");
  EXPECT_EQ(status["started"], 1000);
  EXPECT_EQ(status["tick"]["count"], 1);
  EXPECT_EQ(status["tick"]["interval_s"], 0.1);
  EXPECT_GT(status["tick"]["last_wall_ms"], 0);
  EXPECT_GT(status["tick"]["mean_cpu_ms"], 0);
  EXPECT_EQ(status["workloads"]["latency-sensitive"], 2);
  EXPECT_EQ(status["workloads"]["best-effort"], 1);
  EXPECT_EQ(status["workloads"]["left_alone"], 0);
  EXPECT_TRUE(status["score_node"].is_number());
  EXPECT_EQ(status["undo_records"], 0);
  EXPECT_EQ(status["memory_rss_bytes"], 500 * sysconf(_SC_PAGESIZE));
  EXPECT_EQ(status["config"]["file"], node.config_file().string());
  EXPECT_EQ(status["config"]["loaded"], 1000);
  EXPECT_EQ(status["config"]["unused_rules"], json::array());
  EXPECT_EQ(status["unplaceable"], json::array());
  EXPECT_EQ(status["last_actions"].size(), 3U);
  for (const char* name : {"version", "host", "best_effort_cpus"}) {
    EXPECT_FALSE(status[name].get<std::string>().empty()) << name;
  }
  std::vector<std::string> names;
  for (const auto& item : status["capabilities"]) {
    names.push_back(item["name"]);
    EXPECT_TRUE(item["available"].is_boolean());
    EXPECT_FALSE(item["detail"].get<std::string>().empty()) << item["name"];
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"cgroup-v2", "cpuset-controller", "cpu-controller", "memory-controller",
                                      "psi", "pressure-triggers", "systemd", "bus", "polkit", "smt", "llc",
                                      "gpus", "undo-journal", "decision-log", "privileges"}));
}

TEST_F(DaemonTest, StatusNamesUnusedRulesAndServicesWithoutVcpus) {
  load_node();
  node.add_group("web/large");
  node.configure(
      "mode = \"observe\"\n"
      "[[workload]]\nmatch = \"web/large\"\nclass = \"latency-sensitive\"\nvcpus = 64\n"
      "[[workload]]\nmatch = \"wbe/*\"\nclass = \"latency-sensitive\"\nvcpus = 1\n" +
      std::string(test::kMixedLoad));
  start();
  tick();
  const auto status = json::parse(daemon->control().status_json());
  ASSERT_EQ(status["unplaceable"].size(), 1U) << status["unplaceable"];
  EXPECT_EQ(status["unplaceable"][0]["workload"], "web/large");
  EXPECT_THAT(status["unplaceable"][0]["reason"], HasSubstr("asks 64 vCPUs"));
  const auto& unused = status["config"]["unused_rules"];
  ASSERT_EQ(unused.size(), 1U) << unused;
  EXPECT_EQ(unused[0]["rule"], node.config_file().string() + ":6");
  EXPECT_EQ(unused[0]["match"], "wbe/*");
  EXPECT_EQ(unused[0]["reason"], "no cgroup matches");
}

TEST_F(DaemonTest, WorkloadsHaveEveryMember) {
  load_node();
  configure("mode = \"enforce\"\n");
  start();
  tick();
  node.use_cpu("web/a", 1e-3);
  ASSERT_TRUE(test::eventually([&] {
    tick();
    return daemon->control().workload("web/a")->cpu_cores.value_or(0) > 0;
  }));
  const auto document = json::parse(daemon->control().workloads_json());
  EXPECT_EQ(document["schema"], "berth.workloads/1");
  EXPECT_EQ(document["time"], now.load());
  ASSERT_EQ(document["workloads"].size(), 3U);
  const auto& web = document["workloads"][1];
  EXPECT_EQ(web["id"], "web/a");
  EXPECT_EQ(web["service"], "web");
  EXPECT_EQ(web["class"], "latency-sensitive");
  EXPECT_EQ(web["vcpus"], 2);
  EXPECT_EQ(web["pinned_cpus"], node.cpus("web/a"));
  EXPECT_EQ(web["effective_cpus"], "0-7");
  EXPECT_GT(web["cpu_cores"], 0);
  EXPECT_EQ(web["memory_bytes"], 1048576);
  EXPECT_EQ(web["cpu_pressure_some_avg10"], 2.5);
  EXPECT_TRUE(web["pressure"].is_number());
  EXPECT_TRUE(web["score"].is_number());
  EXPECT_TRUE(web["progress"].is_null());
  EXPECT_EQ(web["managed"], true);
  EXPECT_TRUE(web["left_alone_reason"].is_null());
  EXPECT_FALSE(web["matched_by"].get<std::string>().empty());
  EXPECT_TRUE(document["workloads"][0]["vcpus"].is_null());
  EXPECT_TRUE(document["workloads"][0]["score"].is_null());
}

TEST_F(DaemonTest, MemoryThatCannotBeReadIsUnknownAndNot0) {
  load_node();
  std::filesystem::remove(node.tree() / "web/a/memory.current");
  start();
  tick();
  ASSERT_TRUE(test::eventually([&] {
    tick();
    return daemon->control().workload("web/a")->cpu_cores && daemon->control().workload("web/b")->cpu_cores;
  }));
  EXPECT_EQ(daemon->control().workload("web/a")->memory_bytes, std::nullopt);
  EXPECT_EQ(daemon->control().workload("web/b")->memory_bytes, 1048576U);
  const auto listed = json::parse(daemon->control().workloads_json())["workloads"];
  EXPECT_TRUE(listed[1]["memory_bytes"].is_null());
  EXPECT_EQ(listed[2]["memory_bytes"], 1048576);
  const auto snapshot = json::parse(daemon->control().snapshot_json())["workloads"];
  EXPECT_FALSE(snapshot[1]["usage"][0].contains("memory_bytes"));
  EXPECT_TRUE(snapshot[2]["usage"][0].contains("memory_bytes"));
  const auto metrics = daemon->control().metrics_text();
  EXPECT_EQ(metrics.find("berth_workload_memory_bytes{workload=\"web/a\""), std::string::npos);
  EXPECT_NE(metrics.find("berth_workload_memory_bytes{workload=\"web/b\""), std::string::npos);
}

TEST_F(DaemonTest, TopologyIsTheContractsDocument) {
  start();
  const auto topology = model::parse_topology(daemon->control().topology_json());
  ASSERT_TRUE(topology);
  EXPECT_EQ(topology->usable(), model::CpuSet::range(0, 7));
}

TEST_F(DaemonTest, LogIsNewestFirstAndLimited) {
  load_node();
  configure("mode = \"enforce\"\n");
  start();
  tick();
  ASSERT_TRUE(daemon->set_mode("observe"));
  const auto log = json::parse(daemon->control().log_json(2));
  EXPECT_EQ(log["schema"], "berth.log/1");
  ASSERT_EQ(log["entries"].size(), 2U);
  EXPECT_EQ(log["entries"][0]["kind"], "restore");
  const auto first = json::parse(daemon->control().log_json(0))["entries"].back();
  for (const char* member : {"time", "decision", "mode", "kind", "workload", "attribute", "old", "new",
                             "policy", "reason", "result", "error"}) {
    EXPECT_TRUE(first.contains(member)) << member;
  }
  EXPECT_EQ(first["decision"].get<std::string>().substr(0, 2), "d-");
}

TEST_F(DaemonTest, GroupsWhoseNamesAreNoUtf8SpoilNoDocument) {
  node.add_group("web/\xff\xfe");
  node.add_group("web/a");
  start();
  tick();
  const auto listed = json::parse(daemon->control().workloads_json())["workloads"];
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(listed[0]["id"], "web/a");
  EXPECT_TRUE(json::parse(daemon->control().log_json(0)).contains("entries"));
  EXPECT_TRUE(model::parse_snapshot(daemon->control().snapshot_json()));
  EXPECT_TRUE(model::parse_plan(daemon->control().plan_json()));
}

TEST_F(DaemonTest, DocumentsAreMadeOnceATick) {
  load_node();
  start();
  tick();
  const auto figures = daemon->control().metrics_text();
  const auto list = daemon->control().workloads_json();
  const auto plan = daemon->control().plan_json();
  std::ofstream(node.proc() / "self/statm") << "2000 1700 100 1 0 1 0\n";
  EXPECT_EQ(daemon->control().metrics_text(), figures);
  EXPECT_EQ(daemon->control().workloads_json(), list);
  EXPECT_EQ(daemon->control().plan_json(), plan);
  ASSERT_TRUE(daemon->set_mode("enforce"));
  const auto enforcing = daemon->control().metrics_text();
  EXPECT_NE(enforcing, figures) << "the mode is another one";
  tick();
  EXPECT_NE(daemon->control().metrics_text(), enforcing);
  EXPECT_NE(daemon->control().workloads_json(), list);
}

TEST_F(DaemonTest, ExplainsWorkloadsAndDecisions) {
  load_node();
  start();
  tick();
  auto document = json::parse(daemon->control().explain_json("web/a").value());
  EXPECT_EQ(document["schema"], "berth.explain/1");
  EXPECT_EQ(document["decision"], nullptr);
  EXPECT_EQ(document["workload"]["id"], "web/a");
  const auto& pin = document["workload"]["pin"];
  EXPECT_NEAR(pin["score"].get<double>(),
              pin["k1"].get<double>() * pin["cpu_sc"].get<double>() +
                  pin["k2"].get<double>() * pin["cpu_ss"].get<double>(),
              1e-12);

  const auto entry = json::parse(daemon->control().log_json(1))["entries"][0];
  document = json::parse(daemon->control().explain_json(entry["decision"].get<std::string>()).value());
  EXPECT_EQ(document["decision"]["id"], entry["decision"]);
  EXPECT_EQ(document["decision"]["entries"][0], entry);
  EXPECT_EQ(document["workload"]["id"], entry["workload"]);

  EXPECT_EQ(daemon->control().explain_json("no/such").error().kind(), model::ErrorKind::gone);
  EXPECT_EQ(daemon->control().explain_json("").error().kind(), model::ErrorKind::gone);
}

TEST_F(DaemonTest, ExplainSaysOfAnIgnoredCgroupWhichRuleIgnoresIt) {
  node.configure(
      "[[workload]]\nmatch = \"batch/x\"\nclass = \"best-effort\"\n"
      "[[workload]]\nmatch = \"**\"\nclass = \"ignored\"\n");
  for (const char* path : {"batch/x", "batch/x/part", "batch/y"}) node.add_group(path);
  start();
  tick();
  const auto said = [&](const char* name) {
    const auto explained = daemon->control().explain_json(name);
    return explained ? std::string("a workload") : explained.error().message();
  };
  EXPECT_EQ(said("batch/x"), "a workload");
  EXPECT_THAT(said("y"), HasSubstr("batch/y: class \"ignored\" by"));
  EXPECT_THAT(said("part"), HasSubstr("neither a workload")) << "it is a part of one";
}

TEST_F(DaemonTest, ADecisionOfAnEarlierPlanIsNotOfThePresentOne) {
  load_node();
  start();
  tick();
  tick();
  const auto plan = json::parse(daemon->control().plan_json());
  ASSERT_FALSE(plan["actions"].empty());
  const std::string id = plan["actions"][0]["decision"];
  const auto decision = [&] { return json::parse(daemon->control().explain_json(id).value())["decision"]; };
  EXPECT_EQ(decision()["present"], true);
  EXPECT_EQ(decision()["planned_at"], plan["time"]);

  tick();
  const auto later = decision();
  EXPECT_EQ(later["present"], false) << "the tick has decided anew";
  EXPECT_EQ(later["planned"]["decision"], id);
  EXPECT_EQ(later["planned_at"], plan["time"]);
  EXPECT_EQ(later["entries"], json::array());
}

TEST_F(DaemonTest, ADecisionThatWasCarriedOutIsInTheLogAndNoLongerPlanned) {
  load_node();
  configure("mode = \"enforce\"\n");
  start();
  tick();
  const auto plan = json::parse(daemon->control().plan_json());
  const std::string id = json::parse(daemon->control().log_json(1))["entries"][0]["decision"];
  const auto decision = [&] { return json::parse(daemon->control().explain_json(id).value())["decision"]; };
  EXPECT_EQ(decision()["present"], true);
  EXPECT_EQ(decision()["entries"][0]["result"], "applied");

  tick();
  const auto later = decision();
  EXPECT_EQ(later["present"], false);
  EXPECT_EQ(later["planned_at"], plan["time"]) << "it was shown";
  EXPECT_EQ(later["entries"][0]["result"], "applied");
}

}  // namespace
}  // namespace berth::daemon
