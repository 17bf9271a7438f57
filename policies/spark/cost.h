// SPDX-License-Identifier: Apache-2.0
// What evicting a Spark application, or one of its executors, would cost in work done again
// (docs/algorithms.md, Spark [USTC]).
#pragma once

#include "model/snapshot.h"
#include "model/spark_findings.h"
#include "policies/spark/settings.h"

#include <map>
#include <string>

namespace berth::policies {

// Seconds that the stage's completed tasks stand for.
double computation_of(const model::SparkStage& stage, Complexity complexity);

// All of the figures but what evicting it frees. `delta`: how much the demand for memory climbs, of which the
// job's remaining time is weighed.
model::SparkAppFigures app_figures(const model::SparkApp& app, const SparkSettings& settings, double delta);

struct ExecutorLoss {
  double lost_s = 0;     // run time of its completed tasks that others would have to do again, or, where its
                         // shuffle blocks move away first, the time of that if it is less
  double kept_s = 0;     // part of it: for what the program has it keep, and it alone keeps
  double running_s = 0;  // what its running tasks have taken so far
};

// By executor id: of each that has a task, or keeps what one computed. A stage's output goes with an executor
// where a later stage has yet to read it: one that is not complete, or one of which something goes too; or
// where what it wrote to the shuffle has no reader yet, or several jobs have read it, the present one among
// them; or the program has it kept, and no other executor does. What went to the driver or to a file is there
// to stay, and an external shuffle service keeps what was written to the shuffle.
std::map<std::string, ExecutorLoss> executor_losses(const model::SparkApp& app,
                                                    const SparkSettings& settings);

}  // namespace berth::policies
