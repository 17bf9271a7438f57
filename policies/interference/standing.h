// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/workload.h"
#include "policies/interference/node.h"
#include "policies/interference/settings.h"

#include <string>

namespace berth::policies {

// Whether a latency-sensitive workload's pin may stay as it is, other workloads aside.
struct Standing {
  int region = -1;    // its domain where the pin stands; -1 where it does not
  std::string fault;  // what is wrong with it otherwise

  bool stands() const { return region >= 0; }
};

// A pin stands that holds exactly `asked` vCPUs, all usable, permitted and unreserved, inside one region that
// a request of its size may have (docs/algorithms.md, keeping).
Standing check_pin(const Node& node, const InterferenceSettings& settings, const model::Workload& workload,
                   int asked);
// With the vCPUs that the workload declares.
Standing check_pin(const Node& node, const InterferenceSettings& settings, const model::Workload& workload);

// The same but for the number: whether what it holds is good as far as it goes, inside one region that a
// request of `vcpus` may have.
Standing check_place(const Node& node, const InterferenceSettings& settings, const model::Workload& workload,
                     int vcpus);
// What is wrong with single vCPUs of the pin: offline, forbidden or reserved; empty where nothing is.
std::string check_vcpus(const Node& node, const InterferenceSettings& settings,
                        const model::Workload& workload);

}  // namespace berth::policies
