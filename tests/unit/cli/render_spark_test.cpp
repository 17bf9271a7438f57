// SPDX-License-Identifier: Apache-2.0
#include "cli/render_plan.h"

#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

std::string list_of(const model::EvictionFindings& findings) {
  std::ostringstream out;
  render_spark_list(out, findings, {});
  return out.str();
}

TEST(RenderSpark, SaysThatThereIsNone) {
  EXPECT_EQ(list_of({}), "No Spark applications: no driver on this host reports one.\n");
}

TEST(RenderSpark, ShowsTheFigureThatTheOrderGoesBy) {
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
  model::EvictionFindings findings;
  findings.rank = "loss-per-byte";
  findings.order = {"e", "d"};
  findings.candidates["e"] = {.kind = model::EvictionCandidate::Kind::executor,
                              .app = "app-1",
                              .cost_s = 20,
                              .frees_bytes = 2 * kGiB,
                              .rank_key = 7.25 / kGiB,
                              .reason = {}};
  findings.candidates["d"] = {
      .kind = model::EvictionCandidate::Kind::driver, .app = "app-1", .cost_s = 40, .reason = {}};
  const std::string text = list_of(findings);
  EXPECT_THAT(text, ContainsRegex("COST +FREES +LOSS/GIB"));
  EXPECT_THAT(text, ContainsRegex("e +executor +app-1 +20.0 s +2.0 GiB +7.25 s"));
  EXPECT_THAT(text, ContainsRegex("d +driver +app-1 +40.0 s +- +-"));
  findings.rank = "cost-per-byte";
  EXPECT_THAT(list_of(findings), ContainsRegex("FREES +RANK/GIB"));
  findings.rank = "cost";
  findings.candidates["e"].rank_key = 40;
  EXPECT_THAT(list_of(findings), ContainsRegex("FREES +RANK *\n.*2.0 GiB +40.0 s"));
}

TEST(RenderSpark, NamesWhoIsSparedAndWhy) {
  model::EvictionFindings findings;
  findings.reason = "nothing is missing";
  findings.spared = {{"worker.service", "its cgroup is shared by\x1b[2J others"}};
  const std::string text = list_of(findings);
  EXPECT_THAT(text, HasSubstr("there is no best-effort workload to evict"));
  EXPECT_THAT(text, HasSubstr("worker.service is spared: its cgroup is shared by"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b"))) << "nothing reaches the terminal as it came";
}

TEST(RenderSpark, OfManyThatAreSparedNamesTheFirst) {
  model::EvictionFindings findings;
  for (int i = 10; i < 30; ++i) findings.spared.emplace("w" + std::to_string(i), "is shared");
  const std::string text = list_of(findings);
  EXPECT_THAT(text, HasSubstr("w14 is spared"));
  EXPECT_THAT(text, Not(HasSubstr("w15")));
  EXPECT_THAT(text, HasSubstr("and 15 more that are spared"));
}

}  // namespace
}  // namespace berth::cli
