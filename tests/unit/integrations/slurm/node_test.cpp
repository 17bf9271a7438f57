// SPDX-License-Identifier: Apache-2.0
#include "integrations/slurm/node.h"

#include "tests/unit/integrations/slurm/shown_node.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::slurm {
namespace {

using test::shown;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string error_of(const std::string& text) {
  const auto node = parse_node(text, "n1");
  return node ? "" : node.error().message();
}

TEST(SlurmNode, IsReadAsScontrolShowsIt) {
  const auto node =
      parse_node(shown({.gres = "gpu:tesla:2(S:0,1),becpu:8",
                        .state = "MIXED+DRAIN+DYNAMIC_NORM",
                        .weight = "4294967295",
                        .tail = "   Reason=berth: cpu no-schedule [sic] [root@2026-11-24T22:48:27]\n"
                                "   Comment=hello world\n"
                                "   Extra={\"a\":1,\"b\":\"y z\"}\n"}),
                 "n1");
  ASSERT_TRUE(node) << node.error().message();
  EXPECT_EQ(node->name, "n1");
  EXPECT_EQ(node->base_state, "MIXED");
  EXPECT_THAT(node->flags, ElementsAre("DRAIN", "DYNAMIC_NORM"));
  EXPECT_TRUE(node->drained());
  EXPECT_TRUE(node->takes_no_work());
  EXPECT_EQ(node->weight, 4294967295U);
  EXPECT_THAT(node->gres, ElementsAre("gpu:tesla:2(S:0,1)", "becpu:8"));
  EXPECT_EQ(node->version, (Version{22, 5}));
  EXPECT_EQ(node->reason, "berth: cpu no-schedule [sic]");
  EXPECT_EQ(node->extra, "{\"a\":1,\"b\":\"y z\"}");
}

TEST(SlurmNode, LacksWhatIsNotShown) {
  auto text = shown({.gres = "(null)"});
  const auto at = text.find(" Version=22.05.8");
  text.erase(at, std::string(" Version=22.05.8").size());
  const auto node = parse_node(text, "n1");
  ASSERT_TRUE(node) << node.error().message();
  EXPECT_THAT(node->gres, IsEmpty());
  EXPECT_EQ(node->version, std::nullopt);
  EXPECT_EQ(node->reason, std::nullopt);
  EXPECT_EQ(node->extra, std::nullopt);
  EXPECT_FALSE(node->takes_no_work());
}

TEST(SlurmNode, BelievesNoFigureOfAFreeText) {
  // An operator's comment, and the name of the operating system in every answer here.
  const auto node = parse_node(
      shown(
          {.tail =
               "   Comment=hello\n   State=DOWN ThreadsPerCore=2 Weight=7\n   Gres=gpu:9\n   NodeName=x\n"}),
      "n1");
  ASSERT_TRUE(node) << node.error().message();
  EXPECT_EQ(node->base_state, "IDLE");
  EXPECT_EQ(node->weight, 1U);
  EXPECT_THAT(node->gres, ElementsAre("becpu:8"));
}

TEST(SlurmNode, DoesNotGuessWhichOfTwoTextsIsTheReal) {
  const auto node =
      parse_node(shown({.state = "IDLE+DRAIN",
                        .tail = "   Reason=disk broken\n   Reason=berth: mine [root@2026-11-24T22:48:27]\n"
                                "   Extra={}\n   Extra={\"a\":1}\n"}),
                 "n1");
  ASSERT_TRUE(node) << node.error().message();
  EXPECT_EQ(node->reason, std::nullopt);
  EXPECT_EQ(node->extra, std::nullopt);
  EXPECT_FALSE(node->extra_is_clear);
}

TEST(SlurmNode, KnowsStatesWithSigns) {
  for (const auto& [state, base] :
       {std::pair("IDLE*", "IDLE"), {"DOWN*", "DOWN"}, {"IDLE~", "IDLE"}, {"IDLE#", "IDLE"}}) {
    const auto node = parse_node(shown({.state = state}), "n1");
    ASSERT_TRUE(node) << node.error().message();
    EXPECT_EQ(node->base_state, base);
  }
  EXPECT_TRUE(parse_node(shown({.state = "DOWN+DRAIN*"}), "n1")->drained());
  EXPECT_TRUE(parse_node(shown({.state = "IDLE+FAIL"}), "n1")->takes_no_work());
  EXPECT_TRUE(parse_node(shown({.state = "DOWN"}), "n1")->takes_no_work());
  EXPECT_FALSE(parse_node(shown({.state = "DOWN"}), "n1")->drained());
}

TEST(SlurmNode, RefusesOtherAnswers) {
  EXPECT_THAT(error_of(""), HasSubstr("another node"));
  EXPECT_THAT(error_of(shown({.name = "n2"})), HasSubstr("another node"));
  EXPECT_THAT(error_of(shown({.name = "n1,n2"})), HasSubstr("another node"));
  EXPECT_THAT(error_of(shown({.weight = "-1"})), HasSubstr("no Weight"));
  EXPECT_THAT(error_of(shown({.weight = "4294967296"})), HasSubstr("no Weight"));
  EXPECT_THAT(error_of(shown({.state = ""})), HasSubstr("no State"));
  EXPECT_THAT(error_of(shown({.gres = "gpu:1,,becpu:2"})), HasSubstr("no list"));
  EXPECT_THAT(error_of(shown({.gres = "gpu:1(S:0"})), HasSubstr("no list"));
  EXPECT_THAT(error_of(shown({.gres = "gpu:1)"})), HasSubstr("no list"));
  EXPECT_THAT(error_of(shown({.gres = "gpu:1 State=DOWN"})), HasSubstr("characters"));
  EXPECT_THAT(error_of(shown({.gres = "gpu:\"1"})), HasSubstr("characters"));
  EXPECT_THAT(error_of(shown({.gres = "gpu:\xc3\xa9"})), HasSubstr("characters"));
  EXPECT_THAT(error_of(shown({.tail = "   Comment=" + std::string(kMaxLineBytes, 'x')})),
              HasSubstr("longer than"));
  std::string many = "a:1";
  for (std::size_t i = 0; i < kMaxGresEntries; ++i) many += ",a:1";
  EXPECT_THAT(error_of(shown({.gres = many})), HasSubstr("more than 256"));
}

TEST(SlurmNode, TakesNoNameOfSeveralNodes) {
  for (const char* good : {"n1", "node-7.example.org", "N_1", "0"})
    EXPECT_EQ(why_no_node_name(good), std::nullopt) << good;
  for (const char* bad : {"", "n[1-3]", "n1,n2", "ALL", "all", "All", "n 1", "n1;reboot", "$(x)", "-n", ".n",
                          "n=1", "n\n", "n\xc3\xa9"})
    EXPECT_NE(why_no_node_name(bad), std::nullopt) << bad;
  EXPECT_EQ(why_no_node_name(std::string(255, 'n')), std::nullopt);
  EXPECT_NE(why_no_node_name(std::string(256, 'n')), std::nullopt);
}

}  // namespace
}  // namespace berth::slurm
