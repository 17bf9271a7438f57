// SPDX-License-Identifier: Apache-2.0
// Learned models reach the plan, and outlive the daemon.
#include "daemon/learned.h"
#include "daemon/ledger/overrides.h"
#include "model/json.h"
#include "model/learning.h"
#include "os/log.h"
#include "policies/interference/learning/learn.h"
#include "replay/observed.h"
#include "tests/patience.h"
#include "tests/unit/daemon/daemon_fixture.h"
#include "tests/unit/policies/interference/simulated_service.h"
#include "trace/recorder.h"
#include "trace/ticks.h"

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
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
  // Follows the daemon by the calls of the bus, as berthctl record --observations does. Its observations
  // teach what the daemon learned.
  void record_beside(const std::string& mode) {
    load_node();
    configure("mode = \"" + mode + "\"\n");
    start();
    const auto status = json::parse(daemon->control().status_json());
    EXPECT_EQ(status["interference"], json::parse(R"({"learn": true, "shared_domain": "llc"})"));
    const int history = node.settings().history;
    trace::Ticks ticks(history);
    replay::Observed observed;
    std::vector<model::Observation> all;
    auto recorder = trace::Recorder::begin(
        [&](std::string_view line) {
          const auto kind = model::trace_line_of(line);
          if (kind != model::TraceLine::snapshot && kind != model::TraceLine::change)
            return model::Result<void>();
          auto taken = ticks.take(*kind, line);
          if (!taken) return taken;
          for (auto& seen : observed.take(ticks.snapshot(), model::DomainKind::llc))
            all.push_back(std::move(seen));
          return taken;
        },
        {"0.1.0", "", 1, history});
    ASSERT_TRUE(recorder);
    int count = 0;
    // Readings that follow each other at once make no sample, so the number of ticks is not known.
    ASSERT_TRUE(test::eventually([&] {
      node.use_cpu("web/a", 0.003 * count);
      node.use_cpu("web/b", 0.002 * count + 0.001 * (count % 3));
      node.use_cpu("batch/x", 0.02 * count);
      ++count;
      tick();
      const bool whole = recorder->wants_whole(recorder->last_time() + 1);
      const auto text = whole ? daemon->control().snapshot_json()
                              : daemon->control().snapshot_since_json(recorder->last_time());
      const auto added = recorder->add(model::parse_snapshot(text).value().snapshot, text, whole);
      if (!added || *added != trace::Recorder::Added::tick)
        throw std::runtime_error("the tick was not taken");
      return all.size() >= 20;
    }));
    const auto learned =
        policies::learn_all(all, policies::learning_settings(node.settings().policies.interference));
    const std::string host = json::parse(daemon->control().snapshot_json())["host"];
    EXPECT_EQ(json::parse(model::to_json(learned.profiles, host)),
              json::parse(daemon->control().profiles_json()));
    daemon->stop();
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

// Documents are made once a tick, and these change between two.
TEST_F(DaemonLearns, ImportedAndForgottenProfilesShowAtOnce) {
  load_node();
  configure("");
  start();
  tick();
  const auto profiles_now = [this] { return json::parse(daemon->control().profiles_json())["profiles"]; };
  const auto models_now = [this] { return json::parse(daemon->control().models_json())["models"]; };
  EXPECT_TRUE(profiles_now().empty());
  EXPECT_TRUE(models_now().empty());
  ASSERT_TRUE(daemon->control().import_profiles(profiles()));
  EXPECT_FALSE(profiles_now().empty());
  EXPECT_FALSE(models_now().empty());
  ASSERT_TRUE(daemon->control().forget_profile("web"));
  EXPECT_TRUE(profiles_now().empty());
  EXPECT_TRUE(models_now().empty());
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

TEST_F(DaemonLearns, ProgressThatFallsIsSaidIfTheJournalMayHaveIt) {
  node.add_group("web/a");
  configure("");
  const auto setup = find_setup(node.options(), node.settings(), clock());
  ASSERT_TRUE(setup);
  const auto observer = Observer::start(node.hierarchy(), node.settings().rules, node.proc(), node.sys(), 60);
  ASSERT_TRUE(observer);
  std::optional<std::string> warning;
  const Overrides overrides(node.runtime_dir(), warning);
  Learned learned(**setup, **observer);
  (*observer)->take_changes();
  const std::uint64_t run = (*observer)->found().at("web/a").cgroup->id();
  int ticks = 0;
  // What is said once progress has fallen.
  const auto said = [&](bool may_announce) {
    bool asked = false;
    testing::internal::CaptureStderr();
    os::setup_log();
    // Readings that follow each other at once make no sample, so the number of ticks is not known.
    EXPECT_TRUE(test::eventually([&] {
      ++ticks;
      now = now + 1;
      node.use_cpu("web/a", 0.001 * ticks);
      (void)(*observer)->progress().add("web/a", run, now, 0.9 / ticks);
      (void)(*observer)->read(now);
      (*observer)->assemble({.overrides = overrides});
      (void)learned.learn(
          [&](const std::string& workload) {
            asked = workload == "web/a";
            return may_announce;
          },
          true);
      return asked;
    }));
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(said(false), "");
  EXPECT_THAT(said(true), HasSubstr("web/a: its progress fell from "));
}

TEST_F(DaemonLearns, ARecorderSeesTheSameObservationsInObserveMode) { record_beside("observe"); }
TEST_F(DaemonLearns, ARecorderSeesTheSameObservationsInEnforceMode) { record_beside("enforce"); }

TEST_F(DaemonLearns, NothingIsLearnedInATrial) {
  load_node();
  configure("");
  start();
  int count = 0;
  const auto work = [&] {
    node.use_cpu("web/a", 0.003 * count);
    node.use_cpu("web/b", 0.002 * count + 0.001 * (count % 3));
    node.use_cpu("batch/x", 0.02 * count);
    ++count;
    tick();
    return json::parse(daemon->control().profiles_json())["profiles"];
  };
  ASSERT_TRUE(test::eventually([&] { return !work().empty(); }));
  begin_trial("b", 1000);
  const json before = json::parse(daemon->control().profiles_json())["profiles"];
  for (int i = 0; i < 50; ++i) EXPECT_EQ(work(), before);
  ASSERT_TRUE(daemon->control().end_trial(test::kTrialCaller.key, false));
  EXPECT_TRUE(test::eventually([&] { return work() != before; }));
}

}  // namespace berth::daemon
