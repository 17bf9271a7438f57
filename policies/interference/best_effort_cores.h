// SPDX-License-Identifier: Apache-2.0
// The cores that best-effort work may use in a domain in which services without vCPUs of their own are at
// home (docs/decisions/levels.md). The rule is next_cores(); nothing else has to change with it.
#pragma once

#include "model/best_effort_cores.h"
#include "model/cpu_set.h"
#include "policies/vcpus/occupancy.h"

#include <map>
#include <optional>
#include <vector>

namespace berth::policies {

// A domain leaves so many times the services' use to the services.
inline constexpr double kServicesShare = 1.35;
// No core is added for so long after one was taken away.
inline constexpr double kCalm_s = 2;
// Nor unless so many times the use leave it, so that noise about the edge of a core moves nothing.
inline constexpr double kToGrow = 1.02;
// So long after the last loss a domain that services left is as any other one. A service that starts again
// and again finds it as it was.
inline constexpr double kLeft_s = 30;

// `threads`: the vCPUs of each core that may be given, in the order of giving. `services_cores`: the
// services' use in the domain. Returns how many of these cores best-effort work gets: as many as
// kServicesShare times the use leaves, at once if these are fewer than before, and else one more at a time
// (kCalm_s, kToGrow). `may_grow`: false between two ticks, where it gets none more.
// Pure.
int next_cores(const std::vector<int>& threads, double services_cores,
               const std::optional<model::BestEffortCores>& before, double now, bool may_grow = true);

// `services_cores`: by domain id, one entry for each domain in which services are at home. The result has
// these domains, and those that services left until all cores are given back there. `reserved`: no
// service runs there, so best-effort work always may. `before`: what the last plan had. The first to go are
// the cores with the least number, and on a hybrid processor those with the most capacity. Best-effort work
// keeps demand.min_cpus of the whole host. Pure.
std::map<int, model::BestEffortCores> best_effort_cores(const Occupancy& occupancy,
                                                        const BestEffortDemand& demand,
                                                        const std::map<int, double>& services_cores,
                                                        const model::CpuSet& reserved,
                                                        const std::map<int, model::BestEffortCores>& before,
                                                        double now, bool may_grow = true);

}  // namespace berth::policies
