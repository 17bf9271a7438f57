// SPDX-License-Identifier: Apache-2.0
#include "policies/eviction/cost.h"
#include "policies/eviction/demand.h"
#include "policies/victim.h"
#include "tests/unit/policies/eviction/eviction_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::policies {

namespace {

using ::testing::IsEmpty;
using namespace testing::spark;

}  // namespace

TEST(SparkCost, PoolsRunTimesOrTakesTheMeanOfRatios) {
  const model::SparkStage first = etl().stages[0];
  EXPECT_DOUBLE_EQ(computation_of(first, Complexity::pooled), 36);
  // 4000 bytes times the mean of 10, 12 and 4 ms/byte, and 6 s of the task without input.
  EXPECT_NEAR(computation_of(first, Complexity::mean_of_ratios), 4000 * (0.026 / 3) + 6, 1e-9);
  EXPECT_DOUBLE_EQ(computation_of(etl().stages[1], Complexity::mean_of_ratios), 4);
}

TEST(SparkCost, IsRecalculationLessWhatRemainsByHowFastDemandClimbs) {
  const model::SparkAppFigures level = app_figures(etl(), {}, 0);
  EXPECT_DOUBLE_EQ(level.computation_s, 40);
  EXPECT_DOUBLE_EQ(level.transmission_bytes, 250e6);
  EXPECT_DOUBLE_EQ(level.recalculation_s, 42);
  EXPECT_EQ(level.stages, 2U);
  EXPECT_DOUBLE_EQ(level.stages_done, 1.25);
  EXPECT_DOUBLE_EQ(level.remaining_s.value_or(-1), 36);
  EXPECT_DOUBLE_EQ(level.cost_s, 42);
  EXPECT_DOUBLE_EQ(app_figures(etl(), {}, 0.5).cost_s, 24);
}

TEST(SparkCost, OfAnApplicationWithoutStagesIsNothing) {
  model::SparkApp app;
  app.calculated_time_s = 10;
  EXPECT_DOUBLE_EQ(app_figures(app, {}, 1).cost_s, 0);
  EXPECT_THAT(executor_losses(app, {}), IsEmpty());
}

TEST(SparkCost, OfAnApplicationThatHasDoneNothingItIsNotKnownWhatRemains) {
  model::SparkApp app;
  app.calculated_time_s = 3;
  app.stages = {stage(0, {}, 10, 0, {})};
  EXPECT_EQ(app_figures(app, {}, 1).remaining_s, std::nullopt);
  EXPECT_DOUBLE_EQ(app_figures(app, {}, 1).cost_s, 0);
}

TEST(SparkCost, CompleteJobsSayHowManyStagesFollow) {
  model::SparkApp app;
  app.calculated_time_s = 60;
  // Jobs of one stage each, as adaptive execution has them. The last one is half done.
  for (int id = 0; id < 3; ++id) {
    app.stages.push_back(stage(id, {}, 2, 0, {{"1", 0, 5}, {"1", 0, 5}}));
    app.stages.back().job = id;
  }
  app.stages.back().tasks.pop_back();
  const model::SparkAppFigures figures = app_figures(app, {}, 1);
  EXPECT_EQ(figures.stages, 3U);
  EXPECT_EQ(figures.stages_to_come, 2U);
  EXPECT_DOUBLE_EQ(figures.stages_done, 2.5);
  EXPECT_DOUBLE_EQ(figures.remaining_s.value_or(-1), 60 * (5 - 2.5) / 2.5);  // 12 s by the known stages alone
  // The first job says nothing of later ones.
  app.stages.erase(app.stages.begin(), app.stages.begin() + 2);
  EXPECT_DOUBLE_EQ(app_figures(app, {}, 1).remaining_s.value_or(-1), 60);
}

TEST(ExecutorLoss, IsOutputThatIsYetToBeReadAndWhatRuns) {
  const auto losses = executor_losses(etl(), {});
  // The results of executor 1 in stage 1 are with the driver already.
  EXPECT_DOUBLE_EQ(losses.at("1").lost_s, 22);
  EXPECT_DOUBLE_EQ(losses.at("1").running_s, 3);
  EXPECT_DOUBLE_EQ(losses.at("2").lost_s, 14);
}

TEST(ExecutorLoss, DoesNotCountWhatWasReadAlready) {
  model::SparkApp app = etl();
  app.stages[1].tasks.resize(4, {"2", 0, 5});
  EXPECT_DOUBLE_EQ(executor_losses(app, {}).at("1").lost_s, 0);
}

TEST(ExecutorLoss, CountsWhatLostOutputWasMadeOf) {
  model::SparkApp app = etl();
  app.stages[1] = stage(1, {0}, 2, 10, {{"1", 0, 4}, {"2", 0, 5}});
  app.stages.push_back(stage(2, {1}, 1, 0, {}));
  const auto losses = executor_losses(app, {});
  EXPECT_DOUBLE_EQ(losses.at("1").lost_s, 22 + 4);
  EXPECT_DOUBLE_EQ(losses.at("2").lost_s, 14 + 5);
}

TEST(ExecutorLoss, CountsAShuffleThatWaitsForItsReader) {
  model::SparkApp app = etl();
  app.stages.pop_back();
  EXPECT_DOUBLE_EQ(executor_losses(app, {}).at("1").lost_s, 22);
}

// A driver may tell of so many. The work must not grow with their product.
TEST(ExecutorLoss, ManyExecutorsOfAStageWithManyReadersAreCounted) {
  constexpr int kExecutors = 60'000;
  constexpr int kReaders = 20'000;
  model::SparkApp app;
  app.stages = {stage(0, {}, kExecutors, 10, {})};
  for (int i = 0; i < kExecutors; ++i) app.stages[0].tasks.push_back({std::to_string(i), 0, 2});
  for (int i = 1; i <= kReaders; ++i) app.stages.push_back(stage(i, {0}, 1, 0, {{"0", 0, 1}}));
  for (model::SparkStage& each : app.stages) each.job = 0;
  const auto losses = executor_losses(app, {});
  EXPECT_EQ(losses.size(), static_cast<std::size_t>(kExecutors));
  EXPECT_DOUBLE_EQ(losses.at("7").lost_s, 0) << "all of it was read";
  // The last reader has yet to run, so all executors' output is awaited.
  app.stages.back().tasks.clear();
  EXPECT_DOUBLE_EQ(executor_losses(app, {}).at("7").lost_s, 2);
}

TEST(ExecutorLoss, AResultWithManyKeepersIsCountedOnceForEach) {
  constexpr int kKeepers = 50'000;
  model::SparkApp app;
  app.stages = {stage(0, {}, 1, 10, {{"0", 0, 3}})};
  app.stages[0].cached = true;
  for (int round = 0; round < 2; ++round)
    for (int i = 1; i <= kKeepers; ++i) app.stages[0].tasks[0].kept_by.push_back(std::to_string(i));
  const auto losses = executor_losses(app, {});
  EXPECT_DOUBLE_EQ(losses.at("1").kept_s, 3);
  EXPECT_DOUBLE_EQ(losses.at(std::to_string(kKeepers)).kept_s, 3);
}

TEST(ExecutorLoss, IsRunningTasksAloneWithAShuffleService) {
  model::SparkApp app = etl();
  app.shuffle_service = true;
  const ExecutorLoss loss = executor_losses(app, {}).at("1");
  EXPECT_DOUBLE_EQ(loss.lost_s, 0);
  EXPECT_DOUBLE_EQ(loss.running_s, 3);
}

TEST(ExecutorLoss, CountsBetweenTwoJobsWhatOneAfterAnotherHasRead) {
  model::SparkApp app = etl();
  app.stages[1].tasks.resize(4, {"2", 0, 5});
  app.stages.push_back(stage(2, {0}, 1, 0, {{"2", 0, 5}}));
  EXPECT_DOUBLE_EQ(executor_losses(app, {}).at("1").lost_s, 22);
  app.stages.push_back(stage(3, {}, 1, 0, {{"2", 0, 5}}));  // the program has gone on to something else
  EXPECT_DOUBLE_EQ(executor_losses(app, {}).at("1").lost_s, 0);
}

TEST(ExecutorLoss, CountsWhatJobsReadOneAfterAnotherUntilTheProgramGoesOnToSomethingElse) {
  model::SparkApp app = etl();
  app.stages[1].tasks.resize(4, {"2", 0, 5});
  app.stages[0].job = app.stages[1].job = 0;
  app.stages.push_back(stage(2, {0}, 1, 7, {{"2", 0, 5}}));
  app.stages.push_back(stage(3, {2}, 1, 0, {}));
  app.stages[2].job = app.stages[3].job = 1;
  EXPECT_DOUBLE_EQ(executor_losses(app, {}).at("1").lost_s, 22) << "though the one that runs reads another";
  app.stages[3].tasks = {{"2", 0, 5}};
  EXPECT_DOUBLE_EQ(executor_losses(app, {}).at("1").lost_s, 22) << "the next one may come";
  app.stages.push_back(stage(4, {}, 1, 0, {}));
  app.stages[4].job = 2;
  EXPECT_DOUBLE_EQ(executor_losses(app, {}).at("1").lost_s, 0);
  app.stages[3].tasks.clear();
  EXPECT_DOUBLE_EQ(executor_losses(app, {}).at("1").lost_s, 22) << "two jobs at once";
}

TEST(ExecutorLoss, DoesNotCountWhatOneJobHasReadTwice) {
  model::SparkApp app = etl();
  app.stages[1].tasks.resize(4, {"2", 0, 5});
  app.stages.push_back(stage(2, {0}, 1, 7, {{"2", 0, 5}}));
  app.stages.push_back(stage(3, {2}, 1, 0, {}));
  for (auto& its : app.stages) its.job = 0;
  EXPECT_DOUBLE_EQ(executor_losses(app, {}).at("1").lost_s, 0);
}

TEST(ExecutorLoss, CountsWhatTheProgramKeepsThereAndWhatThatWasMadeOf) {
  model::SparkApp app = etl();
  app.stages[1].tasks.resize(4, {"2", 0, 5});
  app.stages[1].cached = true;
  EXPECT_DOUBLE_EQ(executor_losses(app, {}).at("1").lost_s, 22 + 4);
  EXPECT_DOUBLE_EQ(executor_losses(app, {}).at("2").lost_s, 14 + 15);
  app.migration = true;
  EXPECT_DOUBLE_EQ(executor_losses(app, {}).at("1").lost_s, 4 + 4) << "blocks of the shuffle alone move";
  app.shuffle_service = true;
  EXPECT_DOUBLE_EQ(executor_losses(app, {}).at("1").lost_s, 4) << "and outlive it";
}

TEST(ExecutorLoss, CountsWhatIsKeptWithWhoAloneKeepsItNow) {
  model::SparkApp app = etl();
  app.stages[1].tasks.resize(4, {"2", 0, 5});
  app.stages[1].cached = true;
  // Of the four tasks 4, 5, 5, 5: the first was computed again by executor 3, two are where they were, and
  // the last one is at two executors.
  app.stages[1].tasks[0].kept_by = {"3"};
  app.stages[1].tasks[1].kept_by = app.stages[1].tasks[2].kept_by = {"2"};
  const auto losses = executor_losses(app, {});
  EXPECT_DOUBLE_EQ(losses.at("1").lost_s, 0) << "nobody reads what it wrote either";
  EXPECT_DOUBLE_EQ(losses.at("2").lost_s, 14 + 10) << "with what the kept ones read of its own";
  EXPECT_DOUBLE_EQ(losses.at("2").kept_s, 10);
  EXPECT_DOUBLE_EQ(losses.at("3").lost_s, 4);
}

TEST(ExecutorLoss, CountsATaskOnceThatIsKeptAndShuffled) {
  model::SparkApp app = etl();
  app.stages[0].cached = true;
  app.stages[0].tasks[0].kept_by = {"1", "2", "1"};
  const auto losses = executor_losses(app, {});
  EXPECT_DOUBLE_EQ(losses.at("1").lost_s, 22);
  EXPECT_DOUBLE_EQ(losses.at("1").kept_s, 10);
  EXPECT_DOUBLE_EQ(losses.at("2").lost_s, 14 + 10);
  app.shuffle_service = true;
  EXPECT_DOUBLE_EQ(executor_losses(app, {}).at("2").lost_s, 10);
}

TEST(ExecutorLoss, IsTheMoveOfItsBlocksWhereTheyMigrateAndThatIsLess) {
  model::SparkApp app = etl();
  app.migration = true;
  EXPECT_DOUBLE_EQ(executor_losses(app, {}).at("1").lost_s, 4);  // 500 MB at 8 ns a byte
  app.stages[0].shuffle_write_bytes = 100'000'000'000;
  EXPECT_DOUBLE_EQ(executor_losses(app, {}).at("1").lost_s, 22);
}

TEST(MemoryDemand, PredictsWhileItRises) {
  const auto rising = demand_of(snapshot(0, {sensitive({2 * kGiB, 4 * kGiB, 4 * kGiB, 4 * kGiB})}), 60);
  EXPECT_EQ(rising.samples, 4U);
  EXPECT_TRUE(rising.rising);
  EXPECT_NEAR(delta_of(rising), 0.24744, 1e-5);
  EXPECT_NEAR(static_cast<double>(growth_of(rising, 2)) / kGiB, 1.23205, 1e-4);
  const auto falling = demand_of(snapshot(0, {sensitive({4 * kGiB, 2 * kGiB})}), 60);
  EXPECT_FALSE(falling.rising);
  EXPECT_EQ(growth_of(falling, 2), 0U);
  EXPECT_EQ(delta_of(falling), 0);
}

TEST(MemoryDemand, OfLevelUseIsNoRise) {
  const auto level = demand_of(snapshot(0, {sensitive({kGiB + 7, kGiB + 7, kGiB + 7})}), 60);
  EXPECT_FALSE(level.rising);
  EXPECT_EQ(level.sd_bytes, 0);
}

TEST(MemoryDemand, LooksAtTheLastSamplesOnly) {
  const auto demand = demand_of(snapshot(0, {sensitive({9 * kGiB, kGiB, 2 * kGiB})}), 2);
  EXPECT_EQ(demand.samples, 2U);
  EXPECT_TRUE(demand.rising);
}

TEST(MemoryDemand, CountsInstantsAndNotReadings) {
  model::Workload web = sensitive({kGiB, 2 * kGiB, 3 * kGiB});
  testing::change_samples(web, [](auto& samples) { samples[1].time = samples[2].time; });
  const auto demand = demand_of(snapshot(kGiB, {web}), 2);
  EXPECT_EQ(demand.samples, 2U);
  EXPECT_DOUBLE_EQ(demand.mean_bytes, 2.0 * kGiB);  // 1 and 3: of two at one time the last
  EXPECT_TRUE(demand.rising);
}

TEST(MemoryDemand, ANewWorkloadIsARise) {
  model::Workload fresh = sensitive({kGiB});
  fresh.id = "web-2";
  EXPECT_TRUE(demand_of(snapshot(0, {sensitive({kGiB, kGiB, kGiB}), fresh}), 60).rising);
}

TEST(MemoryDemand, OfNobodyIsNothing) {
  const auto none = demand_of(snapshot(0, {other("b", 1)}), 60);
  EXPECT_EQ(none.samples, 0U);
  EXPECT_FALSE(none.rising);
}

TEST(CpuSeconds, AreCountedOrElseGuessedFromLateUse) {
  model::Workload workload = using_memory(testing::best_effort("b"), kGiB);
  workload.created = 900;
  EXPECT_DOUBLE_EQ(cpu_seconds_used(workload, 1000), 100);
  workload.cpu_time_s = 7;
  EXPECT_DOUBLE_EQ(cpu_seconds_used(workload, 1000), 7);
  EXPECT_DOUBLE_EQ(cpu_seconds_used(model::Workload{}, 1000), 0);
}

TEST(LossOutsideSpark, IsTheCpuTimeAndAHundredthOfTheAge) {
  model::Workload workload = testing::best_effort("b");
  workload.cpu_time_s = 7;
  workload.created = 900;
  EXPECT_DOUBLE_EQ(loss_outside_spark(workload, 1000), 8);
  workload.created = 0;  // not known
  EXPECT_DOUBLE_EQ(loss_outside_spark(workload, 1000), 7);
  workload.created = 2000;  // the clock went back
  EXPECT_DOUBLE_EQ(loss_outside_spark(workload, 1000), 7);
}

}  // namespace berth::policies
