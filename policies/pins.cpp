// SPDX-License-Identifier: Apache-2.0
#include "policies/pins.h"

#include "policies/interference/policy.h"
#include "policies/straggler/policy.h"
#include "policies/vcpus/pool.h"

namespace berth::policies {

std::optional<PolicySettings> sparing_owned_cpus(const model::Snapshot& snapshot,
                                                 const PolicySettings& settings) {
  const model::CpuSet owned = of_any_owner(snapshot.owned_cpus) & snapshot.topology.usable();
  if (owned.is_subset_of(settings.interference.reserved_cpus)) return std::nullopt;
  PolicySettings sparing = settings;
  sparing.interference.reserved_cpus |= owned;
  return sparing;
}

std::map<std::string, model::PlacedInstance> planned_pins(const model::Snapshot& snapshot,
                                                          const PolicySettings& settings) {
  if (const auto sparing = sparing_owned_cpus(snapshot, settings)) return planned_pins(snapshot, *sparing);
  const OrderedSnapshot ordered(snapshot);
  const GrownRequests grown = grown_requests(propose_help(ordered, settings).findings);
  return propose_pins(ordered, settings.interference, grown, {}, settings.safety.repin_cooldown_s)
      .findings.instances;
}

}  // namespace berth::policies
