// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/snapshot.h"
#include "policies/settings.h"
#include "policies/vcpus/node.h"

#include <optional>
#include <vector>

namespace berth::policies {

// How far latency-sensitive tasks can grow inside their domains (docs/decisions/stragglers.md, extension).
// The first task that is asked about may claim the free vCPUs; the next one gets the rest.
class Domains {
 public:
  // Keeps references to both. Costs nothing before the first question.
  Domains(const model::Snapshot& snapshot, const InterferenceSettings& settings);

  // The most vCPUs a task can have without leaving its domain. The domain is the region that its pin lies in,
  // or the largest its request may be placed in. For a task that is never pinned it is the whole host.
  // Counted are the vCPUs there that the task may own and that no other latency-sensitive pin and no claim
  // holds. Always, be_min_cpus vCPUs of the host stay with others.
  int most(const model::Workload& task) const;

  // Sets aside the free vCPUs that a pinned task needs to own `vcpus` in all.
  void claim(const model::Workload& task, int vcpus);

 private:
  struct Claim {
    int region = 0;
    int vcpus = 0;
  };
  const Node& node() const;
  int room(const model::Workload& task, int region, int kind, const model::CpuSet& others) const;

  const model::Snapshot& snapshot_;
  const InterferenceSettings& settings_;
  mutable std::optional<Node> node_;
  std::vector<Claim> claims_;
};

}  // namespace berth::policies
