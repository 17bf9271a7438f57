// SPDX-License-Identifier: Apache-2.0
#include "policies/decide.h"
#include "policies/explain.h"
#include "policies/interference/policy.h"
#include "tests/unit/policies/hosts.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::policies {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace {

constexpr float kLong_us = 20000;

// Three ticks, a second apart, up to time 1000.
void use(model::Workload& workload, double cores, float delay_us) {
  std::vector<model::UsageSample> samples;
  for (int i = 0; i < 3; ++i) {
    model::UsageSample sample;
    sample.time = 998 + i;
    sample.cpu_cores = cores;
    sample.runq_latency_us = delay_us;
    samples.push_back(sample);
  }
  workload.usage = samples;
}

// Eight vCPUs: web owns 0-1 and waits for vCPUs for longer than 5 ms.
class Waiting : public ::testing::Test {
 protected:
  Waiting() {
    settings_.interference.max_runq_latency_s = 0.005;
    settings_.safety.repin_cooldown_s = 10;
    auto web = testing::pinned(testing::latency_sensitive("web", 2), "0-1");
    use(web, 0.4, kLong_us);
    web.pinned_at = 900;
    snapshot_.workloads = {testing::best_effort("batch", 2), web};
    use(snapshot_.workloads[0], 2, 0);
    snapshot_.workloads[0].cpus = testing::cpus("2-7");
  }
  model::Workload& batch() { return snapshot_.workloads[0]; }
  model::Workload& web() { return snapshot_.workloads[1]; }
  model::Plan plan() const { return decide(snapshot_, settings_, {"interference"}); }
  static std::vector<std::string> pins_of(const model::Plan& plan, const std::string& id) {
    std::vector<std::string> list;
    for (const std::string& pin : testing::pins(plan)) {
      if (pin.rfind(id + "=", 0) == 0) list.push_back(pin);
    }
    return list;
  }

  PolicySettings settings_;
  model::Snapshot snapshot_ = testing::snapshot_of(
      testing::host({.sockets = 1, .llcs_per_socket = 1, .cores_per_llc = 4, .threads_per_core = 2}));
};

TEST_F(Waiting, NothingIsJudgedWithoutALimit) {
  settings_.interference.max_runq_latency_s = 0;
  EXPECT_THAT(plan().findings.interference->waiting, IsEmpty());
}

TEST_F(Waiting, AllOfTheLastThreeSamplesMustBeAboveTheLimitAndNewerThanThePin) {
  EXPECT_EQ(plan().findings.interference->waiting.count("web"), 1U);
  web().pinned_at = 998;
  EXPECT_THAT(plan().findings.interference->waiting, IsEmpty());
  web().pinned_at = 997;
  EXPECT_EQ(plan().findings.interference->waiting.count("web"), 1U);
  testing::change_samples(web(), [](auto& samples) { samples[1].runq_latency_us = 4000.0F; });
  EXPECT_THAT(plan().findings.interference->waiting, IsEmpty());
  testing::change_samples(web(), [](auto& samples) { samples[1].runq_latency_us = {}; });
  EXPECT_THAT(plan().findings.interference->waiting, IsEmpty());
}

TEST_F(Waiting, AnInstanceWithoutAPinIsNotJudged) {
  web().cpus = {};
  EXPECT_THAT(plan().findings.interference->waiting, IsEmpty());
}

TEST_F(Waiting, ItsOwnQuotaIsTheFirstCauseAndNothingIsDone) {
  use(web(), 2, kLong_us);
  web().cpu_throttled = 0.2;
  const auto result = plan();
  const auto& found = result.findings.interference->waiting.at("web");
  EXPECT_EQ(found.cause, model::WaitCause::quota);
  EXPECT_EQ(found.vcpus, 0);
  EXPECT_THAT(found.reason, HasSubstr("20 %"));
  EXPECT_NEAR(found.runq_latency_s, 0.02, 1e-6);
  EXPECT_THAT(pins_of(result, "web"), IsEmpty());
}

TEST_F(Waiting, ABusyInstanceGetsAnotherVcpuAndKeepsItWhileItNeedsIt) {
  use(web(), 1.9, kLong_us);
  auto result = plan();
  EXPECT_EQ(result.findings.interference->waiting.at("web").cause, model::WaitCause::vcpus);
  EXPECT_EQ(result.findings.interference->waiting.at("web").vcpus, 3);
  ASSERT_THAT(pins_of(result, "web"), ElementsAre(HasSubstr("web=0-")));
  testing::apply(result, snapshot_);
  EXPECT_EQ(web().cpus.size(), 3U);
  // It waits no more, and needs them.
  use(web(), 1.9, 100);
  web().pinned_at = 990;
  EXPECT_THAT(plan().findings.interference->waiting, IsEmpty());
  EXPECT_THAT(pins_of(plan(), "web"), IsEmpty());
  // Two vCPUs do.
  use(web(), 1.5, 100);
  result = plan();
  testing::apply(result, snapshot_);
  EXPECT_EQ(web().cpus.size(), 2U);
}

TEST_F(Waiting, ItNeverOwnsMoreThanTwiceWhatItDeclaresOrThanItsQuota) {
  web() = testing::pinned(web(), "0-3");
  use(web(), 4, kLong_us);
  auto found = plan().findings.interference->waiting.at("web");
  EXPECT_EQ(found.vcpus, 0);
  EXPECT_THAT(found.reason, HasSubstr("may not own more"));
  web() = testing::pinned(web(), "0-1");
  web().cpu_quota_cores = 2;
  use(web(), 2, kLong_us);
  EXPECT_EQ(plan().findings.interference->waiting.at("web").vcpus, 0);
  web().original = model::OriginalLimits{.cpu_quota_cores = 2, .memory_high_bytes = {}};
  web().cpu_quota_cores = 8;
  web().held_cpu = model::HeldLimit{.cause = model::HeldCause::lifted, .since = 1, .changed_at = 1};
  EXPECT_EQ(plan().findings.interference->waiting.at("web").vcpus, 0) << "lifted";
}

TEST_F(Waiting, AnInstanceMovesAwayFromBestEffortWorkThatCannotBeConfined) {
  batch().cpus = {};
  batch().allowed_cpus = testing::cpus("0-1");
  const auto result = plan();
  const auto& found = result.findings.interference->waiting.at("web");
  EXPECT_EQ(found.cause, model::WaitCause::best_effort);
  EXPECT_THAT(found.reason, HasSubstr("batch"));
  EXPECT_EQ(found.quieter, testing::cpus("2-7"));
  ASSERT_EQ(pins_of(result, "web").size(), 1U);
  EXPECT_FALSE(result.findings.interference->instances.at("web").cpus.intersects(testing::cpus("0-1")));
  const auto explained = explain_workload(snapshot_, result, settings_, "web");
  ASSERT_TRUE(explained && explained->waiting);
  EXPECT_EQ(*explained->waiting, found);
}

TEST_F(Waiting, WholeCoresThatMoveCountWithAllTheirVcpus) {
  batch().cpus = {};
  batch().allowed_cpus = testing::cpus("0-1");
  web().isolation = model::Isolation::cores;
  web().vcpus = 3;
  web().cpus = testing::cpus("0-1,4-5");
  const auto moved = plan();
  ASSERT_THAT(pins_of(moved, "web"), ElementsAre("web=2-3,6-7"));
  testing::apply(moved, snapshot_);
  EXPECT_DOUBLE_EQ(moved.findings.interference->score_node, plan().findings.interference->score_node);
}

TEST_F(Waiting, ItStaysWhereNoPlaceIsQuieter) {
  batch().cpus = {};
  batch().allowed_cpus = std::nullopt;  // everywhere alike
  const auto result = plan();
  EXPECT_EQ(result.findings.interference->waiting.at("web").cause, model::WaitCause::best_effort);
  EXPECT_THAT(pins_of(result, "web"), IsEmpty());
}

TEST_F(Waiting, TheCoolDownAndTheNumberOfMovesHoldForIt) {
  use(web(), 1.9, kLong_us);
  web().pinned_at = 995;
  auto result = plan();
  EXPECT_THAT(result.findings.interference->waiting.at("web").reason, HasSubstr("repin_cooldown"));
  EXPECT_THAT(pins_of(result, "web"), IsEmpty());
  web().pinned_at = 900;
  settings_.interference.max_moves = 0;
  result = plan();
  EXPECT_THAT(result.findings.interference->waiting.at("web").reason, HasSubstr("max_moves"));
  EXPECT_THAT(pins_of(result, "web"), IsEmpty());
}

TEST_F(Waiting, InstancesThatFindNoPlaceTakeNobodysTurn) {
  // Best-effort work runs everywhere alike, so two find no quieter place. The third is busy, and could grow.
  batch().cpus = {};
  batch().allowed_cpus = std::nullopt;
  settings_.interference.max_moves = 2;
  model::Workload first = web();
  first.id = first.service = "first";
  first = testing::pinned(first, "2-3");
  use(first, 0.4, 2 * kLong_us);
  first.pinned_at = 900;
  model::Workload busy = testing::pinned(testing::latency_sensitive("busy", 1), "4");
  use(busy, 1, 6000);
  busy.pinned_at = 900;
  snapshot_.workloads.push_back(first);
  snapshot_.workloads.push_back(busy);
  const auto result = plan();
  const auto& waiting = result.findings.interference->waiting;
  EXPECT_EQ(waiting.at("first").cause, model::WaitCause::best_effort);
  EXPECT_EQ(waiting.at("web").cause, model::WaitCause::best_effort);
  EXPECT_THAT(waiting.at("web").reason, HasSubstr("nothing free"));
  EXPECT_EQ(waiting.at("busy").vcpus, 2);
  EXPECT_EQ(result.findings.interference->instances.at("busy").cpus.size(), 2U);
}

TEST_F(Waiting, AnUnknownCauseIsSaidAndNothingIsDone) {
  const auto result = plan();
  EXPECT_EQ(result.findings.interference->waiting.at("web").cause, model::WaitCause::unknown);
  EXPECT_THAT(pins_of(result, "web"), IsEmpty());
}

}  // namespace

}  // namespace berth::policies
