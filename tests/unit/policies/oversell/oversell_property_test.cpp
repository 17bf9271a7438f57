// SPDX-License-Identifier: Apache-2.0
// Overselling against its plain restatement, of both resources and by every method.
#include "policies/oversell/policy.h"
#include "policies/oversell/score.h"
#include "tests/unit/policies/draws.h"
#include "tests/unit/policies/placement/gpu_hosts.h"
#include "tests/unit/policies/seeds.h"
#include "tests/unit/rounding.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::policies {

namespace {

using testing::kGiB;

// The restatement's figures of one workload and one resource.
struct Drawn {
  double request = 0;
  bool young = false;
  bool best_effort = true;
  std::vector<std::optional<double>> use;  // by sample time
};

struct Restated {
  double request = 0;
  double latency_sensitive_request = 0;
  double latest = 0;
  double warming = 0;
  double warming_use = 0;
  std::vector<double> series;
};

Restated restate(const std::vector<Drawn>& all, std::size_t samples) {
  Restated sum;
  std::vector<const Drawn*> counted;
  for (const Drawn& one : all) {
    std::optional<double> latest;
    for (const auto& use : one.use) latest = use ? use : latest;
    sum.request += one.request;
    sum.latency_sensitive_request += one.best_effort ? 0 : one.request;
    sum.latest += latest.value_or(0);
    if (!one.young && latest) {
      counted.push_back(&one);
    } else {
      sum.warming += one.request;
      sum.warming_use += latest.value_or(0);
    }
  }
  for (std::size_t s = 0; s < samples && !counted.empty(); ++s) {
    double use = 0;
    bool common = true;
    for (const Drawn* one : counted) {
      common = common && one->use[s];
      use += one->use[s].value_or(0);
    }
    if (common) sum.series.push_back(use);
  }
  return sum;
}

double restated_peak(Restated known, PeakMethod method, double weighted) {
  if (method == PeakMethod::weighted) return std::max(0.0, weighted - known.warming_use) + known.warming;
  std::vector<double>& series = known.series;
  if (series.empty()) return known.request;
  const auto count = static_cast<double>(series.size());
  double mean = 0;
  for (const double use : series) mean += use / count;
  double variance = 0;
  for (const double use : series) variance += (use - mean) * (use - mean) / count;
  std::sort(series.begin(), series.end());
  const double p95 = series[static_cast<std::size_t>(std::ceil(count * 95 / 100.0)) - 1];
  const double normal = mean + 3 * std::sqrt(variance);
  if (method == PeakMethod::percentile) return p95 + known.warming;
  if (method == PeakMethod::normal) return normal + known.warming;
  return std::max(p95, normal) + known.warming;
}

// Requests and uses are added over six workloads at most. Their means, deviations and the mean utilisation
// are sums over 40 samples at most, of which a deviation counts three times. The factor is a quotient, which
// is off by what the peak is off by, in proportion.
bool is_restated(const model::OversoldResource& found, const Restated& known, PeakMethod method,
                 double weighted, double before, double capacity) {
  double most = known.request + known.latest + known.warming + weighted + capacity;
  for (const double use : known.series) most = std::max(most, use);
  const double bound = berth::testing::rounding(3 * 4 * 40 + 4 * 6, most);
  const double peak = restated_peak(known, method, weighted);
  const double wanted =
      known.request <= 0 ? 1 : (peak > 0 ? std::clamp(known.request / peak, 1.0, 1.5) : 1.5);
  const auto near = [bound](double a, double b) { return std::abs(a - b) <= bound; };
  const auto near_factor = [bound, peak](double a, double b) {
    return a == b || std::abs(a - b) <= 2 * 1.5 * bound / peak;
  };
  return near(found.request, known.request) &&
         near(found.latency_sensitive_request, known.latency_sensitive_request) &&
         near(found.warming, known.warming) && found.samples == static_cast<int>(known.series.size()) &&
         near(found.peak, peak) && near(*found.weighted, std::max(0.0, weighted - known.warming_use)) &&
         near_factor(found.wanted, wanted) && near_factor(found.factor, std::min(wanted, before + 0.02));
}

}  // namespace

// Said again with sums and sorting alone.
RC_GTEST_PROP(OversellProperty, IsWhatItsRestatementSays, ()) {
  testing::Draws draws(*testing::any_seed());
  PolicySettings settings;
  settings.oversell.peak = std::vector{PeakMethod::weighted, PeakMethod::percentile, PeakMethod::normal,
                                       PeakMethod::max}[static_cast<std::size_t>(draws.number(0, 3))];
  double capacity = 64.0 * kGiB;
  if (draws.chance(0.3)) {
    settings.oversell.memory_cap_bytes = static_cast<std::uint64_t>(draws.number(1, 80)) * kGiB;
    capacity = std::min(capacity, static_cast<double>(settings.oversell.memory_cap_bytes));
  }
  const int samples = draws.number(1, 40);
  model::Snapshot snapshot = testing::gpu_host("a", {});  // 16 vCPUs, 64 GiB
  snapshot.memory.available_bytes = static_cast<std::uint64_t>(draws.fraction() * 64 * kGiB);
  snapshot.load1 = 32 * draws.fraction();
  std::vector<Drawn> cpu;
  std::vector<Drawn> memory;
  if (draws.chance(0.5)) {
    snapshot.recent_use = model::RecentUse{.samples = draws.number(1, 300),
                                           .cpu = draws.fraction(),
                                           .memory = draws.fraction(),
                                           .load1 = 32 * draws.fraction()};
  }
  for (int i = draws.number(1, 6); i > 0; --i) {
    Drawn cores;
    Drawn bytes;
    cores.young = bytes.young = draws.chance(0.2);
    model::Workload made;
    made.id = "w" + std::to_string(i);
    made.cpu_quota_cores = 1 + 7 * draws.fraction();
    cores.best_effort = bytes.best_effort = draws.chance(0.5);
    made.workload_class =
        cores.best_effort ? model::WorkloadClass::best_effort : model::WorkloadClass::latency_sensitive;
    if (cores.young) made.created = 990;
    const double seen = draws.chance(0.1) ? 0 : draws.chance(0.5) ? 1 : 0.9;  // how often its memory was
    double sum = 0;
    int known = 0;
    std::vector<model::UsageSample> usage;
    for (int s = 0; s < samples; ++s) {
      model::UsageSample& sample = usage.emplace_back();
      sample.time = 900 + s;
      sample.cpu_cores = 5 * draws.fraction();
      cores.use.emplace_back(sample.cpu_cores);
      bytes.use.emplace_back();
      if (!draws.chance(seen)) continue;
      sample.memory_bytes = static_cast<std::uint64_t>(8 * draws.fraction() * kGiB);
      bytes.use.back() = static_cast<double>(*sample.memory_bytes);
      sum += *bytes.use.back();
      ++known;
    }
    made.usage = std::move(usage);
    cores.request = *made.cpu_quota_cores;
    bytes.request = known > 0 ? sum / known : 0;  // the use of a workload that asked for none
    if (draws.chance(0.8)) {
      made.memory_request_bytes = static_cast<std::uint64_t>(draws.number(1, 20)) * kGiB;
      bytes.request = static_cast<double>(made.memory_request_bytes);
    }
    bytes.request = std::min(bytes.request, capacity);
    cpu.push_back(std::move(cores));
    memory.push_back(std::move(bytes));
    snapshot.workloads.push_back(std::move(made));
  }
  const double before = 1 + draws.fraction() / 2;
  snapshot.advertised.cpu = {.factor = before};
  const Restated cores = restate(cpu, static_cast<std::size_t>(samples));
  const Restated bytes = restate(memory, static_cast<std::size_t>(samples));
  const double in_use = 64.0 * kGiB - static_cast<double>(snapshot.memory.available_bytes);
  // Sums over five minutes of ticks, this one among them.
  double load_sum = snapshot.load1;
  double cpu_sum = cores.latest / 16;
  double memory_sum = in_use / capacity;
  double ticks = 1;
  if (snapshot.recent_use) {
    const double earlier = snapshot.recent_use->samples;
    load_sum += earlier * snapshot.recent_use->load1;
    cpu_sum += earlier * snapshot.recent_use->cpu;
    memory_sum += earlier * snapshot.recent_use->memory;
    ticks += earlier;
  }
  const double weight = std::clamp(load_sum / ticks / 16, 0.2, 0.8);
  const double weighted = weight * cpu_sum / ticks + (1 - weight) * memory_sum / ticks;
  RC_CLASSIFY(cores.warming > 0, "young work");
  RC_CLASSIFY(bytes.series.size() < static_cast<std::size_t>(samples), "memory not always known");
  const auto found = propose_advertising(snapshot, settings).findings;
  RC_ASSERT(is_restated(found.cpu, cores, settings.oversell.peak, weighted * 16, before, 16));
  RC_ASSERT(is_restated(found.memory, bytes, settings.oversell.peak, weighted * capacity, 1, capacity));
}

// A host is as crowded as its scarcer resource, and as disturbed as its latency-sensitive work.
RC_GTEST_PROP(HostScoreProperty, IsWhatItsRestatementSays, ()) {
  testing::Draws draws(*testing::any_seed());
  model::OversellFindings found;
  std::vector<double> shares;
  for (model::OversoldResource* resource : {&found.cpu, &found.memory}) {
    resource->capacity = draws.chance(0.1) ? 0 : draws.number(1, 64);
    resource->peak = draws.number(0, 64) * draws.fraction();
    resource->utilisation = 1.2 * draws.fraction();
    shares.push_back(resource->utilisation);
    if (resource->capacity > 0) shares.push_back(resource->peak / resource->capacity);
  }
  double expected = 0;
  for (const double share : shares) expected = share > expected ? share : expected;
  std::optional<model::InterferenceFindings> interference;
  if (draws.chance(0.7)) expected += interference.emplace().score_node = draws.fraction() / 2;
  RC_CLASSIFY(expected > 1, "more than full");
  RC_ASSERT(berth::testing::same_sum(host_score(found, interference), expected > 1 ? 1 : expected, 4));
}

}  // namespace berth::policies
