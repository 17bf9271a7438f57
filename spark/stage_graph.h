// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

namespace berth::spark {

// Of a stage, all that tells what it reads.
struct KnownStage {
  enum class State { pending, ran, skipped };
  State state = State::pending;
  bool complete = false;
  bool wrote = false;  // to the shuffle
  int rdd = -1;        // that it computes; -1 where that is not known
  int tasks = 0;
};

struct StageGraph {
  // Stages that are not run because an earlier one's output is still there, and which one that is. The output
  // of an RDD is written to the shuffle once; each later job that reads it has a stage of its own for that,
  // which is pending as long as the job runs, and is called skipped then. With adaptive execution every
  // stage's parents are such ones. Where part of that output was lost with an executor, such a stage runs,
  // with as many tasks as that takes: what they did is the earlier one's.
  std::map<int, int> stands_for;
  std::map<int, std::vector<int>>
      parents;  // of stages that ran or are to run, ascending; each one among them
};

// `jobs`: the stages of each, ascending. `logged`: parents as an event log has them, of the stages it knows.
// Of the others nobody tells: in each job, ids are in the order of need, and the one before stands for all.
// A parent's id is below its child's (Spark numbers a stage after those it needs), so that there are no loops
// whatever a log says.
StageGraph graph_of(const std::map<int, KnownStage>& stages, const std::vector<std::vector<int>>& jobs,
                    const std::map<int, std::vector<int>>& logged);

}  // namespace berth::spark
