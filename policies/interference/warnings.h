// SPDX-License-Identifier: Apache-2.0
// Services that a pin, or the lack of one, can harm (docs/decisions/pinning.md, warnings).
#pragma once

#include "model/plan.h"
#include "model/snapshot.h"
#include "policies/interference/queue.h"
#include "policies/vcpus/search.h"

#include <functional>
#include <optional>
#include <vector>

namespace berth::policies {

// A use of so many times its vCPUs counts as more than its vCPUs. Samples of a pinned workload lie a little
// above them too, as two readings are never exact.
inline constexpr double kMoreThanVcpus = 1.02;
inline constexpr double kMoreThanPinned = 1.10;
// A pin hides a use beyond it. A pinned service has too few vCPUs if it uses this share of them, and one of
// its threads waits for a vCPU in this share of the time.
inline constexpr double kFullShare = 0.95;
inline constexpr double kHighPressure = 0.2;
// Without samples, its CPU time since its creation tells its use, if it is as old as that.
inline constexpr double kLeastLife_s = 10;

// CPU time since its creation over its age; nullopt without it, and for a workload younger than kLeastLife_s.
std::optional<double> mean_cores_of_life(const model::Workload& workload, double now);

// Cores that the workload was measured to use: the mean of its samples. Without samples it is the mean since
// its creation, unless it is pinned. nullopt where neither is known.
std::optional<double> measured_cores(const model::Workload& workload, double now);

// Whether a pin to `vcpus` would cut the use of the workload, and its rule does not force it.
bool would_be_cut(const model::Workload& workload, int vcpus, double now);

// The vCPUs that cover the measured use of the workload; 1 where it is not known.
int vcpus_that_cover(const model::Workload& workload, double now);

// The least number of vCPUs from `least` on for which the service finds a place; nullopt: there is none.
using PlaceFor = std::function<std::optional<int>(int least)>;

// "quota": its own CPU quota throttles it. nullopt for work that is left alone.
std::optional<model::ServiceWarning> throttled_warning(const model::Workload& workload, double now);

// "use": it uses more than its vcpus, forced or not, or its pin hides whether it would. Nothing for work
// without vcpus, and for work that is left alone. `asked`: the vCPUs that it is to own, more than it declares
// while it is grown.
std::vector<model::ServiceWarning> own_warnings(const model::Workload& workload, int asked, double now,
                                                const PlaceFor& place_for);

// So many numbers of vCPUs are tried for a service without a place.
inline constexpr int kMostTries = 64;
// The most vCPUs, fewer than the request's, for which there is a place beside the placed instances; 0: none
// that was tried.
int most_that_fit(const Occupancy& occupancy, const InterferenceSettings& settings,
                  const BestEffortDemand& best_effort, const PlacementRequest& request);
// The least, from the request's on, for which there is a place beside the placed instances but `tenant` (-1:
// all); nullopt: none that was tried.
std::optional<int> least_that_fits(const Occupancy& occupancy, int tenant,
                                   const InterferenceSettings& settings, const BestEffortDemand& best_effort,
                                   PlacementRequest request);

// Adds the warnings about all services that run, sorted. `grown`: what stragglers are to own; `placement`:
// after the search of `queue`; `now`: epoch seconds.
void find_warnings(const Workloads& workloads, const GrownRequests& grown, const Queue& queue,
                   const Placement& placement, const InterferenceSettings& settings,
                   const BestEffortDemand& demand, double now, model::InterferenceFindings& findings);

}  // namespace berth::policies
