// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policies/eviction/settings.h"
#include "policies/interference/settings.h"
#include "policies/oversell/settings.h"
#include "policies/placement/settings.h"
#include "policies/quota/settings.h"
#include "policies/straggler/settings.h"

namespace berth::policies {

// The part of the [safety] table that the arbiter obeys (docs/decisions/arbiter.md).
struct SafetySettings {
  double min_change = 0.01;        // a write that changes a number by less than this share is dropped
  double be_quota_rise = 0.10;     // of the host's vCPUs: the most a best-effort quota rises in one tick
  double repin_cooldown_s = 10.0;  // a pinned latency-sensitive workload is not moved again sooner
};

struct PolicySettings {
  InterferenceSettings interference;
  StragglerSettings straggler;
  EvictionSettings eviction;
  OversellSettings oversell;
  PlacementSettings placement;
  QuotaSettings quota;
  SafetySettings safety;
};

}  // namespace berth::policies
