// SPDX-License-Identifier: Apache-2.0
// The real program: what it prints, and its exit status, without a daemon.
#include "program.h"

#include "tests/paths.h"
#include "tests/temporary_directory.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace berth::test {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

class Berthctl : public testing::Test {
 protected:
  void SetUp() override {
    setenv("DBUS_SYSTEM_BUS_ADDRESS", ("unix:path=" + directory_.path().string() + "/no-bus").c_str(), 1);
  }

  std::string file(const std::string& name, const std::string& text) const {
    return directory_.write(name, text).string();
  }

  static std::string snapshot(const char* name) { return std::string(BERTH_SNAPSHOTS) + "/" + name; }

  TemporaryDirectory directory_;
};

TEST_F(Berthctl, SaysItsVersion) {
  const Ran ran = run_shell("berthctl --version");
  EXPECT_EQ(ran.exit, 0);
  EXPECT_THAT(ran.out, StartsWith("berthctl "));
  EXPECT_EQ(ran.err, "");
}

TEST_F(Berthctl, HelpIsForPeopleWhoAsk) {
  const Ran ran = run_shell("berthctl --help");
  EXPECT_EQ(ran.exit, 0);
  EXPECT_THAT(ran.out, StartsWith("Usage: berthctl COMMAND"));
  EXPECT_EQ(run_shell("berthctl plan --help").exit, 0);
}

TEST_F(Berthctl, HelpFitsATerminalOf24RowsAnd80Columns) {
  std::string commands = run_shell("berthctl --help | grep -oP '(?<=  )[a-z][a-z-]*(?= +[A-Z])'").out;
  EXPECT_GT(lines_of(commands), 15);
  std::istringstream names("--help\n" + commands);
  for (std::string name; std::getline(names, name);) {
    const std::string help = run_shell("berthctl " + (name == "--help" ? name : name + " --help")).out;
    EXPECT_LT(lines_of(help), 24) << "and the prompt has no row: " << name;
    std::istringstream lines(help);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << name << ": " << line;
  }
}

TEST_F(Berthctl, AMistypedWordIsUnderstood) {
  expect_complaint(run_shell("berthctl stauts"), 2, "no command \"stauts\"; did you mean status? (");
  expect_complaint(run_shell("berthctl tpo"), 2, "did you mean top?");
  expect_complaint(run_shell("berthctl check"), 2, "did you mean check-config?");
  expect_complaint(run_shell("berthctl plan --snapshto x"), 2, "did you mean --snapshot?");
  expect_complaint(run_shell("berthctl --jsn list"), 2, "did you mean --json?");
  EXPECT_EQ(run_shell("berthctl frobnicate").err.find("did you mean"), std::string::npos);
}

// On a terminal of 24 rows, whose line ends are "\r\n".
class BerthctlOnATerminal : public Berthctl {
 protected:
  static std::string shown(const std::string& command, const std::string& settings) {
    const Ran ran =
        run_shell("unset NO_COLOR SUDO_UID PKEXEC_UID LESS PAGER; export TERM=xterm; " + settings +
                  "script -qec \"stty rows 24 cols 80; " BERTHCTL " " + command + "\" /dev/null < /dev/null");
    EXPECT_EQ(ran.exit, 0) << ran.out;
    return ran.out;
  }
};

TEST_F(BerthctlOnATerminal, LongOutputGoesToThePager) {
  const std::string plan = "plan --snapshot " + snapshot("worked_example.json");
  EXPECT_GT(lines_of(run_shell("berthctl " + plan).out), 24);
  EXPECT_THAT(shown(plan, "PAGER='sed s/^/paged:/' "), StartsWith("paged:"));
  EXPECT_THAT(shown(plan, "PAGER='echo $LESS; cat' "), StartsWith("FRX\r\n"));
  EXPECT_THAT(shown(plan, "LESS=R PAGER='echo $LESS; cat' "), StartsWith("R\r\n"));
  for (const char* none :
       {"PAGER= ", "PAGER=cat ", "TERM=dumb PAGER='sed s/^/paged:/' ", "PAGER=/no/such/pager "}) {
    const std::string text = shown(plan, none);
    EXPECT_THAT(text, HasSubstr("Score of the node")) << none;
    EXPECT_EQ(text.find("paged:"), std::string::npos) << none;
  }
  EXPECT_EQ(shown(plan + " --no-pager", "PAGER='sed s/^/paged:/' ").find("paged:"), std::string::npos);
  EXPECT_EQ(shown("--no-pager " + plan, "PAGER='sed s/^/paged:/' ").find("paged:"), std::string::npos);
}

TEST_F(BerthctlOnATerminal, APagerThatEndsEarlyIsNoFailure) {
  EXPECT_EQ(shown("topology --json --synthetic 'package:4 l3:1 core:512 pu:2'", "PAGER=true "), "");
}

TEST_F(BerthctlOnATerminal, ShortOutputAndHelpNeedNoPager) {
  const std::string pager = "PAGER='sed s/^/paged:/' ";
  EXPECT_EQ(shown("topology --synthetic pu:2", pager).find("paged:"), std::string::npos);
  EXPECT_THAT(shown("--help", pager), StartsWith("Usage:"));
}

TEST_F(BerthctlOnATerminal, WithBorrowedRightsThePagerRunsNoPrograms) {
  const std::string plan = "plan --snapshot " + snapshot("worked_example.json");
  const auto bin = directory_.path() / "bin";
  std::filesystem::create_directories(bin);
  std::ofstream(bin / "less") << "#!/bin/sh\necho secure=$LESSSECURE open=$LESSOPEN\ncat\n";
  std::filesystem::permissions(bin / "less", std::filesystem::perms(0755));
  const std::string text = shown(
      plan, "SUDO_UID=12345 LESSOPEN='|/tmp/x' PAGER='sed s/^/paged:/' PATH=" + bin.string() + ":$PATH ");
  EXPECT_THAT(text, StartsWith("secure=1 open=\r\n"));
}

TEST_F(BerthctlOnATerminal, ColoursAreForThoseWhoWantThem) {
  const std::string plan = "plan --no-pager --snapshot " + snapshot("worked_example.json");
  EXPECT_NE(shown(plan, "").find("\x1b[1m"), std::string::npos);
  EXPECT_NE(shown(plan, "NO_COLOR= ").find("\x1b[1m"), std::string::npos) << "an empty one says nothing";
  EXPECT_EQ(shown(plan, "NO_COLOR=1 ").find('\x1b'), std::string::npos);
}

TEST_F(Berthctl, WrongUseIsOneLine) {
  expect_complaint(run_shell("berthctl"), 2, "--help");
  expect_complaint(run_shell("berthctl frobnicate"), 2, "frobnicate");
  expect_complaint(run_shell("berthctl plan --frobnicate"), 2, "--frobnicate");
  expect_complaint(run_shell("berthctl mode"), 2, "mode");
  expect_complaint(run_shell("berthctl mode panic"), 2, "there are observe and enforce");
  expect_complaint(run_shell("berthctl log -n 0"), 2, "-n");
  expect_complaint(run_shell("berthctl log -n many"), 2, "many");
  expect_complaint(run_shell("berthctl top --interval soon"), 2, "not a duration");
  expect_complaint(run_shell("berthctl top --interval 50ms"), 2, "from 100ms to 1h");
  expect_complaint(run_shell("berthctl top --interval 2h"), 2, "from 100ms to 1h");
  expect_complaint(run_shell("berthctl top -n 0"), 2, "-n");
  expect_complaint(run_shell("berthctl top --once -n 2"), 2, "--once");
  expect_complaint(run_shell("berthctl set web"), 2, "settings");
  expect_complaint(run_shell("berthctl set web vcpus"), 2, "KEY=VALUE");
  expect_complaint(run_shell("berthctl set web color=red"), 2, "class, service, vcpus");
  expect_complaint(run_shell("berthctl set web vcpus=1 vcpus=2"), 2, "given twice");
  expect_complaint(run_shell("berthctl topology --xml a --synthetic b"), 2, "--xml");
  expect_complaint(run_shell("berthctl progress web"), 2, "fraction");
  expect_complaint(run_shell("berthctl progress web 2"), 2, "neither a fraction");
  expect_complaint(run_shell("berthctl progress web 3/2"), 2, "neither a fraction");
  expect_complaint(run_shell("berthctl explain"), 2, "subject");
  expect_complaint(run_shell("berthctl explain web --config x"), 2, "--config needs --snapshot");
  expect_complaint(run_shell("berthctl explain web --snapshot x --since 1h"), 2, "a file has no log");
  expect_complaint(run_shell("berthctl log --since soon"), 2, "\"soon\" is no time");
  expect_complaint(run_shell("berthctl log --kind pni"), 2, "did you mean pin?; there are pin, unpin");
  expect_complaint(run_shell("berthctl watch --policy sprak"), 2, "did you mean spark?");
  expect_complaint(run_shell("berthctl serve --listen 0.0.0.0:8472"), 2,
                   "put a web server with TLS before it");
  expect_complaint(run_shell("berthctl serve --domain x..y"), 2, "each of its parts");
  expect_complaint(run_shell("berthctl serve --domain kubernetes.io"), 2, "keeps this domain for itself");
  for (const char* address : {"127.0.0.1:0", "127.0.0.1:99999", "run/socket", "localhost:8472"}) {
    const std::string said = run_shell(std::string("berthctl serve --listen ") + address).err;
    EXPECT_THAT(said, testing::Not(HasSubstr("TLS"))) << said;
    EXPECT_THAT(said, HasSubstr(" is not ")) << said;
  }
  expect_complaint(run_shell("berthctl serve --snapshots 10.0.0.1:8473"), 2, "is not a loopback address");
  expect_complaint(run_shell("berthctl log --workload $'\\xff'"), 2, "is not a workload's id");
}

TEST_F(Berthctl, WithoutADaemonSaysWhatToDo) {
  for (const char* command :
       {"status", "list", "top", "top --json", "snapshot", "plan", "mode enforce", "set web vcpus=2",
        "reload", "log", "log --since 1h", "watch", "metrics", "progress self 0.5", "explain web"}) {
    expect_complaint(run_shell(std::string("berthctl ") + command), 4, "systemctl start berthd");
  }
}

TEST_F(Berthctl, PlansAGivenSnapshot) {
  const Ran ran = run_shell("berthctl plan --snapshot " + snapshot("worked_example.json"));
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("Score of the node"));
}

TEST_F(Berthctl, RanksTheHostsOfGivenSnapshots) {
  const std::string request =
      file("request.json", R"({"schema":"berth.request/1","vcpus":2,"memory_request_bytes":1048576})");
  const std::string rank = "berthctl rank --request " + request + " --snapshot ";
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

TEST_F(Berthctl, ExplainsAWorkloadOfAGivenSnapshot) {
  const std::string explain = "berthctl explain --snapshot " + snapshot("worked_example.json");
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
  const std::string config = file("berth.toml", "[interference.default_model]\nk1 = 0.7\n");
  const std::string text = file("s.json",
                                R"({"schema":"berth.snapshot/1","topology":{"cpus":[{"cpu":0},{"cpu":1}]},
       "workloads":[{"id":"a","class":"latency-sensitive","vcpus":1}]})");
  const Ran ran = run_shell("berthctl explain a --json --snapshot " + text + " --config " + config);
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(json::parse(ran.out).at("workload").at("pin").at("k1"), 0.7);
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
  // The worked example of docs/decisions/stragglers.md and lending.md.
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
  const std::string learned = "berthctl plan --policy spark --snapshot " + snapshot("spark.json");
  // The demand has made a step, and the step is over.
  EXPECT_THAT(run_shell(learned).out, HasSubstr("nothing is missing"));
  const std::string plan = learned + " -o spark.forecast=published -o spark.delta=1";
  const std::string text = run_shell(plan).out;
  EXPECT_THAT(text, HasSubstr("1.032 GiB is missing"));
  EXPECT_THAT(text, HasSubstr("With spark.evict = true berth evicts them"));
  EXPECT_THAT(text, HasSubstr("Memory, and the order of eviction\n"));
  // Where nothing is missing, others than Spark's are not priced, and it says so.
  const std::string enough = run_shell(plan + " -o spark.z=0 -o spark.reserve=0.01").out;
  EXPECT_THAT(enough, HasSubstr("Memory, and the order of eviction of Spark's workloads\n"));
  EXPECT_THAT(enough, ::testing::Not(HasSubstr("backup")));
  // The worked example of docs/decisions/eviction-cost.md and eviction-order.md.
  const auto spark = [](const Ran& ran) { return json::parse(ran.out).at("findings").at("spark"); };
  const json given = spark(run_shell(plan + " --json"));
  EXPECT_EQ(given.at("order"), (json{"spark/ml/1", "spark/etl/2", "spark/etl/1", "spark/etl/driver",
                                     "system.slice/backup.service"}));
  EXPECT_EQ(given.at("victims").size(), 1U);
  EXPECT_NEAR(given.at("apps").at("app-etl").at("cost").get<double>(), 33.0923, 1e-3);
  EXPECT_NEAR(given.at("apps").at("app-ml").at("remaining").get<double>(), 29400, 1e-6);
  const json published =
      spark(run_shell(plan + " --json -o spark.complexity=mean-of-ratios -o spark.rank=cost"));
  EXPECT_NEAR(published.at("apps").at("app-etl").at("computation").get<double>(), 44.6667, 1e-3);
  // One that has to be kept free twice: more victims.
  EXPECT_EQ(spark(run_shell(plan + " --json -o spark.reserve=0.2")).at("victims").size(), 3U);
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
                   "there is no policy \"magic\"; there are interference, straggler, spark");
  expect_complaint(run_shell(plan + " -o interference.weighing=request"), 2, "weighing");
  expect_complaint(run_shell(plan + " -o interference.window_step=many"), 2, "window_step");
  expect_complaint(run_shell(plan + " -o nonsense"), 2, "nonsense");
  expect_complaint(run_shell(plan + " --config " + file("bad.toml", "[interference]\nwindow_step = 0\n")), 2,
                   "bad.toml:2:");
  expect_complaint(run_shell(plan + " --config /no/such/file"), 2, "/no/such/file");
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

TEST_F(Berthctl, DrawsTopologies) {
  const Ran drawn = run_shell("berthctl topology --synthetic 'package:2 l3:1 core:2 pu:2'");
  EXPECT_EQ(drawn.exit, 0) << drawn.err;
  EXPECT_THAT(drawn.out, HasSubstr("socket 1"));
  const Ran printed = run_shell("berthctl topology --json --synthetic 'package:2 l3:1 core:2 pu:2'");
  EXPECT_EQ(json::parse(printed.out).at("schema"), "berth.topology/1");
  EXPECT_EQ(json::parse(printed.out).at("cpus").size(), 8U);
  EXPECT_EQ(run_shell("berthctl topology").exit, 0);
}

TEST_F(Berthctl, WrongTopologiesAreNamed) {
  expect_complaint(run_shell("berthctl topology --synthetic nonsense"), 2, "nonsense");
  expect_complaint(run_shell("berthctl topology --xml /no/such.xml"), 2, "/no/such.xml");
}

TEST_F(Berthctl, ChecksConfigurations) {
  const Ran good = run_shell("berthctl check-config " + file("good.toml", "mode = \"enforce\"\n"));
  EXPECT_EQ(good.exit, 0) << good.err;
  EXPECT_THAT(good.out, HasSubstr("good.toml: valid"));
  EXPECT_THAT(good.out, HasSubstr("mode enforce"));
  expect_complaint(run_shell("berthctl check-config " + file("bad.toml", "mode = \"observe\"\nmodee = 1\n")),
                   2, "bad.toml:2:");
  expect_complaint(run_shell("berthctl check-config /no/such.toml"), 2, "/no/such.toml");
  expect_complaint(run_shell("berthctl check-config -", "mode = [\n"), 2, "standard input:");
}

TEST_F(Berthctl, ChecksAlsoWhatTheUnitForbids) {
  const std::string path = file("unit.toml",
                                "[[workload]]\nmatch = \"a\"\nprogress = {file = \"/home/a/p\"}\n"
                                "[metrics]\nlisten = \"/tmp/m.sock\"\n");
  const Ran ran = run_shell("berthctl check-config " + path);
  expect_complaint(ran, 2,
                   "unit.toml: metrics.listen: \"/tmp/m.sock\": berthd.service has a /tmp of its own");
  EXPECT_THAT(ran.err, HasSubstr("1 more of this kind"));
  EXPECT_EQ(run_shell("berthctl check-config --no-unit " + path).exit, 0);
}

TEST_F(Berthctl, SuggestsAConfigurationThatItsCheckAccepts) {
  const Ran made = run_shell("berthctl suggest --for 100ms");
  if (made.exit == 1 && made.err.find("is no cgroup v2 tree") != std::string::npos) GTEST_SKIP() << made.err;
  EXPECT_EQ(made.exit, 0) << made.err;
  EXPECT_EQ(made.err, "");
  EXPECT_THAT(made.out, StartsWith("# A first configuration for "));
  EXPECT_EQ(run_shell("berthctl check-config -", made.out).exit, 0);
  EXPECT_TRUE(json::parse(run_shell("berthctl suggest --json --for 100ms").out).contains("toml"));
  expect_complaint(run_shell("berthctl suggest --for soon"), 2, "not a duration");
  expect_complaint(run_shell("berthctl suggest --for 2h"), 2, "from 100ms to 1h");
}

TEST_F(Berthctl, ChecksConfigurationsInJson) {
  const Ran bad = run_shell("berthctl check-config --json " + file("bad.toml", "modee = 1\n"));
  EXPECT_EQ(bad.exit, 2);
  const json document = json::parse(bad.out);
  EXPECT_EQ(document.at("valid"), false);
  EXPECT_THAT(document.at("error").get<std::string>(), HasSubstr("modee"));
}

TEST_F(Berthctl, RestoreWithoutADaemonRunsBerthd) {
  const auto bin = directory_.path() / "bin";
  const auto sbin = directory_.path() / "sbin";
  std::filesystem::create_directories(bin);
  std::filesystem::create_directories(sbin);
  std::filesystem::copy_file(BERTHCTL, bin / "berthctl");
  std::ofstream(sbin / "berthd") << "#!/bin/sh\necho \"$@\"\nexit 1\n";
  std::filesystem::permissions(sbin / "berthd", std::filesystem::perms(0755));
  const Ran ran = run_shell((bin / "berthctl").string() + " restore --json -- --state-dir /elsewhere");
  EXPECT_EQ(ran.out, "--restore --json --state-dir /elsewhere\n");
  EXPECT_EQ(ran.exit, 1);
  EXPECT_EQ(run_shell((bin / "berthctl").string() + " restore").out, "--restore\n");
}

TEST_F(Berthctl, AClosedPipeEndsItWithoutAWord) {
  const Ran ran = run_shell(
      // More than a pipe holds.
      "berthctl topology --synthetic 'package:4 l3:1 core:512 pu:2' --json | head -c 10; "
      "exit ${PIPESTATUS[0]}");
  EXPECT_EQ(ran.exit, 128 + SIGPIPE);
  EXPECT_EQ(ran.err, "");
}

TEST_F(Berthctl, AFullDiskIsAFailure) {
  for (const char* command : {"--help", "--version", "plan --help", "topology --synthetic pu:2"}) {
    expect_complaint(run_shell(std::string("berthctl ") + command + " > /dev/full"), 1,
                     "cannot write the output");
  }
}

TEST_F(Berthctl, AnUnknownOptionIsNamed) {
  expect_complaint(run_shell("berthctl --jsn"), 2, "--jsn");
  expect_complaint(run_shell("berthctl --jsn list"), 2, "--jsn");
  expect_complaint(run_shell("berthctl list --jsn"), 2, "--jsn");
}

TEST_F(Berthctl, ArgumentsThatNoBusCarriesAreNamed) {
  expect_complaint(run_shell("berthctl set web service=$'\\xff'"), 2, "service=");
  expect_complaint(run_shell("berthctl set $'w\\xff' vcpus=1"), 2, "is not a workload's id");
  expect_complaint(run_shell("berthctl set '' vcpus=1"), 2, "is not a workload's id");
}

TEST_F(Berthctl, WhatIsQuotedInAComplaintIsBounded) {
  const Ran ran = run_shell("berthctl set web $(printf 'a%.0s' {1..100000})=1");
  expect_complaint(ran, 2, "there is no setting");
  EXPECT_LT(ran.err.size(), 1100U);
  EXPECT_THAT(ran.err, HasSubstr("evictable")) << "what helps is still there";
}

TEST_F(Berthctl, RestoreTakesNothingButOptionsOfTheDaemon) {
  expect_complaint(run_shell("berthctl restore foo"), 2, "foo");
  const auto bin = directory_.path() / "bin";
  std::filesystem::create_directories(bin);
  std::filesystem::copy_file(BERTHCTL, bin / "berthctl");
  expect_complaint(run_shell((bin / "berthctl").string() + " restore -- --state-dir /x"), 1, "not installed");
}

TEST_F(Berthctl, TheFileToCheckHasAName) {
  expect_complaint(run_shell("berthctl check-config ''"), 2, "empty");
  const Ran ran = run_shell("berthctl check-config -", "mode = \"observe\"\n");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.out, StartsWith("standard input: valid"));
}

TEST_F(Berthctl, ReadsATopologyFromStandardInput) {
  // In lines, as hwloc writes it: without its plugin for libxml2 it reads nothing else.
  const std::string xml =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
      R"(<topology version="2.0">)"
      R"(<object type="Machine" os_index="0" cpuset="0x1" complete_cpuset="0x1" )"
      R"(allowed_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" allowed_nodeset="0x1" gp_index="1">)"
      R"(<object type="NUMANode" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" )"
      R"(complete_nodeset="0x1" gp_index="4" local_memory="1024"/>)"
      R"(<object type="Package" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" )"
      R"(complete_nodeset="0x1" gp_index="2"><object type="Core" os_index="0" cpuset="0x1" )"
      R"(complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="3">)"
      R"(<object type="PU" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" )"
      R"(complete_nodeset="0x1" gp_index="5"/></object></object></object></topology>)";
  const Ran ran = run_shell("berthctl topology --xml - --json", xml);
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(json::parse(ran.out).at("cpus").size(), 1U);
  expect_complaint(run_shell("berthctl topology --xml -", "nonsense"), 2, "standard input");
}

TEST_F(Berthctl, NoColourWhereNobodyLooks) {
  EXPECT_EQ(
      run_shell("TERM=xterm berthctl plan --snapshot " + snapshot("worked_example.json")).out.find('\x1b'),
      std::string::npos);
}

}  // namespace berth::test
