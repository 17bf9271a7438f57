// SPDX-License-Identifier: Apache-2.0
// The command `plan`, on snapshots that are given.
#include "program.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace berth::test {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

TEST_F(Berthctl, PlansAGivenSnapshot) {
  const Ran ran = run_shell("berthctl plan -o interference.isolation=vcpus --snapshot " +
                            snapshot("worked_example.json"));
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("\nLatency-sensitive instances with vCPUs of their own\n  INSTANCE"));
  EXPECT_THAT(ran.out, HasSubstr("Score of the node"));
}

TEST_F(Berthctl, PlansNoVcpusOfTheirOwnForServicesThatShare) {
  const Ran ran = run_shell("berthctl plan --snapshot " + snapshot("worked_example.json"));
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("\nLatency-sensitive instances that share vCPUs"));
  EXPECT_THAT(ran.out, Not(HasSubstr("of their own\n")));
  EXPECT_THAT(ran.out, Not(HasSubstr("Score of the node")));
}

TEST_F(Berthctl, PlansInJsonWhereverTheOptionStands) {
  const Ran after = run_shell("berthctl plan --json --snapshot " + snapshot("worked_example.json"));
  const Ran before = run_shell("berthctl --json plan --snapshot " + snapshot("worked_example.json"));
  EXPECT_EQ(after.exit, 0) << after.err;
  EXPECT_EQ(json::parse(after.out).at("schema"), "berth.plan/1");
  EXPECT_EQ(after.out, before.out);
}

TEST_F(Berthctl, PlansFromStandardInput) {
  const Ran from_file = run_shell("berthctl plan --json --snapshot " + snapshot("worked_example.json"));
  const Ran from_pipe =
      run_shell("cat " + snapshot("worked_example.json") + " | berthctl plan --json --snapshot -");
  EXPECT_EQ(from_pipe.exit, 0) << from_pipe.err;
  EXPECT_EQ(from_pipe.out, from_file.out);
}

TEST_F(Berthctl, PlansHelpForStragglers) {
  const std::string plan = "berthctl plan --snapshot " + snapshot("stragglers.json");
  EXPECT_THAT(run_shell(plan).out, HasSubstr("system.slice/b.service lends 1.00 cores\n"));
  // The worked example of docs/decisions/stragglers.md, and a loan that covers it.
  const auto findings = [](const Ran& ran) { return json::parse(ran.out).at("findings"); };
  const json given = findings(run_shell(plan + " --json --policy straggler"));
  EXPECT_FALSE(given.contains("interference"));
  const json& web = given.at("straggler").at("tasks").at("system.slice/web.service");
  EXPECT_EQ(web.at("straggler"), true);
  EXPECT_NEAR(web.at("finish").get<double>(), 1790001400, 0.001);
  EXPECT_NEAR(web.at("extension").get<double>(), 1, 1e-6);
  EXPECT_NEAR(web.at("granted").at("cpu").get<double>(), 1, 1e-6);
  const json capped = findings(run_shell(plan + " --json -o straggler.max_growth=1.2"));
  EXPECT_NEAR(capped.at("straggler").at("tasks").at("system.slice/web.service").at("growth").get<double>(),
              1.2, 1e-9);
}

TEST_F(Berthctl, OrdersWhoWouldBeEvicted) {
  const std::string learned = "berthctl plan --policy eviction --snapshot " + snapshot("spark.json");
  // The demand has made a step, and the step is over.
  EXPECT_THAT(run_shell(learned).out, HasSubstr("nothing is missing"));
  const std::string plan = learned + " -o eviction.forecast=published -o eviction.delta=1";
  const std::string text = run_shell(plan).out;
  EXPECT_THAT(text, HasSubstr("1.032 GiB is missing"));
  EXPECT_THAT(text, HasSubstr("With eviction.evict = true berth evicts them"));
  EXPECT_THAT(text, HasSubstr("Memory, and the order of eviction\n"));
  // Where nothing is missing, others than Spark's are not priced, and it says so.
  const std::string enough = run_shell(plan + " -o eviction.z=0 -o eviction.reserve=0.01").out;
  EXPECT_THAT(enough, HasSubstr("Memory, and the order of eviction of Spark's workloads\n"));
  EXPECT_THAT(enough, ::testing::Not(HasSubstr("backup")));
  // Computed by hand after docs/decisions/eviction-cost.md and eviction-order.md.
  const auto spark = [](const Ran& ran) { return json::parse(ran.out).at("findings").at("eviction"); };
  const json given = spark(run_shell(plan + " --json"));
  EXPECT_EQ(given.at("order"), (json{"spark/ml/1", "spark/etl/2", "spark/etl/1", "spark/etl/driver",
                                     "system.slice/backup.service"}));
  EXPECT_EQ(given.at("victims").size(), 1U);
  EXPECT_NEAR(given.at("apps").at("app-etl").at("cost").get<double>(), 33.0923, 1e-3);
  EXPECT_NEAR(given.at("apps").at("app-ml").at("remaining").get<double>(), 29400, 1e-6);
  const json published =
      spark(run_shell(plan + " --json -o eviction.complexity=mean-of-ratios -o eviction.rank=cost"));
  EXPECT_NEAR(published.at("apps").at("app-etl").at("computation").get<double>(), 44.6667, 1e-3);
  // One that has to be kept free twice: more victims.
  EXPECT_EQ(spark(run_shell(plan + " --json -o eviction.reserve=0.2")).at("victims").size(), 3U);
}

TEST_F(Berthctl, SettingsComeFromOptionsAndFiles) {
  const std::string plan = "berthctl plan --json --snapshot " + snapshot("worked_example.json");
  const auto weighting = [](const Ran& ran) {
    return json::parse(ran.out).at("findings").at("interference").at("weighting").get<std::string>();
  };
  EXPECT_EQ(weighting(run_shell(plan)), "overlap");
  EXPECT_EQ(weighting(run_shell(plan + " -o interference.weighting=request")), "request");
  EXPECT_EQ(weighting(run_shell(plan + " -o interference.window_step=1 -o interference.weighting=request")),
            "request");
  const std::string config = file("berth.toml", "[interference]\nweighting = \"request\"\n");
  EXPECT_EQ(weighting(run_shell(plan + " --config " + config)), "request");
  EXPECT_EQ(weighting(run_shell(plan + " --config " + config + " -o interference.weighting=overlap")),
            "overlap");
  EXPECT_EQ(weighting(run_shell(plan + " --policy interference")), "overlap");
}

TEST_F(Berthctl, WrongSettingsAreNamed) {
  const std::string plan = "berthctl plan --snapshot " + snapshot("worked_example.json");
  expect_complaint(run_shell(plan + " --policy magic"), 2,
                   "there is no policy \"magic\"; there are interference, straggler, eviction");
  expect_complaint(run_shell(plan + " -o interference.weighing=request"), 2, "weighing");
  expect_complaint(run_shell(plan + " -o interference.window_step=many"), 2, "window_step");
  expect_complaint(run_shell(plan + " -o nonsense"), 2, "nonsense");
  expect_complaint(run_shell(plan + " --config " + file("bad.toml", "[interference]\nwindow_step = 0\n")), 2,
                   "bad.toml:2:");
  expect_complaint(run_shell(plan + " --config /no/such/file"), 2, "/no/such/file");
}

TEST_F(Berthctl, AnEmptyNameOfAConfigurationIsNotThisHostsFile) {
  const std::string about = "the name of the configuration file is empty";
  const std::string given = " --snapshot " + snapshot("worked_example.json") + " --config ''";
  expect_complaint(run_shell("berthctl plan" + given), 2, about);
  expect_complaint(run_shell("berthctl explain a" + given), 2, about);
  expect_complaint(run_shell("berthctl replay /no/such/trace --compare ''"), 2, about);
}

TEST_F(Berthctl, ABadSnapshotIsAnsweredWithItsPath) {
  const auto plan = [&](const std::string& text) {
    return run_shell("berthctl plan --snapshot " + file("bad.json", text));
  };
  const std::string cpus =
      R"({"schema":"berth.snapshot/1","topology":{"cpus":[{"cpu":0,"core":0,"numa":0,"socket":0}]},)";
  expect_complaint(plan(""), 2, "bad.json");
  expect_complaint(plan("{"), 2, "bad.json");
  expect_complaint(plan("[]"), 2, "$");
  expect_complaint(plan("\x7f"
                        "ELF\x02"),
                   2, "bad.json");
  expect_complaint(plan(R"({"schema":"berth.snapshot/2"})"), 2, "$.schema");
  expect_complaint(plan(cpus + R"("workloads":[{"id":"a","class":"latency-sensitive","cpus":"7"}]})"), 2,
                   "$.workloads[0].cpus");
  expect_complaint(plan(cpus + R"("workloads":[{"id":"a","class":"urgent"}]})"), 2, "$.workloads[0].class");
  expect_complaint(
      plan(cpus + R"("workloads":[{"id":"a","class":"best-effort"},{"id":"a","class":"best-effort"}]})"), 2,
      "$.workloads[1]");
  expect_complaint(
      plan(R"({"schema":"berth.snapshot/1","workloads":[],"topology":{"hwloc_synthetic":"nonsense"}})"), 2,
      "nonsense");
  expect_complaint(
      plan(R"({"schema":"berth.snapshot/1","workloads":[],"topology":{"hwloc_xml":"/no/such.xml"}})"), 2,
      "/no/such.xml");
}

TEST_F(Berthctl, DeepNestingIsRefused) {
  const std::string brackets(100'000, '[');
  expect_complaint(run_shell("berthctl plan --snapshot -", brackets), 2, "standard input");
  expect_complaint(run_shell("berthctl plan --snapshot -", brackets + std::string(100'000, ']')), 2,
                   "standard input");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += R"({"topology":)";
  expect_complaint(run_shell("berthctl plan --snapshot -", objects), 2, "standard input");
}

TEST_F(Berthctl, AnUnreadableFileIsNamed) {
  expect_complaint(run_shell("berthctl plan --snapshot /no/such/snapshot.json"), 2,
                   "cannot read /no/such/snapshot.json: No such file or directory");
  expect_complaint(run_shell("berthctl plan --snapshot /"), 2, "cannot read /: Is a directory");
}

TEST_F(Berthctl, UnknownMembersAreWarnedOfAndPlanned) {
  const Ran ran = run_shell(
      "berthctl plan --json --snapshot -",
      R"({"schema":"berth.snapshot/1","host":"h","shoe_size":43,"topology":{"hwloc_synthetic":"package:1 core:2 pu:1"},
          "workloads":[{"id":"a","class":"best-effort","smell":"good"}]})");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(json::parse(ran.out).at("schema"), "berth.plan/1");
  EXPECT_EQ(lines_of(ran.err), 2) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("berthctl: warning: standard input: $.shoe_size"));
  EXPECT_THAT(ran.err, HasSubstr("$.workloads[0].smell"));
}

TEST_F(Berthctl, NamesCannotSpeakToTheTerminal) {
  const Ran refused = run_shell(
      "berthctl plan --snapshot -",
      R"({"schema":"berth.snapshot/1","host":"h\u001b]0;x\u0007","topology":{"hwloc_synthetic":"package:1 core:2 pu:1"},
          "workloads":[]})");
  expect_complaint(refused, 2, "$.host");
  EXPECT_EQ(refused.err.find('\x1b'), std::string::npos);
  const Ran named = run_shell("berthctl plan --snapshot $'/no/\x1b[2J\nsuch'");
  expect_complaint(named, 2, "/no/?[2J such");
}

}  // namespace berth::test
