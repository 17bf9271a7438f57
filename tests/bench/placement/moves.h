// SPDX-License-Identifier: Apache-2.0
// How often pinned instances move where use is noisy. The policies decide every second, as in berthd, and see
// a window of samples of a second each. The simulated machine tells what the moves gain.
//
// The use of an instance in a second is that of the machine's steady state of this minute, times noise. The
// noise is log-normal, with a coefficient of variation of 0.3.
//
// The load of a service swings by a factor of five over the day. Besides, it drifts: log-normal, with a
// coefficient of variation of 0.2 and a correlation time of two minutes. Every 15 minutes on average it has a
// burst. The burst multiplies the load by 1.5 to 3, for half a minute on average.
//
// Each batch software changes its number of threads every ten minutes on average. The new number is 0 to 2
// for each three vCPUs that no instance asked for.
//
// A move costs 10 ms of CPU for each vCPU of the instance, because its caches are cold. One core that reads
// 4 GB/s, as the machine has it, fills a whole last-level cache of 16 MiB in 4 ms, and one of 32 MiB in 8 ms.
// Linux assumes 0.5 ms for a thread (sched_migration_cost_ns).
#pragma once

#include "tests/bench/placement/nodes.h"

#include <vector>

namespace berth::policies::bench {

struct MovesSettings {
  double hours = 1;       // without arrivals and departures, and as many with them; at most 24
  bool variants = false;  // also ways with other settings
  int only = 0;           // the number of the only node, from 1; 0: all
};
// Prints a table in Markdown.
void print_moves(const MovesSettings& settings);

}  // namespace berth::policies::bench
