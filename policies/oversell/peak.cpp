// SPDX-License-Identifier: Apache-2.0
#include "policies/oversell/peak.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace berth::policies {

std::optional<double> percentile_peak(std::vector<double> series) {
  if (series.empty()) return std::nullopt;
  // In integers: 0.95 n is not exact.
  const std::size_t rank = (95 * series.size() + 99) / 100;
  const auto at = series.begin() + static_cast<std::ptrdiff_t>(rank - 1);
  std::nth_element(series.begin(), at, series.end());
  return *at;
}

std::optional<double> normal_peak(const std::vector<double>& series) {
  if (series.empty()) return std::nullopt;
  const auto count = static_cast<double>(series.size());
  double mean = 0;
  for (const double use : series) mean += use / count;
  double variance = 0;
  for (const double use : series) variance += (use - mean) * (use - mean) / count;
  return mean + 3 * std::sqrt(variance);
}

double weighted_utilisation(double cpu_utilisation, double memory_utilisation, double load1, double cpus) {
  const double weight = std::clamp(cpus > 0 ? load1 / cpus : 0, 0.2, 0.8);
  return weight * cpu_utilisation + (1 - weight) * memory_utilisation;
}

const char* to_string(PeakMethod method) {
  switch (method) {
    case PeakMethod::weighted:
      return "weighted";
    case PeakMethod::percentile:
      return "percentile";
    case PeakMethod::normal:
      return "normal";
    case PeakMethod::max:
      break;
  }
  return "max";
}

}  // namespace berth::policies
