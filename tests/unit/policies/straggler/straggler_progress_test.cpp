// SPDX-License-Identifier: Apache-2.0
// Judging stragglers, and workloads that cannot be judged.
#include "policies/straggler/progress.h"
#include "tests/unit/policies/straggler/stragglers.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::policies {

namespace {

using ::testing::HasSubstr;
using testing::Points;
using testing::task;

constexpr double kNow = 1000;

model::StragglerTask judged(const model::Workload& workload, double now = kNow) {
  const auto result = judge(workload, now, {});
  if (!result) ADD_FAILURE() << "it is no task";
  return result.value_or(model::StragglerTask{});
}

model::StragglerTask judged(double deadline, const Points& reports, double now = kNow) {
  return judged(task("t", 2, deadline, reports), now);
}

}  // namespace

TEST(StragglerProgress, SlowerAndLateIsAStraggler) {
  const auto task = judged(1300, {{700, 0.3}, {800, 0.5}, {900, 0.5}, {1000, 0.6}});
  EXPECT_TRUE(task.straggler);
  EXPECT_DOUBLE_EQ(*task.v1, 0.002);
  EXPECT_NEAR(*task.v2, 0.001, 1e-12);
  EXPECT_NEAR(*task.finish, 1400, 1e-6);
  EXPECT_NEAR(*task.growth, 4.0 / 3, 1e-9);
  EXPECT_THAT(task.reason, HasSubstr("finishes 100.0 s after its deadline (0.001/s now, 0.002/s before)"));
  EXPECT_EQ(task.samples.size(), 4U);
  EXPECT_EQ(task.deadline, 1300);
}

TEST(StragglerProgress, InTimeIsNone) {
  const auto task = judged(1401, {{700, 0.3}, {800, 0.5}, {900, 0.5}, {1000, 0.6}});
  EXPECT_FALSE(task.straggler);
  EXPECT_THAT(task.reason, HasSubstr("before its deadline"));
  EXPECT_EQ(task.growth, std::nullopt);
}

TEST(StragglerProgress, ExactlyOnTheDeadlineIsNotInTime) {
  // A speed of a quarter a second is exact in binary.
  const auto task = judged(1002, {{994, 0}, {995, 0.25}, {999, 0.25}, {1000, 0.5}}, 1000);
  EXPECT_EQ(task.finish, 1002);
  EXPECT_TRUE(task.straggler);
  EXPECT_EQ(task.growth, 1.0);
}

TEST(StragglerProgress, LateButGainingIsNone) {
  const auto task = judged(1001, {{700, 0.3}, {800, 0.4}, {900, 0.5}, {1000, 0.7}});
  EXPECT_FALSE(task.straggler);
  EXPECT_GT(*task.finish, 1001);
  EXPECT_THAT(task.reason, HasSubstr("is faster than"));
}

TEST(StragglerProgress, SteadyProgressIsNoGainWhateverRoundingSays) {
  // 0.4 - 0.3 is more than 0.2 - 0.1.
  const auto task = judged(1100, {{700, 0.1}, {800, 0.2}, {900, 0.3}, {1000, 0.4}});
  EXPECT_GT(*task.v2, *task.v1);
  EXPECT_TRUE(task.straggler);
}

TEST(StragglerProgress, GainingAfterTheDeadlineIsNoneEither) {
  EXPECT_FALSE(judged(900, {{700, 0.3}, {800, 0.4}, {900, 0.5}, {1000, 0.7}}).straggler);
}

TEST(StragglerProgress, StandingStillNeverFinishes) {
  const auto task = judged(5000, {{700, 0.3}, {800, 0.4}, {900, 0.4}, {1000, 0.4}});
  EXPECT_TRUE(task.straggler);
  EXPECT_EQ(task.v2, 0.0);
  EXPECT_EQ(task.finish, std::nullopt);
  EXPECT_EQ(task.growth, 2.0);
  EXPECT_THAT(task.reason, HasSubstr("stands still at 0.4"));
}

TEST(StragglerProgress, PastItsDeadlineItGrowsAsMuchAsIsAllowed) {
  const auto task = judged(999, {{700, 0.3}, {800, 0.4}, {900, 0.5}, {1000, 0.6}});
  EXPECT_TRUE(task.straggler);
  EXPECT_EQ(task.growth, 2.0);
}

TEST(StragglerProgress, GrowthIsBounded) {
  EXPECT_EQ(judged(1010, {{700, 0.3}, {800, 0.4}, {900, 0.5}, {1000, 0.6}}).growth, 2.0);
}

TEST(StragglerProgress, ADoneTaskIsNone) {
  const auto task = judged(1, {{700, 0.3}, {800, 0.9}, {900, 0.99}, {1000, 1}});
  EXPECT_FALSE(task.straggler);
  EXPECT_EQ(task.reason, "done");
}

TEST(StragglerProgress, ADoneTaskIsNotSilent) {
  const auto task = judged(1100, {{700, 0.3}, {800, 0.9}, {900, 0.99}, {1000, 1}}, 9000);
  EXPECT_FALSE(task.straggler);
  EXPECT_EQ(task.samples.back().time, 1000);
}

TEST(StragglerProgress, FewerThanFourReportsAreNotJudged) {
  const auto task = judged(1100, {{800, 0.1}, {900, 0.2}, {1000, 0.2}});
  EXPECT_FALSE(task.straggler);
  EXPECT_EQ(task.v1, std::nullopt);
  EXPECT_EQ(task.finish, std::nullopt);
  EXPECT_EQ(task.reason, "not judged: 3 reports of progress, four are needed");
  EXPECT_EQ(judged(1100, {}).reason, "not judged: 0 reports of progress, four are needed");
  EXPECT_EQ(judged(1100, {{900, 0.5}}).reason, "not judged: 1 report of progress, four are needed");
}

TEST(StragglerProgress, ProgressThatFallsIsNotJudged) {
  const auto task = judged(1100, {{700, 0.5}, {800, 0.2}, {900, 0.3}, {1000, 0.4}});
  EXPECT_FALSE(task.straggler);
  EXPECT_EQ(task.reason, "not judged: progress fell from 0.5 to 0.2");
}

TEST(StragglerProgress, AFallThatIsLongPastDoesNotCount) {
  EXPECT_TRUE(judged(1100, {{600, 0.9}, {700, 0.1}, {800, 0.2}, {900, 0.3}, {1000, 0.4}}).straggler);
}

TEST(StragglerProgress, EqualTimesAreNotJudged) {
  EXPECT_EQ(judged(1100, {{700, 0.1}, {700, 0.2}, {900, 0.3}, {1000, 0.4}}).reason,
            "not judged: two reports of the same time");
  EXPECT_EQ(judged(1100, {{700, 0.1}, {800, 0.2}, {1000, 0.3}, {1000, 0.4}}).straggler, false);
}

TEST(StragglerProgress, WithoutADeadlineNothingIsJudged) {
  model::Workload workload = testing::late_task("t", 2);
  workload.deadline.reset();
  const auto task = judged(workload);
  EXPECT_FALSE(task.straggler);
  EXPECT_EQ(task.reason, "not judged: no deadline");
}

TEST(StragglerProgress, WithoutDeadlineAndProgressItIsNoTask) {
  model::Workload workload = testing::late_task("t", 2);
  workload.deadline.reset();
  workload.progress.clear();
  EXPECT_EQ(judge(workload, kNow, {}), std::nullopt);
}

TEST(StragglerProgress, BestEffortWorkIsNoTask) {
  model::Workload workload = testing::late_task("t", 2);
  workload.workload_class = model::WorkloadClass::best_effort;
  EXPECT_EQ(judge(workload, kNow, {}), std::nullopt);
}

TEST(StragglerProgress, UsageSamplesSpeakWhereTheWorkloadDoesNot) {
  model::Workload workload = testing::late_task("t", 2);
  for (const model::ProgressReport& report : workload.progress) {
    model::UsageSample sample;
    sample.time = report.time;
    sample.progress = report.fraction;
    workload.usage.push_back(sample);
    sample.progress = std::nullopt;  // one in between without
    workload.usage.push_back(sample);
  }
  const auto reported = judged(workload);
  workload.progress.clear();
  EXPECT_EQ(judged(workload), reported);
}

TEST(StragglerProgress, ALongSilenceIsASampleOfItsOwn) {
  // 25 s apart, silent for 51: it stands still as far as the reports say.
  const Points reports{{874, 0.3}, {899, 0.4}, {924, 0.5}, {949, 0.6}};
  const auto task = judged(1100, reports);
  EXPECT_TRUE(task.straggler);
  EXPECT_EQ(task.samples.back(), (model::ProgressReport{1000, 0.6}));
  EXPECT_EQ(task.samples.front().time, 899);
  EXPECT_EQ(task.v2, 0.0);
  // Twice the gap is not longer than twice.
  EXPECT_EQ(judged(1100, reports, 999).samples.back().time, 949);
}

TEST(StragglerProgress, APauseSaysNothingOfATaskThatHasTimeLeft) {
  // A report a second, then 2.5 s for a checkpoint; ten hours are left for what takes 40 s.
  const Points reports{{994.5, 0.3}, {995.5, 0.4}, {996.5, 0.59}, {997.5, 0.6}};
  const auto task = judged(37000, reports);
  EXPECT_FALSE(task.straggler);
  EXPECT_EQ(task.samples.back().time, 997.5);
  // From 1000 on it needs 40 s more: with no more than that left, the pause counts.
  EXPECT_FALSE(judged(1040.1, reports).straggler);
  EXPECT_TRUE(judged(1040, reports).straggler);
  // So does one as long as restore_hold, and one of a task that did not move before.
  EXPECT_FALSE(judged(37000, reports, 1027).straggler);
  EXPECT_TRUE(judged(37000, reports, 1027.5).straggler);
  EXPECT_EQ(judged(37000, {{994.5, 0.3}, {995.5, 0.4}, {996.5, 0.6}, {997.5, 0.6}}).samples.back().time,
            1000);
}

TEST(StragglerProgress, TheLongestGapIsTheMeasureOfSilence) {
  const Points reports{{700, 0.3}, {900, 0.4}, {910, 0.5}, {920, 0.6}};
  EXPECT_EQ(judged(1100, reports, 1300).samples.back().time, 920);
  EXPECT_EQ(judged(1100, reports, 1321).samples.back().time, 1321);
}

TEST(StragglerProgress, ThreeReportsAndSilenceAreFour) {
  EXPECT_TRUE(judged(1100, {{880, 0.3}, {890, 0.4}, {900, 0.5}}).straggler);
}

TEST(StragglerProgress, OneReportAndSilenceIsNotJudged) {
  EXPECT_EQ(judged(1100, {{10, 0.3}}).samples.size(), 1U);
}

TEST(StragglerProgress, ATaskThatFellSilentForGoodIsGivenUp) {
  // A report a second until 700: what takes ten times restore_hold, 300 s, is more than a pause.
  const Points reports{{697, 0.3}, {698, 0.4}, {699, 0.5}, {700, 0.6}};
  EXPECT_TRUE(judged(1100, reports, 1000).straggler);
  const auto task = judged(1100, reports, 1000.1);
  EXPECT_FALSE(task.straggler);
  EXPECT_EQ(task.growth, std::nullopt);
  EXPECT_EQ(task.reason, "given up until it moves again: it has stood at 0.6 for 300.1 s");
}

TEST(StragglerProgress, OneThatReportsSeldomIsGivenMoreTime) {
  const Points reports{{400, 0.3}, {500, 0.4}, {600, 0.5}, {700, 0.6}};
  EXPECT_TRUE(judged(1000, reports, 1100).straggler);
  EXPECT_FALSE(judged(1000, reports, 1100.1).straggler);
}

TEST(StragglerProgress, OneThatReportsTheSameForEverIsGivenUpToo) {
  model::Workload workload = testing::task("t", 2, 1100, {{997, 0.6}, {998, 0.6}, {999, 0.6}, {1000, 0.6}});
  EXPECT_TRUE(judged(workload).straggler);
  workload.progressed_at = 700;
  EXPECT_TRUE(judged(workload).straggler);
  workload.progressed_at = 699.9;
  EXPECT_FALSE(judged(workload).straggler);
  // It moves again.
  workload.progress = {{998, 0.6}, {999, 0.6}, {999.5, 0.6}, {1000, 0.6}};
  workload.progress.push_back({1001, 0.601});
  workload.progressed_at = 1001;
  EXPECT_THAT(judged(workload).reason, ::testing::Not(::testing::HasSubstr("given up")));
}

TEST(StragglerProgress, OneThatIsLateButMovesIsNotGivenUp) {
  EXPECT_TRUE(judged(200, {{400, 0.3}, {600, 0.31}, {800, 0.32}, {1000, 0.33}}).straggler);
}

}  // namespace berth::policies
