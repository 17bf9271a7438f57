// SPDX-License-Identifier: Apache-2.0
#include "model/cgroup_counters.h"

#include <algorithm>
#include <cmath>

namespace berth::model {

namespace {

constexpr int kFirstBits = 10;  // bucket 0 ends at 2^10 ns

double lower_end_us(std::size_t bucket) {
  return bucket == 0 ? 0 : std::ldexp(1e-3, kFirstBits - 1 + static_cast<int>(bucket));
}

}  // namespace

std::optional<double> delay_quantile_us(const DelayHistogram& before, const DelayHistogram& now, double q) {
  DelayHistogram between{};
  std::uint64_t total = 0;
  for (std::size_t bucket = 0; bucket < kDelayBuckets; ++bucket) {
    if (now[bucket] < before[bucket]) return std::nullopt;
    between[bucket] = now[bucket] - before[bucket];
    total += between[bucket];
  }
  if (total == 0) return std::nullopt;
  const double wanted = std::clamp(q, 0.0, 1.0) * static_cast<double>(total);
  double below = 0;
  std::size_t last = 0;
  for (std::size_t bucket = 0; bucket < kDelayBuckets; ++bucket) {
    if (between[bucket] == 0) continue;
    last = bucket;
    const auto here = static_cast<double>(between[bucket]);
    if (below + here >= wanted) {
      const double low = lower_end_us(bucket);
      if (bucket + 1 == kDelayBuckets) return low;
      return low + (lower_end_us(bucket + 1) - low) * (wanted - below) / here;
    }
    below += here;
  }
  return lower_end_us(last + 1);  // only by rounding of `wanted`
}

std::optional<double> cycles_per_instruction(const CgroupCounters& before, const CgroupCounters& now) {
  if (!before.hardware || !now.hardware) return std::nullopt;
  const double instructions = now.hardware->instructions - before.hardware->instructions;
  const double cycles = now.hardware->cycles - before.hardware->cycles;
  if (instructions <= 0 || cycles < 0) return std::nullopt;
  return cycles / instructions;
}

std::optional<double> llc_misses(const CgroupCounters& before, const CgroupCounters& now) {
  if (!before.hardware || !now.hardware) return std::nullopt;
  const double misses = now.hardware->llc_misses - before.hardware->llc_misses;
  return misses >= 0 ? std::optional(misses) : std::nullopt;
}

std::optional<double> llc_mpki(const CgroupCounters& before, const CgroupCounters& now) {
  if (!before.hardware || !now.hardware) return std::nullopt;
  const double instructions = now.hardware->instructions - before.hardware->instructions;
  const double misses = now.hardware->llc_misses - before.hardware->llc_misses;
  if (instructions <= 0 || misses < 0) return std::nullopt;
  return misses / instructions * 1000;
}

}  // namespace berth::model
