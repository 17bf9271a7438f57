// SPDX-License-Identifier: Apache-2.0
#include "daemon/observe/recent_use.h"

#include <algorithm>

namespace berth::daemon {

namespace {

// The largest utilisation that a snapshot takes.
constexpr double kMost = 1e6;

}  // namespace

void RecentUseWatch::take(const model::Plan& plan, double load1) {
  if (!plan.findings.oversell) return;
  while (!ticks_.empty() && ticks_.front().time <= plan.time - kSpan_s) ticks_.pop_front();
  ticks_.push_back({.time = plan.time,
                    .cpu = std::clamp(plan.findings.oversell->cpu.utilisation, 0.0, kMost),
                    .memory = std::clamp(plan.findings.oversell->memory.utilisation, 0.0, kMost),
                    .load1 = load1});
}

std::optional<model::RecentUse> RecentUseWatch::means(double now) const {
  model::RecentUse sum;
  for (const Tick& tick : ticks_) {
    if (tick.time <= now - kSpan_s || tick.time >= now) continue;
    ++sum.samples;
    sum.cpu += tick.cpu;
    sum.memory += tick.memory;
    sum.load1 += tick.load1;
  }
  if (sum.samples == 0) return std::nullopt;
  sum.cpu /= sum.samples;
  sum.memory /= sum.samples;
  sum.load1 /= sum.samples;
  return sum;
}

}  // namespace berth::daemon
