// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/snapshot.h"
#include "policies/interference/policy.h"
#include "policies/vcpus/node.h"

#include <string>
#include <vector>

namespace berth::policies {

// The order of serving: by creation, then by id.
bool is_older(const model::Workload& a, const model::Workload& b);

// A latency-sensitive workload that runs and gets no vCPUs of its own, and why.
struct Homeless {
  const model::Workload* workload = nullptr;
  std::string reason;
  std::string fault = {};  // why its present pin does not stand; empty without one
};

// Keeps services without vCPUs of their own off those that others own, as far as that cuts the use of none:
// those that share the rest must fit into it together. The oldest come first, whatever their pins are, so
// that a plan that is carried out stands. `owned`: by instances and by other programs. Adds to a warning that
// there is what becomes of the service.
void keep_off_owned(std::vector<Homeless> homeless, const Node& node, const model::CpuSet& owned, double now,
                    InterferenceProposal& proposal);

}  // namespace berth::policies
