// SPDX-License-Identifier: Apache-2.0
#include "policies/explain.h"

#include "hosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::policies {
namespace {

using ::testing::HasSubstr;
using namespace berth::policies::testing;  // NOLINT: the hosts

class Explain : public ::testing::Test {
 protected:
  Explain() {
    snapshot = snapshot_of(host({}));
    snapshot.workloads = {latency_sensitive("a", 2), latency_sensitive("b", 2), best_effort("x", 1.5)};
  }
  model::Plan decided() const { return decide(snapshot, settings); }
  model::WorkloadExplanation of(const std::string& id) const {
    return explain_workload(snapshot, decided(), settings, id).value();
  }
  model::Snapshot snapshot;
  PolicySettings settings;
};

TEST_F(Explain, ThePinsTermsGiveItsScore) {
  snapshot.services["a"].model = model::InterferenceModel{.b0 = 1, .k1 = 0.4, .k2 = 0.2};
  for (const char* id : {"a", "b"}) {
    const auto explained = of(id);
    ASSERT_TRUE(explained.pin);
    const auto& pin = *explained.pin;
    EXPECT_DOUBLE_EQ(pin.instance.score,
                     pin.coefficients.k1 * pin.instance.cpu_sc + pin.coefficients.k2 * pin.instance.cpu_ss);
    EXPECT_FALSE(pin.pressure_source.empty());
    EXPECT_FALSE(explained.pool);
  }
  EXPECT_EQ(of("a").pin->coefficients.k1, 0.4);
  EXPECT_EQ(of("b").pin->coefficients.k1, settings.interference.default_model.k1);
}

TEST_F(Explain, HoldsTheActionsOfThatWorkloadAlone) {
  const auto explained = of("a");
  ASSERT_EQ(explained.actions.size(), 1U);
  EXPECT_EQ(*explained.actions.front().workload(), "a");
  EXPECT_TRUE(explained.workload.usage.empty());
}

TEST_F(Explain, ABestEffortOneSharesThePool) {
  const auto explained = of("x");
  ASSERT_TRUE(explained.pool);
  EXPECT_EQ(explained.pool->cpus, decided().findings.interference->best_effort.cpus);
  EXPECT_FALSE(explained.pin);
  EXPECT_DOUBLE_EQ(explained.mean_cores.value_or(0), 1.5);
}

TEST_F(Explain, SaysWhyThereIsNoPin) {
  snapshot.workloads.front().vcpus = std::nullopt;
  EXPECT_THAT(of("a").unplaceable.value_or(""), HasSubstr("declares no vcpus"));
  EXPECT_FALSE(of("a").pin);
}

TEST_F(Explain, KnowsThoseThatWait) {
  snapshot.pending.push_back(
      {.id = "new", .service = "a", .workload_class = {}, .vcpus = 1, .memory_request_bytes = 0});
  snapshot.pending.back().isolation = model::Isolation::vcpus;
  EXPECT_TRUE(of("new").pending);
  EXPECT_TRUE(of("new").pin);
}

TEST_F(Explain, AStragglersPayersAreNamed) {
  auto plan = decided();
  auto& found = plan.findings.straggler.emplace();
  found.tasks["a"].straggler = true;
  found.tasks["a"].granted.cpu_cores = 1;
  found.tasks["b"].straggler = true;
  found.moves = {
      {.kind = model::LimitMove::Kind::reclaim, .workload = "x", .amount = {1, 0}, .reason = "idle"},
      {.kind = model::LimitMove::Kind::restore, .workload = "y", .amount = {1, 0}, .reason = "over"}};
  found.relocate = {{.workload = "b", .lacks = {2, 0}}};
  found.redundant["x"].cpu = model::RedundantCpu{.utilisation = 0.2, .reclaimable_cores = 1};
  found.keeping["b"] = "needed its share back";
  const auto explained = [&](const char* id) {
    return explain_workload(snapshot, plan, settings, id).value();
  };
  ASSERT_EQ(explained("a").moves.size(), 1U);
  EXPECT_EQ(explained("a").moves.front().workload, "x");
  EXPECT_FALSE(explained("a").lacks);
  EXPECT_TRUE(explained("b").moves.empty());
  EXPECT_EQ(explained("b").lacks, (model::Resources{2, 0}));
  EXPECT_EQ(explained("x").moves.size(), 1U);
  EXPECT_TRUE(explained("x").redundant->cpu);
  EXPECT_FALSE(explained("x").keeping);
  EXPECT_EQ(explained("b").keeping, "needed its share back");
}

TEST_F(Explain, WhoPaysIsToldAsLongAsTheStragglerIsGrown) {
  auto& x = snapshot.workloads[2];
  x.cpu_quota_cores = 1.5;
  x.memory_high_bytes = 1024;
  x.original = model::OriginalLimits{.cpu_quota_cores = 4, .memory_high_bytes = 3072};
  x.held_cpu = model::HeldLimit{.cause = model::HeldCause::lent, .since = 900, .changed_at = 950};
  x.held_memory = model::HeldLimit{.cause = model::HeldCause::preempted, .since = 910, .changed_at = 910};
  snapshot.memory.total_bytes = 1 << 20;
  EXPECT_TRUE(of("a").payers.empty()) << "it was given nothing";
  snapshot.workloads[0].held_cpu =
      model::HeldLimit{.cause = model::HeldCause::extended, .since = 900, .changed_at = 900};
  const auto payers = of("a").payers;
  ASSERT_EQ(payers.size(), 2U);
  EXPECT_EQ(payers[0].workload, "x");
  EXPECT_EQ(payers[0].held, *x.held_cpu);
  EXPECT_EQ(payers[0].amount, (model::Resources{2.5, 0}));
  EXPECT_EQ(payers[1].amount, (model::Resources{0, 2048}));
  EXPECT_TRUE(of("x").payers.empty());
  // No limit before is all of the node: eight vCPUs.
  x.original->cpu_quota_cores.reset();
  EXPECT_EQ(of("a").payers[0].amount, (model::Resources{6.5, 0}));
}

TEST_F(Explain, ADecisionOfThePlanBringsItsWorkload) {
  const auto plan = decided();
  const auto& action = plan.actions.front();
  const auto explanation = explain(snapshot, plan, settings, action.decision);
  ASSERT_TRUE(explanation.decision);
  EXPECT_EQ(explanation.decision->planned, action);
  EXPECT_EQ(explanation.decision->planned_at, plan.time);
  EXPECT_TRUE(explanation.decision->present);
  ASSERT_TRUE(explanation.workload);
  EXPECT_EQ(explanation.workload->workload.id, *action.workload());
}

TEST_F(Explain, SaysWhatEvictingItWouldCostAndWhetherItGoes) {
  model::Workload executor = testing::best_effort("e1");
  executor.spark = model::SparkIdentity{"app-1", model::SparkRole::executor, "1"};
  testing::change_samples(executor,
                          [](auto& samples) { samples.back().memory_bytes = std::uint64_t{100} << 20; });
  model::Workload worker = testing::best_effort("worker");
  worker.spared = "is shared";
  snapshot.workloads = {executor, worker};
  snapshot.memory = {.total_bytes = std::uint64_t{1000} << 20,
                     .available_bytes = std::uint64_t{10} << 20,
                     .psi_full_avg10 = 0};
  snapshot.spark_apps = {
      {.id = "app-1",
       .calculated_time_s = 5,
       .stages =
           {{.id = 0, .parents = {}, .partitions = 2, .shuffle_write_bytes = 8, .tasks = {{"1", 4, 3}}}},
       .running = {{"1", 2}}}};
  const auto plan = decided();
  const auto found = explain(snapshot, plan, settings, "e1").workload.value();
  ASSERT_TRUE(found.eviction);
  EXPECT_EQ(found.eviction->position, 1U);
  EXPECT_EQ(found.eviction->candidates, 1U);
  EXPECT_TRUE(found.eviction->victim);
  EXPECT_DOUBLE_EQ(found.eviction->candidate.value().cost_s, 5);
  EXPECT_EQ(found.eviction->memory, plan.findings.eviction->reason);
  ASSERT_TRUE(found.application);
  EXPECT_EQ(found.application->workloads, std::vector<std::string>{"e1"});
  const auto spared = explain(snapshot, plan, settings, "worker").workload.value();
  EXPECT_EQ(spared.eviction.value().spared, "is shared");
  EXPECT_EQ(spared.eviction->position, 0U);
  EXPECT_FALSE(spared.eviction->victim);
  EXPECT_FALSE(spared.application);
  const auto app = explain(snapshot, plan, settings, "app-1");
  EXPECT_FALSE(app.workload);
  EXPECT_DOUBLE_EQ(app.application.value().figures.computation_s, 3);
}

TEST_F(Explain, WhatIsNeitherIsLeftOut) {
  const auto explanation = explain(snapshot, decided(), settings, "d-nonsense");
  EXPECT_FALSE(explanation.decision);
  EXPECT_FALSE(explanation.workload);
}

}  // namespace
}  // namespace berth::policies
