// SPDX-License-Identifier: Apache-2.0
#include "policies/oversell/eviction.h"

#include "policies/oversell/demand.h"
#include "policies/usage.h"
#include "policies/victim.h"
#include "policies/workload_index.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

namespace berth::policies {

namespace {

double age_of(const model::Workload& workload, double now) { return std::max(0.0, now - workload.created); }

// Low for young work that holds much more than it uses.
double running_priority(const model::Workload& workload, double now) {
  const double reserved =
      request_of(workload, model::Resource::memory, std::numeric_limits<double>::infinity());
  const auto used = static_cast<double>(memory_in_use(workload));
  if (reserved <= 0) return age_of(workload, now);
  return age_of(workload, now) * used / reserved;
}

}  // namespace

EvictionOrder eviction_order(const model::Snapshot& snapshot, const OversellSettings& settings,
                             const EvictionCost& cost) {
  std::vector<const model::Workload*> present;
  for (const model::Workload& workload : snapshot.workloads) {
    if (workload.workload_class != model::WorkloadClass::best_effort || workload.spared) continue;
    present.push_back(&workload);
  }
  // Whether its memory is unknown, then its cost.
  using Worth = std::pair<bool, double>;
  const auto worth_of = [&cost](const model::Workload& workload) {
    return Worth(!latest_memory(workload), std::max(cost(workload), kLeastCost_s));
  };
  // A driver is evicted after the executors of its application that can be: they are worth less without it.
  std::map<std::string, Worth> dearest;
  for (const model::Workload* workload : present) {
    if (!workload->spark || workload->spark->role != model::SparkRole::executor) continue;
    auto [most, fresh] = dearest.try_emplace(workload->spark->app, worth_of(*workload));
    if (!fresh) most->second = std::max(most->second, worth_of(*workload));
  }
  // Stage, then priority in stage 2, then known memory first, then cost or running priority, then executors
  // before drivers, then those that free more, then id.
  using Key = std::tuple<int, int, Worth, bool, double, std::string>;
  std::vector<Key> keys;
  EvictionOrder result;
  for (const model::Workload* workload : present) {
    const int by_priority = workload->priority < settings.top_priority ? 2 : 3;
    model::OversellCandidate candidate{.stage = workload->evictable ? 1 : by_priority,
                                       .priority = workload->priority,
                                       .cost = cost(*workload),
                                       .memory_bytes = memory_in_use(*workload)};
    if (candidate.stage == 3) {
      if (!settings.evict_highest) continue;
      candidate.running_priority = running_priority(*workload, snapshot.time);
    }
    const bool driver = workload->spark && workload->spark->role == model::SparkRole::driver;
    Worth key(!latest_memory(*workload),
              candidate.running_priority.value_or(std::max(candidate.cost, kLeastCost_s)));
    if (const auto most = driver ? dearest.find(workload->spark->app) : dearest.end();
        most != dearest.end() && candidate.stage < 3) {
      key = std::max(key, most->second);
    }
    keys.emplace_back(candidate.stage, candidate.stage == 2 ? candidate.priority : 0, key, driver,
                      -static_cast<double>(candidate.memory_bytes), workload->id);
    result.candidates.emplace(workload->id, candidate);
  }
  std::sort(keys.begin(), keys.end());
  for (Key& key : keys) result.order.push_back(std::move(std::get<5>(key)));
  return result;
}

int eviction_count(const model::Snapshot& snapshot, double excess_bytes, int candidates) {
  double sum = 0;
  int known = 0;
  for (const model::Workload* workload : workloads_by_id(snapshot)) {
    if (workload->workload_class != model::WorkloadClass::best_effort || workload->evicted_at) continue;
    const auto use = latest_use(*workload, model::Resource::memory);
    if (!use) continue;
    sum += *use;
    ++known;
  }
  double wanted = 1;
  if (sum > 0) wanted = std::max(1.0, std::ceil(excess_bytes / (sum / known)));
  return static_cast<int>(std::min(wanted, static_cast<double>(candidates)));
}

}  // namespace berth::policies
