// SPDX-License-Identifier: Apache-2.0
#include "cli/render_trial.h"

#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using trial::Figure;

class RenderTrial : public testing::Test {
 protected:
  RenderTrial() {
    measured.pace = *trial::make_pace(10 * 40, 20, 1);
    measured.order = trial::make_order(10, 4);
    for (int i = 0; i < 10; ++i) {
      const double drift = 1 + 0.01 * i;
      trial::Figures a{{{"", Figure::runq_p99}, 200 * drift}, {{"web", Figure::throttled}, 0.0}};
      trial::Figures b{{{"", Figure::runq_p99}, 100 * drift}, {{"web", Figure::throttled}, 0.0}};
      measured.blocks.push_back({a, b});
    }
    shown.files = {"a.toml", "b.toml"};
    shown.differs = {{{"key", "mode"}, {"a", "\"observe\""}, {"b", "\"enforce\""}}};
    shown.seed = 42;
  }
  void finish() {
    result = trial::evaluate(measured, shown.seed);
    shown.measured = &measured;
    shown.result = &result;
  }
  std::string text() {
    finish();
    std::ostringstream out;
    render_trial(out, shown, {});
    return out.str();
  }
  Document document() {
    finish();
    return trial_document(shown);
  }

  trial::Measured measured;
  trial::Result result;
  ShownTrial shown;
};

TEST_F(RenderTrial, ADifferenceSaysWhichSideIsBetter) {
  const std::string said = text();
  EXPECT_THAT(said, HasSubstr("20 of 20 windows of 20 s, of which 15 s count; seed 42"));
  EXPECT_THAT(said, HasSubstr("mode: a \"observe\", b \"enforce\""));
  EXPECT_THAT(said, ContainsRegex("host. +runq-p99 .us. +209 +104.5 +-50.0 %  -50.0 % to -50.0 %"));
  EXPECT_THAT(said, HasSubstr("a difference: b is better"));
  EXPECT_THAT(said, ContainsRegex("web +throttled .*no difference shown"));
  EXPECT_THAT(said, HasSubstr("The settings are as before."));
  EXPECT_THAT(said, Not(HasSubstr("ended early")));
}

TEST_F(RenderTrial, TheDocumentHasEveryFigure) {
  const Document document = this->document();
  EXPECT_EQ(document["schema"], "berth.trial/1");
  EXPECT_EQ(document["a"], "a.toml");
  EXPECT_EQ(document["differs"][0]["key"], "mode");
  EXPECT_EQ(document["order"].size(), 20U);
  EXPECT_EQ(document["windows"], 20);
  EXPECT_EQ(document["complete"], true);
  EXPECT_TRUE(document["ended"].is_null());
  EXPECT_TRUE(document["kept"].is_null());
  ASSERT_EQ(document["figures"].size(), 2U);
  const Document& row = document["figures"][0];
  EXPECT_TRUE(row["service"].is_null());
  EXPECT_EQ(row["figure"], "runq-p99");
  EXPECT_EQ(row["pairs"], 10);
  EXPECT_EQ(row["relative"], true);
  EXPECT_NEAR(row["change"].get<double>(), -0.5, 1e-9);
  EXPECT_EQ(row["difference"], true);
  EXPECT_EQ(row["better"], "b");
  const Document& other = document["figures"][1];
  EXPECT_EQ(other["service"], "web");
  EXPECT_EQ(other["difference"], false);
  EXPECT_TRUE(other["better"].is_null());
}

TEST_F(RenderTrial, AnEarlyEndIsSaid) {
  measured.interrupted = true;
  measured.blocks.resize(2);
  EXPECT_THAT(text(), HasSubstr("It ended early: a signal ended it"));
  EXPECT_THAT(text(), HasSubstr("too few windows"));
  const Document document = this->document();
  EXPECT_EQ(document["complete"], false);
  EXPECT_EQ(document["windows"], 4);
  EXPECT_EQ(document["ended"], "a signal ended it");
}

TEST_F(RenderTrial, WithoutABlockThereIsNoTable) {
  measured.interrupted = true;
  measured.blocks.clear();
  EXPECT_THAT(text(), HasSubstr("Nothing was measured"));
  EXPECT_TRUE(document()["figures"].empty());
}

TEST_F(RenderTrial, KeptSettingsAndTheirEndAreSaid) {
  shown.kept = trial::Side::b;
  EXPECT_THAT(text(), HasSubstr("The settings of b stay in force until berthctl reload"));
  EXPECT_THAT(text(), HasSubstr("copy b.toml into the directory"));
  EXPECT_EQ(document()["kept"], "b");
  shown.kept.reset();
  shown.not_kept = "no difference is shown in cpi of the host";
  EXPECT_THAT(text(), HasSubstr("Nothing is kept: no difference is shown in cpi of the host"));
  EXPECT_EQ(document()["not_kept"], *shown.not_kept);
}

TEST_F(RenderTrial, WhatIsNotKnownToBeUndoneIsSaid) {
  shown.not_undone = "It is not known yet";
  EXPECT_THAT(text(), HasSubstr("It is not known yet"));
  EXPECT_THAT(text(), Not(HasSubstr("as before")));
}

TEST_F(RenderTrial, NamesOfServicesCannotPlayWithTheTerminal) {
  for (auto& [a, b] : measured.blocks) a[{"\x1b[2J", Figure::cpi}] = b[{"\x1b[2J", Figure::cpi}] = 1;
  EXPECT_THAT(text(), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace berth::cli
