// SPDX-License-Identifier: Apache-2.0
// The forecasts that the learned one is measured against.
#pragma once

#include "model/memory_series.h"

#include <optional>
#include <span>

namespace berth::policies {

// The demand that each method expects within `horizon_s`, in bytes. `readings`: ascending in time, the last
// one is the present. nullopt where there is none.
//
// The published rule: M + z * sd of the last `window` readings while they rise, and no horizon.
std::optional<double> expect_published(std::span<const model::MemoryReading> readings, int window, double z);
std::optional<double> expect_last_value(std::span<const model::MemoryReading> readings);
// The end of the least-squares line through the last `window` readings, at the latest value or above.
std::optional<double> expect_straight_line(std::span<const model::MemoryReading> readings, int window,
                                           double horizon_s);

}  // namespace berth::policies
