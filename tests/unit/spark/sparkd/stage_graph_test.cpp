// SPDX-License-Identifier: Apache-2.0
#include "spark/sparkd/stage_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::spark {
namespace {

using State = KnownStage::State;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

KnownStage mapped(int rdd) { return {.state = State::ran, .complete = true, .wrote = true, .rdd = rdd}; }
KnownStage running(int rdd) { return {.state = State::ran, .complete = false, .wrote = false, .rdd = rdd}; }
KnownStage pending(int rdd) {
  return {.state = State::pending, .complete = false, .wrote = false, .rdd = rdd};
}
KnownStage skipped(int rdd) {
  return {.state = State::skipped, .complete = false, .wrote = false, .rdd = rdd};
}

TEST(StageGraph, WithoutALogTheOneBeforeInItsJobIsAStagesParent) {
  const auto graph =
      graph_of({{0, mapped(1)}, {1, mapped(2)}, {2, running(3)}, {3, running(4)}}, {{0, 1, 2}, {3}}, {});
  EXPECT_THAT(graph.parents, ElementsAre(Pair(1, ElementsAre(0)), Pair(2, ElementsAre(1))));
  EXPECT_THAT(graph.stands_for, IsEmpty());
}

TEST(StageGraph, ALogTellsWhichStageReadsWhat) {
  const auto graph = graph_of({{0, mapped(1)}, {1, mapped(2)}, {2, running(3)}}, {{0, 1, 2}},
                              {{0, {}}, {1, {}}, {2, {0, 1}}});
  EXPECT_THAT(graph.parents, ElementsAre(Pair(2, ElementsAre(0, 1))));
}

TEST(StageGraph, OfStagesThatALogDoesNotKnowTheOrderStillTells) {
  const auto graph =
      graph_of({{0, mapped(1)}, {1, mapped(2)}, {2, mapped(3)}, {3, running(4)}}, {{0, 1, 2, 3}}, {{2, {0}}});
  EXPECT_THAT(graph.parents,
              ElementsAre(Pair(1, ElementsAre(0)), Pair(2, ElementsAre(0)), Pair(3, ElementsAre(2))));
}

// As adaptive execution has it: each stage in a job of its own, behind stages that are not run again.
TEST(StageGraph, AStageThatIsSkippedStandsForTheOneWhoseOutputIsThere) {
  const std::map<int, KnownStage> stages{{0, mapped(1)},  {1, skipped(1)}, {2, mapped(5)},
                                         {3, pending(1)}, {4, pending(5)}, {5, running(9)}};
  const std::vector<std::vector<int>> jobs{{0}, {1, 2}, {3, 4, 5}};
  auto graph = graph_of(stages, jobs, {});
  EXPECT_THAT(graph.stands_for, ElementsAre(Pair(1, 0), Pair(3, 0), Pair(4, 2)));
  EXPECT_THAT(graph.parents, ElementsAre(Pair(2, ElementsAre(0)), Pair(5, ElementsAre(2))));
  graph = graph_of(stages, jobs, {{2, {1}}, {4, {3}}, {5, {3, 4}}});
  EXPECT_THAT(graph.parents, ElementsAre(Pair(2, ElementsAre(0)), Pair(5, ElementsAre(0, 2))));
}

TEST(StageGraph, WhatIsStillToBeWrittenIsStoodForByNobody) {
  // Two shuffles of one RDD, in one job.
  EXPECT_THAT(graph_of({{0, mapped(1)}, {1, pending(1)}}, {{0, 1}}, {}).stands_for, IsEmpty());
  // It wrote nothing, is not through, or is not known by its RDD.
  EXPECT_THAT(graph_of({{0, running(1)}, {1, pending(1)}}, {{0}, {1}}, {}).stands_for, IsEmpty());
  auto half = mapped(1);
  half.complete = false;
  EXPECT_THAT(graph_of({{0, half}, {1, pending(1)}}, {{0}, {1}}, {}).stands_for, IsEmpty());
  EXPECT_THAT(graph_of({{0, mapped(-1)}, {1, pending(-1)}}, {{0}, {1}}, {}).stands_for, IsEmpty());
}

TEST(StageGraph, WhatRunsAgainForAPartThatWasLostIsTheEarlierStages) {
  auto whole = mapped(1);
  whole.tasks = 4;
  auto part = mapped(1);
  part.tasks = 2;
  const std::vector<std::vector<int>> jobs{{0, 1}, {2, 3}, {4, 5}};
  const auto graph = graph_of(
      {{0, whole}, {1, running(2)}, {2, part}, {3, running(3)}, {4, pending(1)}, {5, running(4)}}, jobs, {});
  EXPECT_THAT(graph.stands_for, ElementsAre(Pair(2, 0), Pair(4, 0)));
  EXPECT_THAT(graph.parents,
              ElementsAre(Pair(1, ElementsAre(0)), Pair(3, ElementsAre(0)), Pair(5, ElementsAre(0))));
  // All of it: for all that is known, another shuffle.
  part.tasks = 4;
  EXPECT_THAT(graph_of({{0, whole}, {2, part}}, jobs, {}).stands_for, IsEmpty());
}

TEST(StageGraph, SkippedStagesThatStandForNobodyAreNobodysParents) {
  const auto graph = graph_of({{0, skipped(1)}, {1, running(2)}}, {{0, 1}}, {{1, {0}}});
  EXPECT_THAT(graph.parents, IsEmpty());
}

TEST(StageGraph, WhateverALogSaysThereAreNoLoopsAndNoStrangers) {
  const auto graph =
      graph_of({{0, mapped(1)}, {1, mapped(2)}}, {}, {{0, {1, 0, -5, 77}}, {1, {1, 0}}, {9, {0}}});
  EXPECT_THAT(graph.parents, ElementsAre(Pair(1, ElementsAre(0))));
}

}  // namespace
}  // namespace berth::spark
