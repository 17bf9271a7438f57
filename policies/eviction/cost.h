// SPDX-License-Identifier: Apache-2.0
// The cost of evicting a Spark application, or one of its executors, in work done again
// (docs/decisions/eviction-cost.md [USTC]).
#pragma once

#include "model/eviction_findings.h"
#include "model/snapshot.h"
#include "policies/eviction/settings.h"

#include <map>
#include <string>

namespace berth::policies {

// Seconds of work in the stage's completed tasks.
double computation_of(const model::SparkStage& stage, Complexity complexity);

// All of the figures except the memory that evicting it frees. `delta`: how fast the demand for memory
// climbs. It weighs the job's remaining time.
model::SparkAppFigures app_figures(const model::SparkApp& app, const EvictionSettings& settings,
                                   double delta);

struct ExecutorLoss {
  double lost_s = 0;     // run time of its completed tasks that others would repeat; or the time to move its
                         // shuffle blocks, if these move first and that is less
  double kept_s = 0;     // part of it: for data that the program keeps, on this executor only
  double running_s = 0;  // run time so far of its running tasks
};

// By executor id: each executor that has a task, or keeps the result of one. A stage's output goes with an
// executor where a later stage that reads it is not complete, or loses output too. Shuffle output also goes
// where it has no reader yet, or where several jobs have read it, the present one among them. So does output
// that the program keeps and no other executor has. Output that went to the driver or to a file is never
// lost. Shuffle output is not lost with an external shuffle service.
std::map<std::string, ExecutorLoss> executor_losses(const model::SparkApp& app,
                                                    const EvictionSettings& settings);

}  // namespace berth::policies
