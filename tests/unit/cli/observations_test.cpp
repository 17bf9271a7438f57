// SPDX-License-Identifier: Apache-2.0
// The real program: a recording becomes observations, and these become a model.
#include "program.h"
#include "tests/temporary_directory.h"
#include "tests/unit/policies/interference/simulated_host.h"
#include "tests/unit/trace/recorded.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace berth::test {

using model::Response;
using nlohmann::json;
using policies::testing::SimulatedHost;
using testing::HasSubstr;
using testing::StartsWith;

namespace {

std::string recording(Response response, int ticks) {
  SimulatedHost host(response);
  trace::test::InMemory trace(60);
  for (int i = 0; i < ticks; ++i) trace.add(host.tick());
  trace.end();
  return trace.bytes();
}

class ObservationsOfATrace : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& bytes) const {
    return directory_.write(name, bytes).string();
  }
  std::string path(const std::string& name) const { return (directory_.path() / name).string(); }
  static std::string text_of(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  TemporaryDirectory directory_;
};

}  // namespace

TEST_F(ObservationsOfATrace, LetFitFindTheCoefficientsOfTheHost) {
  for (const Response response : model::kResponses) {
    SCOPED_TRACE(to_string(response));
    const std::string trace = file(std::string(to_string(response)) + ".zst", recording(response, 500));
    const Ran ran =
        run_shell("berthctl replay " + trace + " --observations - | berthctl profile fit --json -");
    ASSERT_EQ(ran.exit, 0) << ran.err;
    ASSERT_EQ(lines_of(ran.out), 1) << ran.out;
    const json model = json::parse(ran.out);
    EXPECT_EQ(model["service"], "web");
    EXPECT_EQ(model["response"], to_string(response));
    EXPECT_EQ(model["accepted"], true) << ran.out;
    const double alone = model["b0"].get<double>();
    EXPECT_NEAR(model["k1"].get<double>() / alone, SimulatedHost::kSlowSc, 0.06) << ran.out;
    EXPECT_NEAR(model["k2"].get<double>() / alone, SimulatedHost::kSlowSs, 0.15) << ran.out;
  }
}

TEST_F(ObservationsOfATrace, AreWrittenToAFileWithAnAccount) {
  const std::string trace = file("a.zst", recording(Response::cpu, 50));
  const Ran ran = run_shell("berthctl replay " + trace + " --observations " + path("a.jsonl"));
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  EXPECT_THAT(ran.out, StartsWith("Observations of host-1, "));
  EXPECT_THAT(ran.out, HasSubstr(", 50 ticks\n"));
  EXPECT_THAT(ran.out, HasSubstr("- no cpi of web: no performance counter was read\n"));
  EXPECT_THAT(ran.out, HasSubstr("98 observations in " + path("a.jsonl")));
  const std::string lines = text_of(path("a.jsonl"));
  EXPECT_EQ(lines_of(lines), 98);
  const json first = json::parse(lines.substr(0, lines.find('\n')));
  EXPECT_EQ(first["schema"], "berth.observation/1");
  EXPECT_EQ(first["instance"], "web-1");
  EXPECT_EQ(first["response"], "cpu");

  // On standard output the lines stand alone.
  const Ran piped = run_shell("berthctl --json replay - --observations - <" + trace);
  EXPECT_EQ(piped.out, lines);
  EXPECT_THAT(piped.err, HasSubstr("98 observations in standard output"));

  const Ran document = run_shell("berthctl --json replay " + trace + " --observations " + path("b.jsonl"));
  const json told = json::parse(document.out);
  EXPECT_EQ(told["schema"], "berth.observed/1");
  EXPECT_EQ(told["host"], "host-1");
  EXPECT_EQ(told["ticks"], 50);
  EXPECT_EQ(told["missing"], 0);
  EXPECT_EQ(told["cut"], nullptr);
  EXPECT_EQ(told["file"], path("b.jsonl"));
  EXPECT_EQ(told["observations"], 98);
  EXPECT_EQ(
      told["services"],
      json::parse(R"([{"service":"web","response":"cpu","at_once":2,"observations":98,"with_llc":0}])"));
  EXPECT_EQ(told["lacks"].size(), 3U);
  EXPECT_EQ(text_of(path("b.jsonl")), lines);
}

TEST_F(ObservationsOfATrace, FollowTheSettings) {
  const std::string trace = file("a.zst", recording(Response::cpi, 3));
  const auto ss = [&](const std::string& options) {
    const Ran ran = run_shell("berthctl replay " + trace + " --observations - " + options);
    EXPECT_EQ(ran.exit, 0) << ran.err;
    return json::parse(ran.out.substr(0, ran.out.find('\n')))["ss"].get<double>();
  };
  EXPECT_NE(ss(""), ss("-o interference.shared_domain=socket"));
  EXPECT_EQ(ss("--config " + file("s.toml", "[interference]\nshared_domain = \"socket\"\n")),
            ss("-o interference.shared_domain=socket"));
}

TEST_F(ObservationsOfATrace, ThatIsCutAreThoseUpToTheCut) {
  const std::string whole = recording(Response::cpi, 200);
  const std::string all =
      run_shell("berthctl replay " + file("whole.zst", whole) + " --observations - 2>/dev/null").out;
  const Ran ran = run_shell("berthctl replay " + file("cut.zst", whole.substr(0, whole.size() / 2)) +
                            " --observations " + path("cut.jsonl"));
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("The trace ends early: the file is cut"));
  const std::string lines = text_of(path("cut.jsonl"));
  EXPECT_GT(lines.size(), all.size() / 4);
  EXPECT_LT(lines.size(), all.size());
  EXPECT_THAT(all, StartsWith(lines));
  EXPECT_EQ(lines.back(), '\n');

  std::string wrong = whole;
  wrong[whole.size() * 3 / 4] = static_cast<char>(wrong[whole.size() * 3 / 4] ^ 0x55);
  const Ran damaged = run_shell("berthctl --json replay " + file("wrong.zst", wrong) + " --observations " +
                                path("wrong.jsonl"));
  EXPECT_EQ(damaged.exit, 0) << damaged.err;
  EXPECT_TRUE(json::parse(damaged.out)["cut"].is_string()) << damaged.out;
  EXPECT_THAT(all, StartsWith(text_of(path("wrong.jsonl"))));
}

TEST_F(ObservationsOfATrace, WithoutAnySayWhy) {
  const Ran ran = run_shell("berthctl replay " + file("a.zst", trace::test::record(20)) + " --observations " +
                            path("none"));
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("- no workload was latency-sensitive\n0 observations in "));
}

TEST_F(ObservationsOfATrace, WrongUseIsOneLine) {
  const std::string trace = file("a.zst", recording(Response::cpi, 5));
  expect_complaint(run_shell("berthctl replay " + trace + " --observations " + trace), 2,
                   "replay --observations writes no file anew");
  EXPECT_EQ(run_shell("berthctl replay " + trace).exit, 0);
  expect_complaint(run_shell("berthctl replay " + trace + " --observations /no/such/place"), 2,
                   "cannot write /no/such/place");
  expect_complaint(run_shell("berthctl replay " + trace + " --observations - --report x.html"), 2,
                   "--report");
  expect_complaint(run_shell("berthctl replay " + trace + " --observations - -n 3"), 2, "-n");
  expect_complaint(run_shell("berthctl replay " + file("b.json", "{}") + " --observations " + path("b")), 2,
                   "no trace");
  EXPECT_FALSE(std::filesystem::exists(path("b")));
  expect_complaint(run_shell("berthctl replay " + trace + " --observations - >/dev/full"), 1,
                   "cannot write standard output: No space left");
}

}  // namespace berth::test
