// SPDX-License-Identifier: Apache-2.0
// Limits of values that come from outside. The configuration, the bus and the documents take the same ones.
#pragma once

#include <cstddef>

namespace berth::model {

// The end of the year 9999, in epoch seconds. Milliseconds taken for seconds are beyond it.
inline constexpr double kLastTime_s = 253402300799.0;

// A workload's settings (berth.toml(5)).
inline constexpr std::size_t kMaxServiceBytes = 256;
inline constexpr int kMaxPriority = 1'000'000;  // either side of 0
inline constexpr double kMinDeadline_s = 1;
inline constexpr double kMaxDeadline_s = 10.0 * 365 * 86400;

}  // namespace berth::model
