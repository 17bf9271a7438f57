// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

namespace berth::spark {

// The facts of a stage that show which output it reads.
struct KnownStage {
  enum class State { pending, ran, skipped };
  State state = State::pending;
  bool complete = false;
  bool wrote = false;  // to the shuffle
  int rdd = -1;        // the RDD that it computes; -1 where that is not known
  int tasks = 0;
};

struct StageGraph {
  // Stages that do not run because an earlier stage's output is still there, and that earlier stage. The
  // output of an RDD is written to the shuffle once. Each later job that reads it has a stage of its own for
  // it. That stage is pending while the job runs, and then called skipped. With adaptive execution every
  // stage's parents are such stages.
  //
  // Where a part of that output was lost with an executor, such a stage runs with as many tasks as that part
  // takes. The work of these tasks belongs to the earlier stage.
  std::map<int, int> stands_for;
  // By stage that ran or will run, ascending. Each parent is one of these stages.
  std::map<int, std::vector<int>> parents;
};

// `jobs`: the stages of each job, ascending. `logged`: parents from an event log, of the stages in it.
//
// For other stages the parents are unknown. In each job, ids are in the order of need, so the one before
// counts as the parent. A parent's id is below its child's, as Spark numbers a stage after those it needs. So
// there are no loops, whatever a log contains.
StageGraph graph_of(const std::map<int, KnownStage>& stages, const std::vector<std::vector<int>>& jobs,
                    const std::map<int, std::vector<int>>& logged);

}  // namespace berth::spark
