// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/plan.h"
#include "model/snapshot.h"

#include <optional>
#include <vector>

namespace berth::policies {

// What a workload asked for, of one resource: its reservation, which no change of berth's alters. CPU: its
// quota, else its vCPUs; memory: what it requests, else its memory.high; else what it uses on average. Cores
// or bytes, `capacity` at most.
double request_of(const model::Workload& workload, model::Resource resource, double capacity);

// The node's demand for one resource, in cores or bytes (docs/algorithms.md, overselling).
struct Demand {
  double request = 0;          // sum of what was asked for, by pending work too
  std::vector<double> series;  // summed use at the sample times common to those whose use counts
  double warming = 0;          // requests of those that count with it instead
  double warming_use = 0;      // and what these use at present
  double latest = 0;           // summed use of everybody at present
};

// Epoch seconds from which on its use was seen, at the earliest.
double known_since(const model::Workload& workload);
// Who is pending, is known for less than `warmup_s`, or was never seen using the resource, counts with its
// request.
bool is_warming(const model::Workload& workload, model::Resource resource, double now, double warmup_s);
Demand demand_of(const model::Snapshot& snapshot, model::Resource resource, double capacity, double warmup_s);

}  // namespace berth::policies
