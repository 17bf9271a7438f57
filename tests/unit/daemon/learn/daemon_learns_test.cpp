// SPDX-License-Identifier: Apache-2.0
// Learned models reach the plan, and outlive the daemon.
#include "model/learning.h"
#include "policies/interference/learning/learn.h"
#include "tests/patience.h"
#include "tests/unit/daemon/daemon_fixture.h"
#include "tests/unit/policies/interference/simulated_service.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::daemon {

using nlohmann::json;
using ::testing::HasSubstr;

namespace {

class DaemonLearns : public test::DaemonFixture {
 protected:
  static std::string profiles() {
    policies::testing::SimulatedService web(model::Response::cpi, {}, 1);
    std::vector<model::Observation> all;
    for (int i = 0; i < 400; ++i) all.push_back(web.tick(1)[0]);
    return model::to_json(policies::learn_all(all, {}).profiles, "");
  }
  json instance() {
    return json::parse(daemon->control().plan_json())["findings"]["interference"]["instances"]["web/a"];
  }
};

}  // namespace

TEST_F(DaemonLearns, AnImportedModelIsUsedExplainedAndKept) {
  load_node();
  configure("mode = \"enforce\"\n");
  start();
  tick();
  EXPECT_EQ(instance()["model"], "default");
  ASSERT_TRUE(daemon->control().import_profiles(profiles()));
  tick();
  tick();
  EXPECT_EQ(instance()["model"], "fitted");
  EXPECT_THAT(instance()["model_reason"].get<std::string>(), HasSubstr("learned by cpi from"));
  const auto explained = json::parse(*daemon->control().explain_json("web/a"));
  EXPECT_THAT(explained.dump(), HasSubstr("learned by cpi from"));
  const auto services = json::parse(daemon->control().snapshot_json())["services"];
  EXPECT_GT(services["web"]["model"]["k1"].get<double>(), 0);
  EXPECT_EQ(json::parse(daemon->control().models_json())["models"][0]["accepted"], true);

  daemon->stop();
  daemon.reset();
  start();
  tick();
  tick();
  EXPECT_EQ(instance()["model"], "fitted");
  ASSERT_TRUE(daemon->control().forget_profile("web"));
  tick();
  tick();
  EXPECT_EQ(instance()["model"], "default");
  EXPECT_EQ(daemon->control().forget_profile("web").error().kind(), model::ErrorKind::gone);
  daemon->stop();
}

TEST_F(DaemonLearns, LearnsFromTheUseOfTwoInstances) {
  load_node();
  configure("");
  start();
  // Readings that follow each other at once make no sample, so the number of ticks is not known.
  json read;
  int ticks = 0;
  ASSERT_TRUE(test::eventually([&] {
    node.use_cpu("web/a", 0.001 * ticks);
    node.use_cpu("web/b", 0.002 * ticks);
    ++ticks;
    tick();
    read = json::parse(daemon->control().profiles_json())["profiles"];
    return !read.empty() && read[0]["rows"]["n"].get<double>() >= 3.9;
  }));
  ASSERT_EQ(read.size(), 1U);
  EXPECT_EQ(read[0]["service"], "web");
  EXPECT_EQ(read[0]["response"], "cpu");
  EXPECT_GE(read[0]["rows"]["n"].get<double>(), 3.9);
}

}  // namespace berth::daemon
