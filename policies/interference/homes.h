// SPDX-License-Identifier: Apache-2.0
// The homes of services that own no vCPUs by their isolation (docs/decisions/levels.md).
#pragma once

#include "model/plan.h"
#include "policies/interference/best_effort.h"
#include "policies/interference/queue.h"
#include "policies/vcpus/occupancy.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace berth::policies {

struct HomeSearch {
  const Occupancy& occupancy;     // with all instances that own vCPUs
  const model::CpuSet& withheld;  // vCPUs that no instance owns, and services may not use
  // Of these, those that are not usable, though an unpinned service would run there: open_to_all(), and
  // Node::reserved().
  const model::CpuSet& off_limits;
  double best_effort_cores = 0;        // use of best-effort work
  const std::set<std::string>& wider;  // services whose home is to become wider
  const Hold& hold;                    // of pins
  bool between_ticks = false;          // no home that stands becomes wider
};

// A home of each, by workload id. A home that stands stays, and becomes wider if the service waits, or uses
// more than it has room for. The others go to the domain with room for their use in which the score of all
// services there rises least. Of several new ones, those with the largest use come first. A service whose use
// is not known has none. A pin that `hold` holds gets no more vCPUs of the same home, as long as these are
// enough. Pure.
std::map<std::string, model::SharedInstance> choose_homes(const HomeSearch& search,
                                                          const std::vector<SharedRequest>& requests);

// The slower vCPUs of a hybrid processor, while services need at most kFullShare of the faster ones that are
// open to them: best-effort work has the slower ones to itself then. Else empty, and while services run there
// until four fifths suffice. Pure.
model::CpuSet slower_cpus_to_leave(const Occupancy& occupancy, const model::CpuSet& withheld,
                                   const std::vector<SharedRequest>& requests);

// The services' use by the id of each domain in which any of them is at home, by their newest samples. A
// service without one counts with its request.
std::map<int, double> use_by_domain(const Occupancy& occupancy, const model::CpuSet& withheld,
                                    const std::vector<SharedRequest>& requests,
                                    const std::map<std::string, model::SharedInstance>& homes);

// Adds the pins that these homes need, and gives back those that they do not.
void pin_to_homes(const std::vector<SharedRequest>& requests,
                  const std::map<std::string, model::SharedInstance>& homes,
                  std::vector<model::Action>& actions);

}  // namespace berth::policies
