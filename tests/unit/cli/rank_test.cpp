// SPDX-License-Identifier: Apache-2.0
// The command `rank`, on snapshots that are given.
#include "program.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace berth::test {

using nlohmann::json;
using testing::HasSubstr;

TEST_F(Berthctl, RanksTheHostsOfGivenSnapshots) {
  const std::string request =
      file("request.json", R"({"schema":"berth.request/1","vcpus":2,"memory_request_bytes":1048576})");
  const std::string own = file("own.toml", "[interference]\nisolation = \"vcpus\"\n");
  const std::string rank = "berthctl rank --config " + own + " --request " + request + " --snapshot ";
  const Ran text = run_shell(rank + snapshot("two_sockets.json") + " " + snapshot("small.json"));
  EXPECT_EQ(text.exit, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("node-a"));
  EXPECT_THAT(text.out, HasSubstr("small NUMA node 0: asks 2 vCPUs"));

  const json document = json::parse(run_shell(rank + snapshot("two_sockets.json") + " --json").out);
  EXPECT_EQ(document.at("schema"), "berth.rank/1");
  EXPECT_EQ(document.at("request").at("vcpus"), 2);
  EXPECT_EQ(document.at("fitting").size(), 2U);
  EXPECT_EQ(document.at("fitting").at(0).at("host"), "node-a");
}

TEST_F(Berthctl, RanksManyHostsOfOneFile) {
  const std::string request = file("request.json", R"({"schema":"berth.request/1","vcpus":1})");
  const auto host = [](const std::string& name) {
    return R"({"schema":"berth.snapshot/1","host":")" + name +
           R"(","topology":{"cpus":[{"cpu":0},{"cpu":1}]},"workloads":[]})";
  };
  const std::string rank = "berthctl rank --json --request " + request + " --snapshot -";
  const Ran both = run_shell(rank, host("b{") + "\n\n  " + host("a") + "\n");
  EXPECT_EQ(both.exit, 0) << both.err;
  EXPECT_EQ(json::parse(both.out).at("fitting").at(1).at("host"), "b{");
  expect_complaint(run_shell(rank, host("a") + host("a")), 2, "has the host \"a\" already");
  expect_complaint(run_shell(rank, host("a") + "{"), 2, "standard input, document 2");
  expect_complaint(run_shell(rank, " \n"), 2, "holds no snapshot");
  expect_complaint(run_shell(rank + " --config -"), 2, "for one thing only");
}

TEST_F(Berthctl, OneBadFileOfManyKeepsNoWorkFromTheOthers) {
  const std::string request = file("request.json", R"({"schema":"berth.request/1","vcpus":1})");
  const auto host = [](const std::string& name) {
    return R"({"schema":"berth.snapshot/1","host":")" + name +
           R"(","topology":{"cpus":[{"cpu":0},{"cpu":1}]},"workloads":[]})";
  };
  const std::string good = " " + file("a.json", host("a")) + " " + file("b.json", host("b"));
  const auto rank = [&](const std::string& files) {
    return run_shell("berthctl rank --json --request " + request + " --snapshot" + files);
  };
  const auto fitting = [](const Ran& ran) { return json::parse(ran.out).at("fitting").size(); };
  // Of a file with a good and a bad document nothing counts, so another file may have that host.
  for (const std::string& bad : {host("c") + "{", host("b"), std::string("no JSON"), host("c") + host("a")}) {
    const Ran ran = rank(" " + file("a.json", host("a")) + " " + file("bad.json", bad) + good);
    EXPECT_EQ(ran.exit, 0) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("warning: left out: "));
    EXPECT_EQ(fitting(ran), 2U) << bad;
  }
  EXPECT_THAT(rank(good + " /no/such").err, HasSubstr("left out: cannot read /no/such"));
  expect_complaint(rank(" /no/such /nor/such"), 2, "cannot read /no/such");
}

TEST_F(Berthctl, ARequestLargerThanANodeGetsTheNearestNodesTogether) {
  const std::string request =
      file("request.json", R"({"schema":"berth.request/1","class":"best-effort","vcpus":4})");
  const std::string host =
      R"({"schema":"berth.snapshot/1","host":"a","topology":{"cpus":[{"cpu":0},{"cpu":1},{"cpu":2,"numa":1},)"
      R"({"cpu":3,"numa":1},{"cpu":4,"numa":2},{"cpu":5,"numa":2}],)"
      R"("numa_distances":{"nodes":"0-2","values":[[10,21,12],[21,10,21],[12,21,10]]}},"workloads":[]})";
  const std::string rank = "berthctl rank --request " + request + " --snapshot -";
  const Ran text = run_shell(rank, host);
  EXPECT_EQ(text.exit, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("Best: NUMA nodes 0,2 together, 12 apart; leaves 0 of 4 vCPUs"));
  EXPECT_THAT(text.out, HasSubstr("a NUMA node 1: asks 4 vCPUs; 2 of 2 are free"));
  const json best = json::parse(run_shell(rank + " --json", host).out).at("fitting").at(0);
  EXPECT_EQ(best.at("numa"), 0);
  EXPECT_EQ(best.at("numa_nodes"), "0,2");
  EXPECT_EQ(best.at("cpus"), "0-1,4-5");
}

// The host has the links of NVIDIA's cube mesh: NVLink inside each half of eight GPUs, and one to the other
// half.
TEST_F(Berthctl, RankSaysHowTheGpusOfAPlaceAreLinked) {
  const auto ranked = [&](int gpus, const std::string& option) {
    const std::string request =
        file("request.json", R"({"schema":"berth.request/1","class":"best-effort","vcpus":2,"gpus":)" +
                                 std::to_string(gpus) + "}");
    return run_shell("berthctl rank --request " + request + " --snapshot " + snapshot("gpu_links.json") +
                     option)
        .out;
  };
  EXPECT_THAT(ranked(4, ""), HasSubstr("GPUs that it gets, 2 of 4 vCPUs; all GPUs linked by NV; "));
  EXPECT_THAT(ranked(6, ""), HasSubstr("; of 15 pairs of GPUs 9 linked by NV, 6 linked by SYS; "));
  const json best = json::parse(ranked(6, " --json")).at("fitting").at(0);
  EXPECT_EQ(best.at("numa_nodes"), "0-1");
  EXPECT_EQ(best.at("gpu_links"), (json{{"NV", 9}, {"SYS", 6}}));
}

TEST_F(Berthctl, ARequestThatFitsNowhereIsRefusedWithTheReasonsShown) {
  const std::string request = file("request.json", R"({"schema":"berth.request/1","vcpus":500})");
  const Ran ran =
      run_shell("berthctl rank --request " + request + " --snapshot " + snapshot("two_sockets.json"));
  expect_complaint(ran, 3, "fits nowhere: 2 NUMA nodes on 1 host rejected");
  EXPECT_THAT(ran.out, HasSubstr("asks 500 vCPUs"));
}

TEST_F(Berthctl, AWrongRequestIsNamedByItsPath) {
  const std::string snapshots = " --snapshot " + snapshot("small.json");
  const auto rank = [&](const std::string& text) {
    return run_shell("berthctl rank --request " + file("request.json", text) + snapshots);
  };
  expect_complaint(rank(R"({"schema":"berth.request/1"})"), 2, "request.json: $.vcpus: missing");
  expect_complaint(rank(R"({"schema":"berth.request/1","vcpus":0})"), 2, "$.vcpus");
  expect_complaint(rank("{"), 2, "request.json");
  expect_complaint(run_shell("berthctl rank" + snapshots), 2, "--request");
  expect_complaint(run_shell("berthctl rank --request - --snapshot -"), 2, "one thing only");
  expect_complaint(run_shell("berthctl rank --request /no/such" + snapshots), 2, "/no/such");
}

}  // namespace berth::test
