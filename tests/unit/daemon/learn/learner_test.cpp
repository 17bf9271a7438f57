// SPDX-License-Identifier: Apache-2.0
#include "daemon/learn/learner.h"

#include "policies/interference/learning/learn.h"
#include "policies/interference/learning/sums.h"
#include "replay/observed.h"
#include "tests/temporary_directory.h"
#include "tests/unit/policies/interference/shared_host.h"
#include "tests/unit/policies/interference/simulated_host.h"
#include "tests/unit/policies/interference/simulated_service.h"
#include "tests/unit/trace/recorded.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace berth::daemon {

using model::Response;
using nlohmann::json;
using policies::testing::SharedHost;
using policies::testing::SimulatedService;
using ::testing::HasSubstr;

namespace {

const policies::InterferenceSettings kSettings;

// Sums of an accepted model.
model::Profiles learned_profiles(const std::string& service = "web") {
  SimulatedService simulated(Response::cpi, {}, 1, service);
  std::vector<model::Observation> all;
  for (int i = 0; i < 400; ++i) all.push_back(simulated.tick(1)[0]);
  return policies::learn_all(all, policies::learning_settings(kSettings)).profiles;
}

class LearnerTest : public testing::Test {
 protected:
  LearnerTest() { std::filesystem::create_directories(priors()); }
  std::filesystem::path state() const { return directory.path(); }
  std::filesystem::path priors() const { return directory.path() / "profiles.d"; }
  Learner open() {
    warnings.clear();
    return {state(), priors(), warnings};
  }
  static void write(const std::filesystem::path& file, const std::string& text) {
    std::ofstream(file) << text;
  }
  static json models(const Learner& learner) { return json::parse(learner.models_json(kSettings))["models"]; }

  berth::test::TemporaryDirectory directory;
  std::vector<std::string> warnings;
};

}  // namespace

TEST_F(LearnerTest, LearnsTickByTickAndUsesTheModelOnceItIsAccepted) {
  auto learner = open();
  EXPECT_TRUE(warnings.empty());
  SharedHost host;
  host.add("web-1", model::WorkloadClass::latency_sensitive, {0});
  host.add("batch", model::WorkloadClass::best_effort, {4});
  policies::testing::Draws draws(1);
  SimulatedService noise(Response::cpi, {}, 1);
  for (int i = 0; i < 400; ++i) {
    host.next();
    const double busy = draws.fraction();
    host.use("web-1", 0.2 + 0.1 * draws.fraction());
    host.use("batch", busy);
    host.of("web-1").cpi = 1.2 * (1 + 0.8 * busy) * (1 + 0.02 * noise.normal());
    EXPECT_TRUE(learner.take(host.snapshot, kSettings).empty());
    if (i == 100) {
      EXPECT_FALSE(learner.services().at("web").model);
      EXPECT_THAT(*learner.services().at("web").learned, HasSubstr("of 300 observations"));
    }
  }
  const auto& web = learner.services().at("web");
  ASSERT_TRUE(web.model);
  EXPECT_NEAR(web.model->k1, 0.8 * 0.25, 0.02);
  EXPECT_DOUBLE_EQ(web.model->k2, 0.1);  // no one else is in the cache, so the default counts
  EXPECT_THAT(*web.learned, HasSubstr("learned by cpi from"));

  ASSERT_TRUE(learner.wants_save(host.snapshot.time));
  ASSERT_TRUE(learner.save("host-1"));
  EXPECT_FALSE(learner.wants_save(host.snapshot.time + 1e6));
  const auto again = open();
  EXPECT_TRUE(warnings.empty());
  EXPECT_EQ(again.profiles_json("host-1"), learner.profiles_json("host-1"));
}

TEST_F(LearnerTest, LearnsNothingWhereThatIsOff) {
  auto learner = open();
  ASSERT_TRUE(learner.import(model::to_json(learned_profiles(), "")));
  SharedHost host;
  EXPECT_TRUE(learner.take(host.snapshot, kSettings).empty());
  EXPECT_EQ(learner.services().size(), 1U);
  auto off = kSettings;
  off.learn = false;
  const auto before = learner.generation();
  learner.take(host.snapshot, off);
  EXPECT_TRUE(learner.services().empty());
  EXPECT_NE(learner.generation(), before);
}

TEST_F(LearnerTest, ADamagedFileIsSaidAndSetAside) {
  write(state() / "profiles.json", "{\"schema\": \"berth.profiles/9\", \"profiles\": []}");
  write(priors() / "a.json", "nonsense");
  write(priors() / "b.json", model::to_json(learned_profiles(), ""));
  write(priors() / "notes.txt", "nonsense");
  const auto learner = open();
  ASSERT_EQ(warnings.size(), 2U);
  EXPECT_THAT(warnings[0], HasSubstr("profiles.json: $.schema: expected \"berth.profiles/1\""));
  EXPECT_THAT(warnings[1], HasSubstr("a.json"));
  ASSERT_EQ(models(learner).size(), 1U);
  EXPECT_EQ(models(learner)[0]["accepted"], true);
  EXPECT_EQ(json::parse(learner.profiles_json("h"))["profiles"].size(), 0U);
}

TEST_F(LearnerTest, ImportAddsAndForgetEnds) {
  auto learner = open();
  const auto text = model::to_json(learned_profiles(), "");
  ASSERT_TRUE(learner.import(text));
  const double once = models(learner)[0]["n"];
  ASSERT_TRUE(learner.import(text));
  EXPECT_NEAR(models(learner)[0]["n"].get<double>(), 2 * once, 1e-6);
  EXPECT_EQ(learner.import("{}").error().kind(), model::ErrorKind::invalid_input);
  EXPECT_EQ(learner.forget("other").error().kind(), model::ErrorKind::gone);
  ASSERT_TRUE(learner.forget("web"));
  EXPECT_TRUE(models(learner).empty());
  EXPECT_EQ(learner.forget("web").error().kind(), model::ErrorKind::gone);
}

TEST_F(LearnerTest, AForgottenServiceHasNoPriorEitherNowNorAfterARestart) {
  write(priors() / "a.json", model::to_json(learned_profiles(), ""));
  auto learner = open();
  EXPECT_EQ(models(learner)[0]["accepted"], true);
  ASSERT_TRUE(learner.forget("web"));
  EXPECT_EQ(models(learner)[0]["accepted"], false);
  ASSERT_TRUE(learner.save("h"));
  EXPECT_EQ(models(open())[0]["accepted"], false);
}

TEST_F(LearnerTest, KeepsAThousandProfilesAndNoMore) {
  auto learner = open();
  model::Profiles many;
  const auto sums = learned_profiles().begin()->second;
  for (std::size_t i = 0; i < model::kMostProfiles; ++i) {
    auto& one = many[{"s" + std::to_string(i), Response::cpi}] = sums;
    one.time = 1000 + static_cast<double>(i);
  }
  ASSERT_TRUE(learner.import(model::to_json(many, "")));
  EXPECT_EQ(learner.import(model::to_json(learned_profiles(), "")).error().kind(), model::ErrorKind::refused);
  SharedHost host;
  host.add("web-1", model::WorkloadClass::latency_sensitive, {0}).cpi = 1.2;
  for (int i = 0; i < 2; ++i) {
    host.next();
    host.use("web-1", 0.5);
    learner.take(host.snapshot, kSettings);
  }
  const auto profiles = *model::parse_profiles(learner.profiles_json("h"));
  EXPECT_EQ(profiles.size(), model::kMostProfiles);
  EXPECT_EQ(profiles.count({"web", Response::cpi}), 1U);
  EXPECT_EQ(profiles.count({"s0", Response::cpi}), 0U);  // the one not used for longest
}

TEST_F(LearnerTest, SaysOnceWhatIsSetAsideUntilATickIsGood) {
  auto learner = open();
  SharedHost host;
  host.add("web-1", model::WorkloadClass::latency_sensitive, {0});
  const auto tick = [&](double cpi) {
    host.next();
    host.use("web-1", 0.5);
    host.of("web-1").cpi = cpi;
    return learner.take(host.snapshot, kSettings);
  };
  tick(1);
  const auto said = tick(0);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0].workload, "web-1");
  EXPECT_THAT(said[0].text, HasSubstr("web-1 by cpi: set aside: cpi is 0"));
  EXPECT_TRUE(tick(0).empty());
  EXPECT_TRUE(tick(1).empty());
  EXPECT_EQ(tick(0).size(), 1U);
}

// What the daemon learned can be learned again from a trace of its ticks, to the last bit.
TEST_F(LearnerTest, ATraceOfItsTicksTeachesTheSame) {
  for (const Response response : model::kResponses) {
    SCOPED_TRACE(to_string(response));
    std::filesystem::remove(state() / "profiles.json");
    auto learner = open();
    policies::testing::SimulatedHost host(response);
    trace::test::InMemory trace(60);
    for (int i = 0; i < 200; ++i) {
      const auto& snapshot = host.tick();
      EXPECT_TRUE(learner.take(snapshot, kSettings).empty());
      trace.add(snapshot);
    }
    trace.end();
    auto reader = trace::Reader::open(trace::test::source_of(trace.bytes()));
    ASSERT_TRUE(reader);
    replay::Observed observed;
    std::vector<model::Observation> all;
    while (reader->next()) {
      for (const auto& seen : observed.take(reader->snapshot(), kSettings.shared_domain))
        all.push_back(model::parse_observation(model::to_json(seen)).value());
    }
    EXPECT_EQ(observed.ticks(), 200U);
    EXPECT_GE(all.size(), 394U);
    const auto learned = policies::learn_all(all, policies::learning_settings(kSettings));
    EXPECT_TRUE(learned.messages.empty());
    EXPECT_EQ(model::to_json(learned.profiles, "host-1"), learner.profiles_json("host-1"));
  }
}

}  // namespace berth::daemon
