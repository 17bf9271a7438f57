// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace berth::policies {

// How the peak of a host's use is computed from its samples.
enum class PeakMethod { weighted, percentile, normal, max };

// Utilisation must fall this far below the stop threshold before the host takes work again.
inline constexpr double kStopHysteresis = 0.05;

// The [oversell] table; defaults and meaning in berth.toml(5) and docs/decisions/overselling.md.
struct OversellSettings {
  PeakMethod peak = PeakMethod::max;
  double warmup_s = 600;               // age up to which a workload counts with its request
  double max_factor = 1.5;             // the largest factor that is advertised
  double factor_rise = 0.02;           // the most that the factor rises in one tick
  double stop_threshold = 0.85;        // utilisation from which no new work is taken
  double reserve = 0.05;               // share of the memory that must stay unused
  std::uint64_t memory_cap_bytes = 0;  // memory that may be used; 0: all of it
  bool evict = false;                  // the plan ends work where memory in use passes the threshold
  int top_priority = 100;              // the highest preset priority: work below it may be evicted
  bool evict_highest = false;          // best-effort work of that priority or more may be evicted too
};

}  // namespace berth::policies
