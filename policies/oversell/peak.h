// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policies/oversell/settings.h"

#include <optional>
#include <vector>

namespace berth::policies {

// The smallest value that 95 % of the series do not exceed (nearest rank); nullopt of an empty one.
std::optional<double> percentile_peak(std::vector<double> series);
// Mean and three population standard deviations; nullopt of an empty one.
std::optional<double> normal_peak(const std::vector<double>& series);
// One utilisation for CPU and memory together, weighted by the load of the CPUs [WERIDE]. All four are means
// over five minutes.
double weighted_utilisation(double cpu_utilisation, double memory_utilisation, double load1, double cpus);

// As in configuration and findings.
const char* to_string(PeakMethod method);

}  // namespace berth::policies
