// SPDX-License-Identifier: Apache-2.0
// One instance as a lender: its target, its misses and its pauses (docs/decisions/borrowing.md).
#pragma once

#include "model/borrowing.h"
#include "model/cpu_set.h"
#include "model/workload.h"
#include "policies/interference/settings.h"

#include <cstddef>
#include <optional>
#include <string>

namespace berth::policies {

// An instance that is younger lends nothing.
inline constexpr double kYoungLender_s = 60;
// It lends nothing for so long after it was last found to be a straggler.
inline constexpr double kStraggledLender_s = 60;
// A delay that is not known for so many samples is a miss.
inline constexpr std::size_t kBlindSamples = 3;
// Its usual figures, and its use, are those of so many samples.
inline constexpr std::size_t kLenderSamples = 10;
// They are measured again so often.
inline constexpr double kMeasuredAgain_s = 600;
// The target is so many times the usual delay, and never below kLeastTarget_s: a switch of context and an
// interrupt take that long by themselves.
inline constexpr double kDelayRise = 1.2;
inline constexpr double kLeastTarget_s = 1e-4;
// Nothing is added while cycles per instruction are so many times the usual ones; at kDelayRise times it is a
// miss.
inline constexpr double kResponseRise = 1.05;
// Weight of the newest figure in the smoothed cycles per instruction.
inline constexpr double kNewestResponse = 0.2;
// The first pause after a miss. Each later one is twice as long, up to kLongestPause_s.
inline constexpr double kFirstPause_s = 10;
inline constexpr double kLongestPause_s = 600;
// Misses are forgiven once it had none for so long after its last pause.
inline constexpr double kForgiven_s = 600;
// A sample without a figure of the delay, of an instance that used no more than this, has no delay.
inline constexpr double kIdleCores = 0.001;

// CPU use over the last samples, in cores; 0 without any.
struct RecentUse {
  double mean_cores = 0;
  double most_cores = 0;
};
RecentUse recent_use(const model::Workload& workload, std::size_t count);

// A lender as it stands at this tick.
struct LenderNow {
  model::Lender finding;
  bool may_grow = false;         // it may lend one vCPU more at least
  bool open = false;             // it lends, or soon may: nothing forbids it, and it does not pause
  std::size_t most = 0;          // vCPUs that it may go on to lend
  std::size_t most_to_grow = 0;  // vCPUs that it may lend after any are added
};

// Judges an instance. `cpus` are those that it owns after the plan: it lends only while its pin stands.
// `grown`: the instance is a straggler, and gets more vCPUs. finding.state has the vCPUs that it still lends,
// and no new one. Pure.
LenderNow judge_lender(const model::Workload& workload, const model::CpuSet& cpus, bool grown, double now,
                       const InterferenceSettings& settings);

// The next pause after one of `pause_s` (0: none).
double next_pause_s(double pause_s);

}  // namespace berth::policies
