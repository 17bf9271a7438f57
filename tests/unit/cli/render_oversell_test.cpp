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

std::string text_of(const model::OversellFindings& findings) {
  std::ostringstream out;
  render_oversell(out, findings, {});
  return out.str();
}

TEST(RenderOversell, MarksTheChosenVictimWhereverItIsInTheOrder) {
  model::OversellFindings findings;
  findings.memory.state = model::SchedulingState::evict;
  findings.evict_count = 1;
  findings.order = {"small", "large"};
  findings.chosen = {"large"};
  const std::string text = text_of(findings);
  EXPECT_THAT(text, ContainsRegex("1 +small"));
  EXPECT_THAT(text, ContainsRegex("2 +\\* +large"));
  EXPECT_THAT(text, HasSubstr("With oversell.evict = true berth evicts those marked * next"));
  EXPECT_THAT(text, Not(HasSubstr("The first")));
}

TEST(RenderOversell, PromisesNoEvictionIfNoneIsChosen) {
  model::OversellFindings findings;
  findings.memory.state = model::SchedulingState::evict;
  findings.order = {"spared"};
  EXPECT_THAT(text_of(findings), Not(HasSubstr("marked *")));
}

}  // namespace
}  // namespace berth::cli
