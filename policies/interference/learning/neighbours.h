// SPDX-License-Identifier: Apache-2.0
// The pressure of an instance's neighbours over one interval, from the CPU that they used
// (docs/decisions/learning.md, "Observations").
#pragma once

#include "model/cpu_set.h"
#include "model/topology.h"

#include <optional>
#include <vector>

namespace berth::policies {

// The use of a workload over the interval.
struct Use {
  double cores = 0;
  std::optional<double> misses_per_s;  // of the last-level cache; nullopt without counters
};

struct Surroundings {
  double sc = 0;
  double ss = 0;
  std::optional<double> llc;  // misses a second of all others in the domain, per vCPU of it
};

// Spreads the use of each workload evenly over the usable vCPUs where it may run. No vCPU counts as more than
// busy.
class Neighbours {
 public:
  Neighbours(const model::Topology& topology, model::DomainKind shared_domain);

  void add(const model::CpuSet& where, const Use& use);
  // Around an instance of so many vCPUs that was added with the same `where` and `own`. An instance that may
  // run on more vCPUs than it has counts as being on each of them for the same time. nullopt where none of
  // its vCPUs is usable.
  std::optional<Surroundings> around(const model::CpuSet& where, int vcpus, const Use& own) const;

 private:
  struct Place {
    int core = -1;    // index into cores_; -1 where the vCPU is not usable
    int domain = -1;  // index into domains_
  };
  struct Without;  // the load without that of one instance

  std::vector<Place> places_;              // by vCPU number
  std::vector<std::vector<int>> cores_;    // usable vCPUs
  std::vector<std::vector<int>> domains_;  // likewise
  std::vector<double> load_;               // cores, by vCPU number
  std::vector<double> misses_;             // a second, by vCPU number
  bool misses_known_ = true;
};

}  // namespace berth::policies
