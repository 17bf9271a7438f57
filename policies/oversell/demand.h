// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/plan.h"
#include "model/snapshot.h"

#include <optional>
#include <vector>

namespace berth::policies {

// A workload's request for one resource: its reservation, which no change of berth's alters. CPU: its quota,
// else its vCPUs. Memory: its request, else its memory.high. Without these: its mean use. Cores or bytes,
// `capacity` at most.
double request_of(const model::Workload& workload, model::Resource resource, double capacity);

// The host's demand for one resource, in cores or bytes (docs/decisions/overselling.md).
struct Demand {
  double request = 0;                    // sum of all requests, of pending work too
  double latency_sensitive_request = 0;  // the part of it that is not of best-effort work
  std::vector<double> series;            // summed use at the sample times common to those whose use counts
  double warming = 0;                    // requests of workloads that count with their request instead
  double warming_use = 0;                // and the present use of these
  double latest = 0;                     // present use of all workloads
};

// Epoch seconds of the earliest time at which its use was seen.
double known_since(const model::Workload& workload);
// Whether a workload counts with its request. It does if it is known for less than `warmup_s`, or was never
// seen using the resource. Pending work counts so too.
bool is_warming(const model::Workload& workload, model::Resource resource, double now, double warmup_s);
// `workloads`: the snapshot's, ascending by id.
Demand demand_of(const model::Snapshot& snapshot, const std::vector<const model::Workload*>& workloads,
                 model::Resource resource, double capacity, double warmup_s);

}  // namespace berth::policies
