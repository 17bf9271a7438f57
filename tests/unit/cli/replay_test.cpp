// SPDX-License-Identifier: Apache-2.0
// The real program replays traces; none of it needs a daemon.
#include "cli/progress_bar.h"
#include "program.h"
#include "tests/unit/trace/recorded.h"

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

class ReplayCommand : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "replay-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string file(const std::string& name, const std::string& bytes) const {
    std::ofstream(directory_ / name, std::ios::binary) << bytes;
    return (directory_ / name).string();
  }
  std::string text_of(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(directory_ / name).rdbuf();
    return text.str();
  }
  std::filesystem::path directory_;
};

TEST_F(ReplayCommand, ShowsDecisionsAndFigures) {
  const std::string trace = file("a.zst", trace::test::record(100));
  const Ran ran = run_shell("berthctl replay " + trace);
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  EXPECT_THAT(ran.out, StartsWith("Replay of node-a, "));
  EXPECT_THAT(ran.out, HasSubstr("100 ticks"));
  EXPECT_THAT(ran.out, HasSubstr("interference score, mean"));
  EXPECT_THAT(ran.out, HasSubstr("The load is as recorded"));
  EXPECT_EQ(run_shell("berthctl replay - <" + trace).out, ran.out);
}

TEST_F(ReplayCommand, ComparesTwoConfigurations) {
  const std::string trace = file("a.zst", trace::test::record(100));
  const std::string other = file("other.toml", "[oversell]\nstop_threshold = 0.1\n");
  const Ran ran = run_shell("berthctl replay " + trace + " --compare " + other);
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("A: the default settings"));
  EXPECT_THAT(ran.out, HasSubstr("B: settings of " + other));
  EXPECT_THAT(ran.out, HasSubstr("only B"));
  EXPECT_THAT(ran.out, HasSubstr("B - A"));
  const json document = json::parse(run_shell("berthctl replay --json " + trace + " --compare " + other).out);
  EXPECT_EQ(document["schema"], "berth.replay/1");
  EXPECT_EQ(document["ticks"], 100);
  EXPECT_EQ(document["cut"], nullptr);
  ASSERT_EQ(document["sides"].size(), 2U);
  EXPECT_EQ(document["sides"][0]["figures"]["time_s"], 99.0);
  EXPECT_GT(document["sides"][1]["figures"]["closed_s"], document["sides"][0]["figures"]["closed_s"]);
  EXPECT_GT(document["differences"]["all"], 0);
  EXPECT_EQ(document["differences"]["first"][0]["side"], 1);
  // The same settings decide the same.
  const std::string same = file("same.toml", "");
  const json twice = json::parse(run_shell("berthctl replay --json " + trace + " --compare " + same).out);
  EXPECT_EQ(twice["differences"]["all"], 0);
  EXPECT_EQ(twice["sides"][0]["figures"], twice["sides"][1]["figures"]);
}

TEST_F(ReplayCommand, WritesAReport) {
  const std::string trace = file("a.zst", trace::test::record(100));
  const std::string page = (directory_ / "out.html").string();
  const Ran ran = run_shell("berthctl replay " + trace + " --report " + page);
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("The report is in " + page));
  EXPECT_THAT(text_of("out.html"), StartsWith("<!DOCTYPE html>"));
  expect_complaint(run_shell("berthctl replay " + trace + " --report /no/such/place.html"), 2,
                   "cannot write");
  expect_complaint(run_shell("berthctl replay " + trace + " --report -"), 2, "a file of its own");
}

TEST_F(ReplayCommand, ThePageShowsWhatTrialAndBlameMeasured) {
  const std::string trace = file("a.zst", trace::test::record(20));
  const json figure{{"service", "web"}, {"figure", "runq-p99"}, {"unit", "us"},       {"pairs", 7},
                    {"a", 400.0},       {"b", 100.0},           {"relative", true},   {"change", -0.75},
                    {"low", -0.8},      {"high", -0.7},         {"difference", true}, {"better", "b"}};
  const std::string trial = file("trial.json", json{{"schema", "berth.trial/1"},
                                                    {"a", "observe.toml"},
                                                    {"b", "enforce.toml"},
                                                    {"windows", 14},
                                                    {"figures", {figure}}}
                                                   .dump());
  const auto blamed = [&](const std::string& service) {
    return file(service + ".json", json{{"schema", "berth.blame/1"},
                                        {"service", service},
                                        {"time", 1764421200},
                                        {"seconds", 60},
                                        {"waited_ms", 400},
                                        {"culprits",
                                         {{{"kind", "cgroup"}, {"name", "<b>crowd"}, {"ms", 300}},
                                          {{"kind", "quota"}, {"name", nullptr}, {"ms", 100}}}}}
                                       .dump());
  };
  const std::string page = (directory_ / "page.html").string();
  const std::string replayed = "berthctl replay " + trace;
  const Ran ran = run_shell("TZ=Asia/Tokyo " + replayed + " --report " + page + " --measured " + trial +
                            " --measured " + blamed("web") + " --measured " + blamed("database"));
  EXPECT_EQ(ran.exit, 0) << ran.err;
  const std::string html = text_of("page.html");
  for (const char* part : {"trial of a (observe.toml) and b (enforce.toml)", "-75.0 %", "-80.0 % to -70.0 %",
                           "a difference: b is better", "waits of web", "waits of database", "&lt;b&gt;crowd",
                           "2025-11-29 12:59:00 to 2025-11-29 13:00:00 UTC", "75 %", "width:75.0%",
                           "none: its quota was used up"})
    EXPECT_THAT(html, HasSubstr(part));
  // Another document costs no replay, and leaves no page.
  const std::string other = (directory_ / "other.html").string();
  for (const std::string& wrong : {trace, file("snapshot.json", R"({"schema": "berth.snapshot/1"})")}) {
    expect_complaint(run_shell(replayed + " --report " + other + " --measured " + wrong), 2,
                     "berthctl trial --json");
  }
  EXPECT_FALSE(std::filesystem::exists(other));
  expect_complaint(run_shell(replayed + " --measured " + trial), 2, "--report");
}

TEST_F(ReplayCommand, ThePageReplacesNoFileAndFollowsNoLink) {
  const std::string trace = file("a.zst", trace::test::record(100));
  const std::string other = file("other", "as it was");
  const std::string link = (directory_ / "link.html").string();
  std::filesystem::create_symlink(other, link);
  const std::string dangling = (directory_ / "dangling.html").string();
  std::filesystem::create_symlink(directory_ / "made", dangling);
  for (const std::string& taken : {other, link, dangling}) {
    expect_complaint(run_shell("berthctl replay " + trace + " --report " + taken), 2, "writes no file anew");
  }
  EXPECT_EQ(text_of("other"), "as it was");
  EXPECT_FALSE(std::filesystem::exists(directory_ / "made"));
}

TEST_F(ReplayCommand, SaysWhereATraceEndsEarly) {
  const std::string whole = trace::test::record(100);
  const std::string cut = file("cut.zst", whole.substr(0, whole.size() / 2));
  const Ran ran = run_shell("berthctl replay " + cut);
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("The trace ends early: "));
  const json document = json::parse(run_shell("berthctl replay --json " + cut).out);
  EXPECT_THAT(document["cut"].get<std::string>(), HasSubstr("ticks, at 20"));
  EXPECT_LT(document["ticks"], 100);
}

TEST_F(ReplayCommand, RefusesWhatIsNoTrace) {
  expect_complaint(run_shell("berthctl replay " + file("a.json", "{}")), 2, "no trace");
  expect_complaint(run_shell("berthctl replay " + file("empty", "")), 2, "the file is empty");
  expect_complaint(run_shell("berthctl replay /no/such/file"), 2, "/no/such/file");
  expect_complaint(run_shell("berthctl replay -o nonsense=1 " + file("a.zst", trace::test::record(3))), 2,
                   "nonsense");
  for (const char* twice :
       {"- --config -", "- --compare -", "x.zst --config - --compare -", "- --report x.html --measured -",
        "x.zst --report x.html --measured - --measured -"})
    expect_complaint(run_shell(std::string("berthctl replay ") + twice), 2, "standard input");
}

TEST(ProgressLine, FitsTheTerminal) {
  EXPECT_EQ(cli::progress_line(0, "x", 80), "[                              ]   0 %  x");
  EXPECT_EQ(cli::progress_line(1, "x", 80), "[##############################] 100 %  x");
  EXPECT_EQ(cli::progress_line(7, "x", 10), "[#########");
}

}  // namespace berth::test
