// SPDX-License-Identifier: Apache-2.0
#include "model/learning.h"

#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::model {

using testing::HasSubstr;

namespace {

Observation observation() {
  return {.service = "web",
          .instance = "system.slice/web-1.service",
          .time = 1790000000.25,
          .response = Response::cpi,
          .y = 1.31,
          .sc = 0.42,
          .ss = 0.18,
          .llc = 2.5e6,
          .u = 0.4};
}

// Of two rows: (0.5, 0.2, 1e6; 1.5) and (0.1, 0.4, 3e6; 1.1).
LearnedSums sums() {
  LearnedSums sums;
  sums.time = 1790000000.5;
  sums.rows = {.n = 2,
               .x = {0.6, 0.6, 0},
               .xx = {0.26, 0.14, 0, 0.2, 0, 0},
               .xy = {0.86, 0.74, 0},
               .y = 2.6,
               .yy = 3.46};
  sums.llc_rows = sums.rows;
  sums.llc_rows.x[2] = 4e6;
  sums.llc_rows.xx = {0.26, 0.14, 8e5, 0.2, 1.4e6, 1e13};
  sums.llc_rows.xy[2] = 4.8e6;
  sums.level_u = 0.8;
  sums.level_sc = 0.6;
  sums.level_ss = 0.6;
  sums.spent = 1;
  sums.errors = {.n = 1,
                 .model = 0.01,
                 .fallback = 0.02,
                 .constant = 0.03,
                 .llc_n = 1,
                 .llc_without = 0.01,
                 .llc_with = 0.005};
  sums.rise = 3;
  sums.calm_error = 0.01;
  sums.calm_share = 0.1;
  sums.recent_error = 0.03;
  sums.strange = 2;
  sums.prior_dropped = true;
  sums.forgotten_at = 1789999999;
  return sums;
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const auto at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? text : text.replace(at, what.size(), by);
}

}  // namespace

TEST(ObservationJson, SurvivesBeingWritten) {
  auto seen = observation();
  EXPECT_EQ(*parse_observation(to_json(seen)), seen);
  seen.llc.reset();
  EXPECT_THAT(to_json(seen), HasSubstr(R"("llc":null)"));
  EXPECT_EQ(*parse_observation(to_json(seen)), seen);
}

TEST(ObservationJson, AFaultNamesItsPlace) {
  const std::string good = to_json(observation());
  const auto fault = [](const std::string& text) {
    const auto read = parse_observation(text);
    return read ? std::string("none") : read.error().message();
  };
  EXPECT_THAT(fault(replaced(good, "berth.observation/1", "berth.observation/2")),
              HasSubstr("$.schema: expected \"berth.observation/1\", found \"berth.observation/2\""));
  EXPECT_THAT(fault(replaced(good, "1.31", "NaN")), HasSubstr("NaN"));
  EXPECT_THAT(fault(replaced(good, "1.31", "1e999")), HasSubstr("$"));
  EXPECT_THAT(fault(replaced(good, "1.31", "-1")), HasSubstr("$.y"));
  EXPECT_THAT(fault(replaced(good, "0.42", "65")), HasSubstr("$.sc"));
  EXPECT_THAT(fault(replaced(good, "1790000000.25", "1790000000250")), HasSubstr("$.time"));
  EXPECT_THAT(fault(replaced(good, "\"web\"", "\"\"")), HasSubstr("$.service"));
  EXPECT_THAT(fault(replaced(good, "\"cpi\"", "\"latency\"")), HasSubstr("expected one of cpi, cost, cpu"));
  EXPECT_THAT(fault(replaced(good, "\"u\":0.4", "\"v\":0.4")), HasSubstr("$.u: missing"));
  EXPECT_EQ(fault(replaced(good, "\"u\":0.4", "\"u\":0.4,\"later\":1")), "none");
}

TEST(ObservationJson, NoLearningSeesFiguresThatNoHostShows) {
  EXPECT_FALSE(fault_of(observation()));
  auto seen = observation();
  seen.y = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(*fault_of(seen), HasSubstr("y is nan"));
  seen.y = 0;
  EXPECT_THAT(*fault_of(seen), HasSubstr("cpi is 0"));
  seen.response = Response::cpu;
  EXPECT_FALSE(fault_of(seen));
}

TEST(ProfilesJson, SurviveBeingWritten) {
  Profiles profiles{
      {{"web", Response::cpi}, sums()}, {{"web", Response::cost}, {}}, {{"db", Response::cpu}, {}}};
  const auto text = to_json(profiles, "host-1");
  EXPECT_THAT(text, HasSubstr(R"({"schema":"berth.profiles/1","host":"host-1","profiles":[{"service":"db")"));
  EXPECT_EQ(*parse_profiles(text), profiles);
  EXPECT_EQ(parse_profiles(to_json(Profiles{}, ""))->size(), 0U);
}

TEST(ProfilesJson, ADamagedOrNewerFileIsRefusedAsAWhole) {
  const std::string good = to_json(Profiles{{{"web", Response::cpi}, sums()}}, "h");
  const auto fault = [](const std::string& text) {
    const auto read = parse_profiles(text);
    return read ? std::string("none") : read.error().message();
  };
  EXPECT_EQ(fault(good), "none");
  EXPECT_THAT(fault(replaced(good, "profiles/1", "profiles/2")),
              HasSubstr("$.schema: expected \"berth.profiles/1\", found \"berth.profiles/2\""));
  EXPECT_THAT(fault(good.substr(0, good.size() / 2)), HasSubstr("line 1"));
  EXPECT_THAT(fault(""), HasSubstr("empty"));
  EXPECT_THAT(fault(replaced(good, "\"n\":2", "\"n\":-2")), HasSubstr("$.profiles[0].rows.n"));
  EXPECT_THAT(fault(replaced(good, "\"n\":2", "\"n\":1e300")), HasSubstr("$.profiles[0].rows.n"));
  EXPECT_THAT(fault(replaced(good, "\"yy\":3.46", "\"yy\":1")),
              HasSubstr("$.profiles[0].rows: no observations can have these sums"));
  EXPECT_THAT(fault(replaced(good, "[0.26,0.14,0,0.2,0,0]", "[0.26,0.14,0,-0.2,0,0]")),
              HasSubstr("no observations can have these sums"));
  EXPECT_THAT(fault(replaced(good, "[0.26,0.14,0,0.2,0,0]", "[0.26,0.14,0,0.2,0]")),
              HasSubstr("$.profiles[0].rows.xx: 5 numbers, not 6"));
  EXPECT_THAT(fault(replaced(good, "\"level\":[0.8,", "\"level\":[-0.8,")), HasSubstr("$.profiles[0].level"));
  EXPECT_THAT(fault(replaced(good, "\"web\"", "\"we\\u0007b\"")), HasSubstr("control character"));
  const auto one = good.substr(good.find("[{") + 1, good.rfind("]}") - good.find("[{") - 1);
  EXPECT_THAT(fault(replaced(good, one, one + "," + one)), HasSubstr("$.profiles[1]"));
}

TEST(ProfilesJson, MoreThanAThousandAreRefused) {
  Profiles profiles;
  for (std::size_t i = 0; i <= kMostProfiles; ++i) profiles[{std::to_string(i), Response::cpi}] = {};
  EXPECT_THAT(parse_profiles(to_json(profiles, "")).error().message(), HasSubstr("more than the 1000"));
  profiles.erase(profiles.begin());
  EXPECT_TRUE(parse_profiles(to_json(profiles, "")));
}

TEST(ModelJson, HasTheMembersOfItsPage) {
  LearnedModel model;
  model.service = "web";
  model.response = Response::cost;
  model.n = 412.5;
  model.accepted = true;
  model.why = "it fits";
  model.fit = LearnedModel::Fit{.b0 = 0.5,
                                .alone = 0.004,
                                .k1 = {.value = 0.25, .interval = Interval{0.2, 0.3}},
                                .k2 = {.value = 0.1, .interval = std::nullopt},
                                .k3 = std::nullopt};
  model.errors = ModelErrors{.model = 1, .fallback = 2, .constant = 3};
  EXPECT_EQ(to_json(model),
            R"({"schema":"berth.model/1","service":"web","response":"cost","n":412.5,"accepted":true,)"
            R"("why":"it fits","b0":0.5,"k1":0.25,"k2":0.1,"k3":null,"alone":0.004,)"
            R"("interval":{"k1":[0.2,0.3],"k2":null,"k3":null},"bounded":null,)"
            R"("error":{"model":1,"default":2,"constant":3}})");
  model.bounded = LearnedModel::Bounds{.k1 = 0.02, .k2 = 0.01};
  EXPECT_THAT(to_json(model), HasSubstr(R"("bounded":{"k1":0.02,"k2":0.01})"));
  model.fit.reset();
  model.errors.reset();
  EXPECT_THAT(to_json(model), HasSubstr(R"("b0":null,"k1":null,"k2":null,"k3":null,"alone":null)"));
  EXPECT_THAT(to_json(std::vector{model}),
              HasSubstr(R"({"schema":"berth.models/1","models":[{"service":"web")"));
}

}  // namespace berth::model
