// SPDX-License-Identifier: Apache-2.0
// The forecast of memory and its judge, written again word by word, with no care for time. It uses nothing of
// policies/ but the types of the verdict.
#pragma once

#include "model/memory_series.h"
#include "policies/eviction/forecast/judge.h"

#include <cstddef>
#include <optional>
#include <vector>

namespace berth::policies::naive {

struct Expected {
  bool cycle = false;
  double peak = 0;
  double margin = 0;
  std::size_t errors = 0;
};

// At most 600 readings, at least one.
Expected forecast(const std::vector<model::MemoryReading>& readings, double horizon_s, double confidence);

ForecastVerdict judge(const std::vector<model::MemoryReading>& demand,
                      const std::vector<std::optional<double>>& expected, const ForecastTask& task);

}  // namespace berth::policies::naive
