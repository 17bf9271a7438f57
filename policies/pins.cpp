// SPDX-License-Identifier: Apache-2.0
#include "policies/pins.h"

#include "policies/interference/policy.h"
#include "policies/straggler/policy.h"

namespace berth::policies {

std::map<std::string, model::PlacedInstance> planned_pins(const model::Snapshot& snapshot,
                                                          const PolicySettings& settings) {
  const OrderedSnapshot ordered(snapshot);
  const GrownRequests grown = grown_requests(propose_help(ordered, settings).findings);
  return propose_pins(ordered, settings.interference, grown, {}, settings.safety.repin_cooldown_s)
      .findings.instances;
}

}  // namespace berth::policies
