// SPDX-License-Identifier: Apache-2.0
// Why a workload is treated as it is. It has the findings of all policies about the workload, and their
// inputs (docs/contract/explanation.md).
#pragma once

#include "model/eviction_findings.h"
#include "model/plan.h"
#include "model/snapshot.h"
#include "model/straggler_findings.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace berth::model {

// Where the plan has an instance, with the terms of score = k1 * cpu_sc + k2 * cpu_ss.
struct PinExplanation {
  PlacedInstance instance;
  InterferenceModel coefficients;
  std::string pressure_source;  // in words
  std::string
      search_reason;  // in words: how good the whole placement is; empty where the search says nothing
};

// Best-effort work that has less of a resource for the sake of stragglers.
struct Payer {
  std::string workload;
  HeldLimit held;
  Resources amount;  // of one resource
};

// The cost of evicting the workload, and its place in the order of eviction.
struct EvictionExplanation {
  std::optional<EvictionCandidate> candidate;  // nullopt where it is spared
  std::optional<std::string> spared;           // why
  std::size_t position = 0;                    // among the candidates, from 1; 0 where it is none
  std::size_t candidates = 0;
  bool victim = false;  // it would go now
  std::string memory;   // whether memory is wanted, in words
};

// A Spark application whose driver is known.
struct ApplicationExplanation {
  std::string id;
  SparkAppFigures figures;
  double delta = 0;                    // of the remaining time that is weighed against the cost
  std::vector<std::string> workloads;  // its candidates on this host, first victim first
};

struct WorkloadExplanation {
  Workload workload;  // as in the snapshot, without its samples
  bool pending = false;
  std::optional<double> mean_cores;           // over its samples; nullopt without any
  std::optional<std::uint64_t> memory_bytes;  // in use; nullopt without a sample
  std::optional<std::string> left_alone;      // why berth leaves it alone
  std::optional<PinExplanation> pin;          // nullopt where it is not placed
  std::optional<Isolation> isolation;         // of a latency-sensitive one
  std::optional<SharedInstance> shared;       // nullopt where it is not shared
  std::optional<std::string> unplaceable;     // why it gets no vCPUs
  std::optional<std::string> unconfined;      // why it cannot be kept off those of others
  std::vector<ServiceWarning> warnings;       // what can harm it
  std::optional<WaitingInstance> waiting;     // why its threads wait for vCPUs for too long
  std::optional<BestEffortGroup> group;       // of a best-effort one: the group that it is in
  std::optional<BestEffortPool> pool;         // of a best-effort one: the vCPUs that it shares
  std::optional<std::string> lifted;          // why its CPU quota is lifted
  std::optional<std::string> bursting;        // why it has a burst
  std::optional<StragglerTask> task;
  std::optional<RedundantTask> redundant;
  std::optional<std::string> keeping;  // why it lends nothing although it would be redundant
  std::optional<Resources> lacks;      // what this host cannot give it
  // Its own moves. For a straggler that was given something this tick, also the moves of the payers.
  std::vector<LimitMove> moves;
  // For a straggler that is grown: all present payers, whichever straggler they paid for, and whenever.
  std::vector<Payer> payers;
  std::optional<Resources> idle;                      // of the host, where the straggler policy ran
  std::vector<Action> actions;                        // of the plan, about this workload
  std::optional<EvictionExplanation> eviction;        // of a best-effort one, where the eviction policy ran
  std::optional<ApplicationExplanation> application;  // whose executor or driver it is
};

struct DecisionExplanation {
  std::string id;
  // The action, where the present plan or one that was shown earlier holds it; with the time of that plan, of
  // the same clock as Explanation::time.
  std::optional<Action> planned;
  std::optional<double> planned_at;
  bool present = false;  // whether that is the present plan
};

struct Explanation {
  std::string host;
  double time = 0;          // of the snapshot
  double wall_ahead_s = 0;  // likewise
  std::optional<DecisionExplanation> decision;
  std::optional<WorkloadExplanation> workload;
  std::optional<ApplicationExplanation> application;  // where that was asked for
  std::optional<WorkloadFinding> other = {};          // of a group of other work: where it may run, and why
};

// A berth.explain/1 document, on one line without a trailing newline.
std::string to_json(const Explanation& explanation);

}  // namespace berth::model
