// SPDX-License-Identifier: Apache-2.0
#include "cli/render.h"

#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::cli {
namespace {

using ::testing::HasSubstr;

Document in_use(bool learns) {
  const auto workloads = Document::parse(R"({"workloads":[
    {"id":"web/1","class":"latency-sensitive","service":"web"},
    {"id":"web/2","class":"latency-sensitive","service":"web"},
    {"id":"job","class":"best-effort","service":"job"}]})");
  const auto models = Document::parse(R"({"models":[
    {"service":"web","response":"cpu","accepted":false,"why":"12 of 300 observations"},
    {"service":"web","response":"cpi","accepted":true,"why":"its errors are below"}]})");
  return models_in_use(workloads, models, learns);
}

std::string shown(const Document& in_use) {
  std::ostringstream out;
  render_models_in_use(out, in_use, {});
  return out.str();
}

TEST(ModelsInUse, AServiceUsesItsAcceptedModel) {
  const auto used = in_use(true);
  ASSERT_EQ(used["services"].size(), 1U);
  EXPECT_EQ(used["services"][0]["instances"], 2);
  EXPECT_EQ(used["services"][0]["origin"], "fitted");
  EXPECT_EQ(used["services"][0]["model"]["response"], "cpi");
  EXPECT_THAT(shown(used), HasSubstr("web: "));
}

TEST(ModelsInUse, NoneIsUsedWhereNothingIsLearned) {
  const auto used = in_use(false);
  EXPECT_EQ(used["services"][0]["origin"], "default");
  EXPECT_TRUE(used["services"][0]["model"].is_null());
  EXPECT_THAT(shown(used), HasSubstr("interference.learn is false, so no learned model is used"));
}

}  // namespace
}  // namespace berth::cli
