// SPDX-License-Identifier: Apache-2.0
// The command `explain`, on snapshots that are given.
#include "program.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace berth::test {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

TEST_F(Berthctl, ExplainsAWorkloadOfAGivenSnapshot) {
  const std::string own = file("own.toml", "[interference]\nisolation = \"vcpus\"\n");
  const std::string explain =
      "berthctl explain --config " + own + " --snapshot " + snapshot("worked_example.json");
  const Ran text = run_shell(explain + " a");
  EXPECT_EQ(text.exit, 0) << text.err;
  EXPECT_THAT(text.out, StartsWith("a: latency-sensitive, service hot"));
  EXPECT_THAT(text.out, HasSubstr("k1 0.400"));
  EXPECT_THAT(text.out, HasSubstr("given model"));
  EXPECT_THAT(text.out, HasSubstr("Actions that berth would take now"));

  const json document = json::parse(run_shell(explain + " a --json").out);
  EXPECT_EQ(document.at("schema"), "berth.explain/1");
  EXPECT_EQ(document.at("workload").at("pin").at("k1"), 0.4);
  const json action = document.at("workload").at("actions").at(0);
  const Ran decision = run_shell(explain + " " + action.at("decision").get<std::string>());
  EXPECT_EQ(decision.exit, 0) << decision.err;
  EXPECT_THAT(decision.out, HasSubstr("is in the present plan"));
  EXPECT_THAT(decision.out, HasSubstr(action.at("reason").get<std::string>()));

  const Ran app = run_shell("berthctl explain app-etl --snapshot " + snapshot("spark.json"));
  EXPECT_EQ(app.exit, 0) << app.err;
  EXPECT_THAT(app.out, HasSubstr("cost 42 s = recalculation 42 s"));
  expect_complaint(run_shell(explain + " nobody"), 1, "neither a workload");
  const std::string nginx = file("nginx.json",
                                 R"({"schema":"berth.snapshot/1","topology":{"cpus":[{"cpu":0}]},
       "workloads":[{"id":"system.slice/nginx.service","class":"latency-sensitive","vcpus":1}]})");
  expect_complaint(run_shell("berthctl explain ngnix --snapshot " + nginx), 1,
                   "; did you mean system.slice/nginx.service?");
  expect_complaint(run_shell("berthctl explain a --snapshot /no/such"), 2, "/no/such");
  expect_complaint(run_shell("berthctl explain a --snapshot - --config -"), 2, "standard input");
}

TEST_F(Berthctl, ExplainsWithTheSettingsOfAFile) {
  const std::string config =
      file("berth.toml", "[interference]\nisolation = \"vcpus\"\ndefault_model.k1 = 0.7\n");
  const std::string text = file("s.json",
                                R"({"schema":"berth.snapshot/1","topology":{"cpus":[{"cpu":0},{"cpu":1}]},
       "workloads":[{"id":"a","class":"latency-sensitive","vcpus":1}]})");
  const Ran ran = run_shell("berthctl explain a --json --snapshot " + text + " --config " + config);
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(json::parse(ran.out).at("workload").at("pin").at("k1"), 0.7);
}

}  // namespace berth::test
