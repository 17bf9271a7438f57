// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/cpu_set.h"
#include "model/learning.h"
#include "model/snapshot.h"
#include "policies/interference/learning/learn.h"
#include "policies/interference/learning/neighbours.h"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace berth::policies {

// Where a workload ran until its pin changed.
struct Stay {
  model::CpuSet cpus;  // empty: it had no pin
  double until = 0;    // of the snapshots' clock
};
// The changes of pins between two ticks: by workload, in the order of time.
using Moves = std::map<std::string, std::vector<Stay>>;
// Adds that the pin of a workload in the snapshot, which was made before, changed at `now`.
void add_move(Moves& moves, const model::Snapshot& snapshot, const std::string& workload, double now);

// Makes observations of the snapshots of one tick after the other (docs/decisions/learning.md). The response
// of an instance is the first that can be had: cpi where its cycles are counted, cost where it reports
// progress, else cpu.
class Observations {
 public:
  struct Tick {
    std::vector<model::Observation> seen;  // ascending by instance
    std::vector<SetAside> fallen;          // instances whose progress fell
    // Instances without an observation, because their quota throttled them and nothing but their use tells.
    std::size_t throttled = 0;
  };
  // Costs nothing for workloads that used no CPU since the snapshot before, and nothing at all where no
  // latency-sensitive instance with vCPUs did. Ticks may be missing: work that went on meanwhile is no
  // observation. A workload that moved since the last tick is a neighbour for a part of the interval at each
  // of its places. It is no instance to observe.
  Tick take(const model::Snapshot& snapshot, model::DomainKind shared_domain, const Moves& moves = {});

 private:
  // The use of an instance since its progress last rose.
  struct Work {
    double created = 0;  // of the run
    double seen_at = 0;  // time of the newest sample in it
    double fraction = 0;
    bool whole = false;  // begins at a change of the progress: the next rise divides by no more than that
    double cpu_s = 0;
    double time_s = 0;
    double sc = 0;  // times seconds
    double ss = 0;
    double llc = 0;
    bool llc_known = true;
    bool fresh = true;  // seen in this tick
  };

  void observe(const model::Workload& workload, const Surroundings& around, double interval_s, Tick& tick);
  void add_work(const model::Workload& workload, double fraction, const Surroundings& around,
                double interval_s, model::Observation& seen, Tick& tick);

  std::map<std::string, Work> work_;  // by workload
};

}  // namespace berth::policies
