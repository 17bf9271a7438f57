// SPDX-License-Identifier: Apache-2.0
#include "policies/eviction/candidates.h"
#include "policies/eviction/policy.h"
#include "policies/victim.h"
#include "tests/unit/policies/eviction/eviction_nodes.h"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::policies {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace testing::spark;

}  // namespace

TEST(Eviction, TakesNobodyWithoutANeed) {
  const auto findings = find(snapshot(8 * kGiB, {other("b", 1)}));
  EXPECT_EQ(findings.trigger, model::EvictionTrigger::none);
  EXPECT_EQ(findings.need_bytes, 0U);
  EXPECT_THAT(findings.order, IsEmpty());
  EXPECT_THAT(findings.victims, IsEmpty());
}

TEST(Eviction, PricesSparkAloneWithoutANeed) {
  const auto findings = find(snapshot(8 * kGiB, {of_spark("e1", "app-etl", "1"), other("b", 1)}, {etl()}));
  EXPECT_THAT(findings.order, ElementsAre("e1"));
  EXPECT_EQ(findings.candidates.size(), 1U);
}

TEST(Eviction, TakesExecutorsOfTheCheapestApplicationThenItsDriver) {
  model::SparkApp dear = etl();
  dear.id = "app-dear";
  for (auto& task : dear.stages[0].tasks) task.duration_s *= 100;
  const auto findings =
      find(snapshot(0,
                    {of_spark("d1", "app-dear", "1"), of_spark("driver", "app-etl", "", 32 * kMiB),
                     of_spark("e1", "app-etl", "1"), of_spark("e2", "app-etl", "2")},
                    {dear, etl()}),
           {.rank = EvictionRank::cost_per_byte, .reserve = 0.125});  // 2 GiB
  EXPECT_THAT(findings.order, ElementsAre("e2", "e1", "driver", "d1"));
  EXPECT_THAT(victims(findings), ElementsAre("e2", "e1"));
  EXPECT_THAT(findings.victims[1].reason, HasSubstr("with it 2 GiB is freed"));
  const auto more =
      find(snapshot(0,
                    {of_spark("d1", "app-dear", "1"), of_spark("driver", "app-etl", "", 32 * kMiB),
                     of_spark("e1", "app-etl", "1"), of_spark("e2", "app-etl", "2")},
                    {dear, etl()}),
           {.rank = EvictionRank::cost_per_byte, .reserve = 0.1250001});
  EXPECT_THAT(victims(more), ElementsAre("e2", "e1", "driver"));
}

// Has computed 4000 s that no stage reads any more, and runs a job that began just now.
model::SparkApp on_its_next_job() {
  model::SparkApp app = etl();
  app.id = "app-next";
  app.stages[0].tasks = {{"1", 0, 1000}, {"1", 0, 1000}, {"2", 0, 1000}, {"2", 0, 1000}};
  app.stages[1].tasks.resize(4, {"1", 0, 5});
  app.stages.push_back(stage(2, {}, 4, 0, {}));
  app.running = {{"1", 8}, {"2", 6}};
  return app;
}

TEST(Eviction, TakesWhoLosesLeastWhateverItsApplicationHasComputed) {
  const auto node = snapshot(
      0,
      {of_spark("driver", "app-next", ""), of_spark("e1", "app-etl", "1"), of_spark("e2", "app-etl", "2"),
       of_spark("n1", "app-next", "1"), of_spark("n2", "app-next", "2")},
      {etl(), on_its_next_job()});
  EXPECT_THAT(find(node).order, ElementsAre("n2", "n1", "e2", "e1", "driver"));
  EXPECT_THAT(find(node, {.rank = EvictionRank::cost_per_byte}).order,
              ElementsAre("e2", "e1", "n2", "n1", "driver"));
}

TEST(Eviction, TakesADriverAfterTheDearestOfItsExecutorsHoweverMuchItFrees) {
  model::SparkApp dear = on_its_next_job();
  dear.running = {{"1", 1000}};
  const auto findings =
      find(snapshot(0,
                    {of_spark("driver", "app-etl", "", 8 * kGiB), of_spark("e1", "app-etl", "1"),
                     of_spark("e2", "app-etl", "2"), of_spark("n1", "app-next", "1")},
                    {etl(), dear}));
  EXPECT_LT(findings.candidates.at("driver").cost_s / 8, findings.candidates.at("e2").cost_s);
  EXPECT_THAT(findings.order, ElementsAre("e2", "e1", "driver", "n1"));
}

TEST(Eviction, TakesTheLargestOfThoseWhoLoseNothing) {
  model::SparkApp idle = on_its_next_job();
  idle.running.clear();
  const auto findings = find(snapshot(
      0, {of_spark("n1", "app-next", "1", kGiB), of_spark("n2", "app-next", "2", 2 * kGiB)}, {idle}));
  EXPECT_THAT(findings.order, ElementsAre("n2", "n1"));
}

TEST(Eviction, TakesRatherWhoWouldStayLongWhereDemandClimbs) {
  model::SparkApp lengthy = etl();
  lengthy.id = "app-lengthy";
  lengthy.calculated_time_s = 6000;
  std::vector<model::Workload> workloads{of_spark("e1", "app-etl", "1"), of_spark("l1", "app-lengthy", "1")};
  lengthy.running[0].elapsed_s += 1;
  EXPECT_THAT(find(snapshot(0, workloads, {etl(), lengthy}), {.delta_weight = 1}).order,
              ElementsAre("e1", "l1"));
  workloads.push_back(sensitive({2 * kGiB, 4 * kGiB, 4 * kGiB, 4 * kGiB}));
  EXPECT_THAT(find(snapshot(0, workloads, {etl(), lengthy})).order, ElementsAre("e1", "l1"))
      << "by default it makes no difference";
  const auto findings = find(snapshot(0, workloads, {etl(), lengthy}), {.delta_weight = 1});
  EXPECT_THAT(findings.order, ElementsAre("l1", "e1"));
  EXPECT_DOUBLE_EQ(findings.candidates.at("l1").cost_s, 26) << "it loses as much as before";
  EXPECT_THAT(findings.candidates.at("l1").reason,
              HasSubstr("890.8 s less, because its application would stay long"));
}

TEST(Eviction, TakesNobodyWhomALaterVictimMakesNeedless) {
  // 3 GiB are missing. The cheap one alone is too little, and the large one alone is enough.
  const auto findings =
      find(snapshot(0, {other("small", 5, kGiB), other("large", 580, 58 * kGiB)}), {.reserve = 3.0 / 16});
  EXPECT_THAT(findings.order, ElementsAre("small", "large"));
  EXPECT_THAT(victims(findings), ElementsAre("large"));
  // Of three, the first and the last are enough.
  EXPECT_THAT(
      victims(find(snapshot(0, {other("a", 10, 2 * kGiB), other("b", 12, kGiB), other("c", 50, 2 * kGiB)}),
                   {.reserve = 3.5 / 16})),
      ElementsAre("a", "c"));
}

TEST(Eviction, TakesNobodyWhoFreesNextToNothing) {
  const EvictionSettings needs_2_gib{.reserve = 0.125};
  EXPECT_THAT(victims(find(snapshot(0, {other("tiny", 1, 15 * kMiB)}), needs_2_gib)), IsEmpty());
  // Less than 1 % of the need, while others cover it; else it is better than nothing.
  const auto small = other("a", 0, 17 * kMiB);
  EXPECT_THAT(victims(find(snapshot(0, {small, other("b", 900, 2 * kGiB)}), needs_2_gib)), ElementsAre("b"));
  EXPECT_THAT(victims(find(snapshot(0, {small, other("b", 900, kGiB)}), needs_2_gib)), ElementsAre("a", "b"));
  // Under pressure alone, too.
  model::Snapshot stalled = snapshot(8 * kGiB, {other("tiny", 1, 15 * kMiB), other("b", 900, kGiB)});
  stalled.memory.psi_full_avg10 = 50;
  EXPECT_THAT(victims(find(stalled)), ElementsAre("b"));
}

// A user can divide its work as it likes.
TEST(Eviction, ThousandSmallGroupsOfAUserCountTogether) {
  const EvictionSettings needs_2_gib{.reserve = 0.125};
  std::vector<model::Workload> crowd;
  for (int i = 0; i < 1000; ++i) {
    crowd.push_back(other("u" + std::to_string(1000 + i), 1, 15 * kMiB));
    crowd.back().user = 1000;
  }
  auto of_another = other("b", 1, 15 * kMiB);
  of_another.user = 1001;
  crowd.push_back(of_another);
  crowd.push_back(other("c", 1, 15 * kMiB));
  const auto taken = victims(find(snapshot(0, crowd), needs_2_gib));
  EXPECT_EQ(taken.size(), 137U) << "15 MiB each, until 2 GiB are free";
  EXPECT_TRUE(std::all_of(taken.begin(), taken.end(), [](const auto& id) { return id.starts_with("u"); }));
}

TEST(Eviction, CountsWhatAnyRestartCosts) {
  // Both have hardly begun: the one that frees more is cheaper, whatever they used so far.
  EXPECT_THAT(find(snapshot(0, {other("small", 0.01, kGiB), other("large", 4, 2 * kGiB)})).order,
              ElementsAre("large", "small"));
  EXPECT_THAT(find(snapshot(0, {other("small", 0.01, kGiB), other("large", 11, 2 * kGiB)})).order,
              ElementsAre("small", "large"));
}

TEST(Eviction, SaysWhatAnExecutorLoses) {
  model::SparkApp app = etl();
  const auto reason = [&] {
    return find(snapshot(0, {of_spark("e1", "app-etl", "1")}, {app})).candidates.at("e1").reason;
  };
  EXPECT_EQ(reason(), "22 s of completed tasks, to be computed again, and 3 s in running ones");
  app.migration = true;
  EXPECT_EQ(reason(), "4 s of completed tasks, or the move of their output, and 3 s in running ones");
  app.shuffle_service = true;
  EXPECT_EQ(
      reason(),
      "0 s of completed tasks, because the shuffle service keeps their output, and 3 s in running ones");
  app.stages[1].cached = true;
  EXPECT_EQ(
      reason(),
      "4 s of completed tasks, which only this executor keeps for later stages, and 3 s in running ones");
  app.migration = app.shuffle_service = false;
  EXPECT_EQ(reason(),
            "26 s of completed tasks, 4 s of it kept for later stages only by this executor, to be computed "
            "again, and 3 s in "
            "running ones");
}

TEST(Eviction, RanksByCostForEachByteOrByCostAlone) {
  const auto node = snapshot(0, {other("dear-and-large", 20, 8 * kGiB), other("cheap-and-small", 10, kGiB)});
  EXPECT_THAT(find(node).order, ElementsAre("dear-and-large", "cheap-and-small"));
  EXPECT_THAT(find(node, {.rank = EvictionRank::cost}).order,
              ElementsAre("cheap-and-small", "dear-and-large"));
}

TEST(Eviction, TakesWhoFreesNothingLastAndNeverAsAVictim) {
  const auto findings = find(snapshot(0, {other("nothing", 0, 0), other("some", 100, 64 * kMiB)}));
  EXPECT_THAT(findings.order, ElementsAre("some", "nothing"));
  EXPECT_THAT(victims(findings), ElementsAre("some"));
}

TEST(Eviction, SparesLatencySensitiveExecutors) {
  model::Workload serving = of_spark("e1", "app-etl", "1");
  serving.workload_class = model::WorkloadClass::latency_sensitive;
  EXPECT_THAT(find(snapshot(0, {serving, other("b", 1)}, {etl()})).order, ElementsAre("b"));
}

TEST(Eviction, LeavesOutWhatIsSparedAndSaysWhy) {
  model::Workload worker = other("worker", 0);
  worker.spared = "is shared";
  model::Workload executor = of_spark("e1", "app-etl", "1");
  executor.spared = "is shared too";
  model::Workload serving = other("web-2", 0);
  serving.workload_class = model::WorkloadClass::latency_sensitive;
  serving.spared = "is no candidate anyway";
  const auto findings = find(snapshot(0, {worker, executor, serving, other("b", 1)}, {etl()}));
  EXPECT_THAT(findings.order, ElementsAre("b"));
  EXPECT_THAT(victims(findings), ElementsAre("b"));
  EXPECT_EQ(findings.candidates.count("worker"), 0U);
  EXPECT_EQ(findings.spared,
            (std::map<std::string, std::string>{{"e1", "is shared too"}, {"worker", "is shared"}}));
  EXPECT_EQ(findings.apps.at("app-etl").frees_bytes, 0U);
}

TEST(Eviction, PricesAnUnknownApplicationByItsCpuTime) {
  model::Workload unknown = of_spark("x", "app-x", "1");
  unknown.cpu_time_s = 12;
  const auto findings = find(snapshot(0, {unknown}));
  EXPECT_DOUBLE_EQ(findings.candidates.at("x").cost_s, 12);
  EXPECT_THAT(findings.candidates.at("x").reason, HasSubstr("its application is unknown"));
}

TEST(Eviction, AServiceThatRunsForWeeksWithLittleCpuIsNotTheCheapest) {
  model::Snapshot node = snapshot(0, {other("exporter", 30, kGiB / 8), other("job", 600, kGiB)});
  node.time = 5'000'000;
  node.workloads[0].created = 5'000'000 - 30 * 86400;
  node.workloads[1].created = 5'000'000 - 600;
  EXPECT_THAT(find(node).order, ElementsAre("job", "exporter"));
}

TEST(Eviction, DoesNothingWhereTheNodesMemoryIsNotKnown) {
  model::Snapshot node = snapshot(0, {other("b", 1)});
  node.memory = {.total_bytes = 0, .available_bytes = 0, .psi_full_avg10 = 50};
  const auto findings = find(node);
  EXPECT_EQ(findings.trigger, model::EvictionTrigger::none);
  EXPECT_THAT(findings.victims, IsEmpty());
}

TEST(Eviction, UnderPressureAloneTakesOne) {
  model::Snapshot node = snapshot(8 * kGiB, {other("a", 1), other("b", 2)});
  node.memory.psi_full_avg10 = 10;
  EXPECT_THAT(find(node).victims, IsEmpty());
  node.memory.psi_full_avg10 = 10.5;
  const auto findings = find(node);
  EXPECT_EQ(findings.trigger, model::EvictionTrigger::pressure);
  EXPECT_THAT(victims(findings), ElementsAre("a"));
}

// The workload that the plan evicts; "" where none.
std::string evicted(const model::Snapshot& node, const EvictionSettings& settings = {.evict = true}) {
  std::string id;
  for (const model::Action& action : propose_evictions(node, settings).actions) {
    if (const auto* evict = std::get_if<model::Evict>(&action.what)) id += evict->workload;
  }
  return id;
}

TEST(Eviction, TakesTheFirstVictimWhereItIsToldTo) {
  const auto node = snapshot(0, {other("a", 1), other("b", 2)});
  EXPECT_EQ(evicted(node, {}), "");
  const auto actions = propose_evictions(node, {.evict = true}).actions;
  ASSERT_EQ(actions.size(), 1U);
  const auto& evict = std::get<model::Evict>(actions[0].what);
  EXPECT_EQ(evict.workload, "a");
  EXPECT_EQ(evict.how, model::EvictionStep::terminate);
  EXPECT_EQ(evict.grace_s, 30) << "a need that is foreseen leaves time";
  EXPECT_THAT(actions[0].reason, HasSubstr("is missing; "));
}

TEST(Eviction, UnderPressureThereIsLittleTime) {
  model::Snapshot node = snapshot(0, {of_spark("e1", "app-etl", "1")}, {etl()});
  node.memory.psi_full_avg10 = 50;
  const auto actions = propose_evictions(node, {.evict = true}).actions;
  ASSERT_EQ(actions.size(), 1U);
  const auto& evict = std::get<model::Evict>(actions[0].what);
  EXPECT_EQ(evict.how, model::EvictionStep::decommission);
  EXPECT_EQ(evict.grace_s, 1);
}

TEST(Eviction, CountsWhoIsOnHisWayOutAsFree) {
  model::Snapshot node = snapshot(0, {other("a", 1), other("b", 2)});  // 0.8 GiB missing
  node.workloads[0].evicted_at = 999;
  EXPECT_EQ(evicted(node), "") << "a uses 1 GiB";
  EXPECT_EQ(find(node).freeing_bytes, kGiB);
  EXPECT_EQ(evicted(node, {.reserve = 0.1, .evict = true}), "b");
}

TEST(Eviction, CountsWhatAProcessLostALittleAgoAsFreeSoon) {
  model::Snapshot node = snapshot(0, {other("a", 1), other("b", 2)});  // 0.8 GiB missing
  node.workloads[0].evicted_at = 999;
  auto gone = node.workloads[0].usage.back();
  node.time = gone.time + 2;
  gone.time += 1;
  gone.memory_bytes = 0;
  node.workloads[0].usage.push_back(gone);
  EXPECT_EQ(evicted(node), "") << "a had 1 GiB two seconds ago";
  node.time += 1;
  EXPECT_EQ(evicted(node), "b");
}

TEST(Eviction, PassesOverWhoCannotBeEvicted) {
  model::Snapshot node = snapshot(0, {other("a", 1), other("b", 2)});
  node.workloads[0].fixed.life = true;
  EXPECT_EQ(evicted(node), "b");
  node.workloads[1].fixed = {.cpu = true, .memory = true};
  EXPECT_EQ(evicted(node), "");
  EXPECT_THAT(find(node).order, ElementsAre("a", "b")) << "the order stays the order";
}

TEST(Eviction, PressureIsGivenTimeToShowWhatTheLastOneBrought) {
  model::Snapshot node = snapshot(8 * kGiB, {other("a", 1), other("b", 2)});
  node.memory.psi_full_avg10 = 50;
  EXPECT_EQ(evicted(node), "a");
  node.workloads[0].evicted_at = node.time - 100;
  EXPECT_EQ(evicted(node), "") << "while it is ending";
  node.workloads[0].evicted_at.reset();
  node.eviction_ended_at = node.time - 9;
  EXPECT_EQ(evicted(node), "");
  node.eviction_ended_at = node.time - 10;
  EXPECT_EQ(evicted(node), "a");
  node.eviction_ended_at = node.time + 100;  // the clock was set back
  EXPECT_EQ(evicted(node), "a");
}

TEST(Squeezing, TakesTheLargestCachesBeforeAnybodyGoes) {
  model::Snapshot node = snapshot(8 * kGiB, {other("a", 1, 4 * kGiB), other("b", 2, 4 * kGiB)});
  node.memory.psi_full_avg10 = 20;
  node.workloads[0].cache_bytes = kGiB / 2;
  node.workloads[1].cache_bytes = kGiB / 4;
  EvictionSettings settings;
  settings.reserve = 0.0390625;  // 640 MiB
  const EvictionProposal proposal = propose_evictions(node, settings);
  EXPECT_THAT(proposal.findings.victims, IsEmpty());
  ASSERT_EQ(proposal.actions.size(), 2U);
  const auto high = [&](std::size_t i) { return proposal.actions[i].sets<model::MemoryHigh>()->bytes; };
  EXPECT_EQ(*proposal.actions[0].workload(), "a");
  EXPECT_EQ(high(0), 4 * kGiB - kGiB / 2);
  EXPECT_EQ(high(1), 4 * kGiB - kGiB / 8);  // what is still missing
}

TEST(Squeezing, IsOfNoUseWhereMemoryIsNeeded) {
  model::Snapshot node = snapshot(0, {other("a", 1, 4 * kGiB)});
  node.workloads[0].cache_bytes = 3 * kGiB;
  const EvictionProposal proposal = propose_evictions(node, {});
  EXPECT_THAT(proposal.actions, IsEmpty());
  EXPECT_THAT(victims(proposal.findings), ElementsAre("a"));
}

// Everybody stalls; the one best-effort workload has been squeezed since then, and last 5 s ago.
model::Snapshot squeezed_since(double time) {
  model::Snapshot node = snapshot(8 * kGiB, {other("a", 1, 4 * kGiB)});
  node.memory.psi_full_avg10 = 20;
  model::Workload& squeezed = node.workloads[0];
  squeezed.memory_high_bytes = 3 * kGiB;
  squeezed.original = model::OriginalLimits{};
  squeezed.held_memory =
      model::HeldLimit{.cause = model::HeldCause::preempted, .since = time, .changed_at = 995};
  return node;
}

TEST(Squeezing, IsGivenTimeToShow) {
  model::Snapshot node = squeezed_since(990);
  const EvictionProposal waiting = propose_evictions(node, {});
  EXPECT_THAT(waiting.findings.victims, IsEmpty());
  // Kept, so that no policy gives it back meanwhile.
  ASSERT_EQ(waiting.actions.size(), 1U);
  EXPECT_EQ(waiting.actions[0].sets<model::MemoryHigh>()->bytes, 3 * kGiB);
  node.workloads[0].held_memory->changed_at = 990;
  EXPECT_THAT(victims(find(node)), ElementsAre("a"));
  node.memory.psi_full_avg10 = 5;
  EXPECT_THAT(propose_evictions(node, {}).actions, IsEmpty());
}

TEST(Squeezing, RaisesNoLimit) {
  // Its limit asks more of it than the 819 MiB of the reserve would: it is being squeezed already.
  model::Snapshot node = squeezed_since(900);
  model::Workload& squeezed = node.workloads[0];
  squeezed.held_memory->changed_at = 900;
  squeezed.cache_bytes = kGiB;
  const EvictionProposal proposal = propose_evictions(node, {});
  ASSERT_EQ(proposal.actions.size(), 1U);
  EXPECT_EQ(proposal.actions[0].sets<model::MemoryHigh>()->bytes, 3 * kGiB);
  EXPECT_THAT(proposal.findings.reclaim, IsEmpty());
  EXPECT_THAT(victims(proposal.findings), ElementsAre("a"));
  // Another one gives what this one does not.
  node.workloads.push_back(other("b", 2, 4 * kGiB));
  node.workloads[1].cache_bytes = kGiB;
  const EvictionProposal both = propose_evictions(node, {});
  ASSERT_EQ(both.findings.reclaim.size(), 1U);
  EXPECT_EQ(both.findings.reclaim[0].workload, "b");
  EXPECT_THAT(both.findings.victims, IsEmpty());
}

TEST(Squeezing, TakesNothingFromWhomBerthLeavesAlone) {
  model::Snapshot node = snapshot(8 * kGiB, {other("a", 1, 4 * kGiB), other("b", 2, 4 * kGiB)});
  node.memory.psi_full_avg10 = 20;
  node.workloads[0].cache_bytes = 2 * kGiB;
  node.workloads[0].fixed.memory = true;
  EXPECT_THAT(propose_evictions(node, {}).actions, IsEmpty());
  node.workloads[1].cache_bytes = kGiB;
  const EvictionProposal proposal = propose_evictions(node, {});
  ASSERT_EQ(proposal.actions.size(), 1U);
  EXPECT_EQ(*proposal.actions[0].workload(), "b");
}

TEST(Squeezing, WaitsForNoLimitThatBerthCannotChange) {
  model::Snapshot node = squeezed_since(990);
  node.workloads[0].fixed.memory = true;
  const EvictionProposal proposal = propose_evictions(node, {});
  EXPECT_THAT(proposal.actions, IsEmpty());
  EXPECT_THAT(victims(proposal.findings), ElementsAre("a"));
}

TEST(Squeezing, HoldsOffGivingBackAndYieldsToWhoTakesMore) {
  const model::Snapshot node = squeezed_since(900);
  // The straggler policy would give back, because no workload straggles.
  EXPECT_THAT(decide(node, {}, {"eviction", "straggler"}).actions, IsEmpty());
  EXPECT_EQ(decide(node, {}, {"straggler"}).actions.size(), 1U);
}

}  // namespace berth::policies
