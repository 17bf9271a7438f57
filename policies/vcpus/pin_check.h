// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/workload.h"
#include "policies/settings.h"
#include "policies/vcpus/node.h"

#include <optional>
#include <string>

namespace berth::policies {

// Whether a latency-sensitive workload's pin may stay as it is, other workloads aside.
struct PinCheck {
  int region = -1;    // its domain where the pin stands; -1 where it does not
  std::string fault;  // its fault otherwise

  bool stands() const { return region >= 0; }
};

// A pin stands if it holds exactly `asked` vCPUs, all usable, permitted and unreserved. They must lie inside
// one region that a request of its size may have (docs/decisions/pinning.md, keeping).
PinCheck check_pin(const Node& node, const InterferenceSettings& settings, const model::Workload& workload,
                   int asked);
// With the vCPUs that the workload declares.
PinCheck check_pin(const Node& node, const InterferenceSettings& settings, const model::Workload& workload);

// A pin of an instance with whole cores: it holds all usable threads of as few cores as have `asked` vCPUs.
PinCheck check_cores(const Node& node, const InterferenceSettings& settings, const model::Workload& workload,
                     int asked);

// The same as the first, except for the number. Checks that the vCPUs it holds are good and lie inside one
// region that a request of `vcpus` may have.
PinCheck check_place(const Node& node, const InterferenceSettings& settings, const model::Workload& workload,
                     int vcpus);
// Whether berth last changed a value less than the cool-down ago. A clock that went backwards holds nothing.
bool cools_down(std::optional<double> changed_at, double now, double cooldown_s);

// The fault of single vCPUs of the pin: offline, forbidden or reserved; empty without one.
std::string check_vcpus(const Node& node, const InterferenceSettings& settings,
                        const model::Workload& workload);

}  // namespace berth::policies
