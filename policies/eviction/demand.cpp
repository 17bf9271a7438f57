// SPDX-License-Identifier: Apache-2.0
#include "policies/eviction/demand.h"

#include "model/json.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <set>
#include <unordered_set>
#include <vector>

namespace berth::policies {

namespace {

// A smaller rise over the whole window, as a share of the mean, is rounding.
constexpr double kNoRise = 1e-9;

std::vector<double> last_times(const std::vector<const model::Workload*>& workloads, std::size_t window) {
  std::set<double> times;
  std::unordered_set<std::uint64_t> seen;  // most workloads were read at the same times
  for (const model::Workload* workload : workloads) {
    const model::UsageWindow& usage = workload->usage;
    if (usage.memory().known == 0) continue;
    if (usage.memory().known == usage.size() && !seen.insert(usage.times_hash()).second) continue;
    // The last `window` instants at which it was read are the only ones that can be among the last `window`
    // of all.
    std::size_t taken = 0;
    double before = std::numeric_limits<double>::infinity();
    for (auto sample = usage.rbegin(); sample != usage.rend() && taken < window; ++sample) {
      if (!sample->memory_bytes || sample->time == before) continue;
      times.insert(before = sample->time);
      ++taken;
    }
  }
  const std::size_t skip = times.size() > window ? times.size() - window : 0;
  return {std::next(times.begin(), static_cast<std::ptrdiff_t>(skip)), times.end()};
}

// The sums of all latency-sensitive workloads, at each time.
struct Sums {
  std::vector<double> times;
  std::vector<double> bytes;
};

void add_samples(const model::UsageWindow& usage, Sums& sums) {
  if (usage.memory().known == 0) return;
  if (usage.with_steady_memory() && usage.front().time <= sums.times.front()) {
    for (double& sum : sums.bytes) sum += usage.memory().max;
    return;
  }
  double bytes = 0;
  auto sample = usage.begin();
  for (std::size_t i = 0; i < sums.times.size(); ++i) {
    for (; sample != usage.end() && sample->time <= sums.times[i]; ++sample) {
      if (sample->memory_bytes) bytes = static_cast<double>(*sample->memory_bytes);
    }
    sums.bytes[i] += bytes;
  }
}

Sums sums_of(const model::Snapshot& snapshot, std::size_t window) {
  std::vector<const model::Workload*> workloads;
  for (const model::Workload& workload : snapshot.workloads) {
    if (workload.workload_class == model::WorkloadClass::latency_sensitive) workloads.push_back(&workload);
  }
  Sums sums{.times = last_times(workloads, window), .bytes = {}};
  sums.bytes.assign(sums.times.size(), 0.0);
  if (sums.times.empty()) return sums;
  for (const model::Workload* workload : workloads) add_samples(workload->usage, sums);
  return sums;
}

}  // namespace

model::MemoryDemand figures_of(const std::vector<double>& times, const std::vector<double>& sums) {
  model::MemoryDemand demand;
  demand.samples = times.size();
  if (times.empty()) return demand;
  const auto count = static_cast<double>(times.size());
  double mean_time = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    demand.mean_bytes += sums[i];
    mean_time += (times[i] - times[0]) / count;
  }
  demand.mean_bytes /= count;
  double squares = 0;
  double time_squares = 0;
  double products = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const double off = sums[i] - demand.mean_bytes;
    const double time_off = times[i] - times[0] - mean_time;
    squares += off * off;
    time_squares += time_off * time_off;
    products += off * time_off;
  }
  demand.sd_bytes = std::sqrt(squares / count);
  demand.latest_bytes =
      static_cast<std::uint64_t>(std::min(sums.back(), static_cast<double>(model::kMaxBytes)));
  if (time_squares > 0) demand.slope_bytes_per_s = products / time_squares;
  demand.rising = demand.slope_bytes_per_s * (times.back() - times.front()) > kNoRise * demand.mean_bytes;
  return demand;
}

model::MemoryDemand demand_of(const model::Snapshot& snapshot, int window) {
  const Sums sums = sums_of(snapshot, static_cast<std::size_t>(std::max(1, window)));
  return figures_of(sums.times, sums.bytes);
}

std::vector<model::MemoryReading> demand_series(const model::Snapshot& snapshot) {
  if (!snapshot.memory_readings.empty()) return snapshot.memory_readings;
  const Sums sums = sums_of(snapshot, model::kMostMemoryReadings);
  std::vector<model::MemoryReading> series;
  series.reserve(sums.times.size());
  for (std::size_t i = 0; i < sums.times.size(); ++i)
    series.push_back({sums.times[i], static_cast<std::uint64_t>(
                                         std::min(sums.bytes[i], static_cast<double>(model::kMaxBytes)))});
  return series;
}

double weighted_delta(const model::Snapshot& snapshot, const EvictionSettings& settings) {
  if (settings.delta_weight == 0) return 0;
  return settings.delta_weight * delta_of(demand_of(snapshot, settings.window));
}

double delta_of(const model::MemoryDemand& demand) {
  return demand.rising && demand.mean_bytes > 0 ? demand.sd_bytes / demand.mean_bytes : 0.0;
}

std::uint64_t growth_of(const model::MemoryDemand& demand, double z) {
  if (!demand.rising) return 0;
  const double growth = demand.mean_bytes + z * demand.sd_bytes - static_cast<double>(demand.latest_bytes);
  return static_cast<std::uint64_t>(
      std::clamp(std::ceil(growth), 0.0, static_cast<double>(model::kMaxBytes)));
}

}  // namespace berth::policies
