// SPDX-License-Identifier: Apache-2.0
#include "policies/interference/waiting.h"

#include "policies/level.h"
#include "policies/share.h"
#include "policies/vcpus/pin_check.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/core.h>

namespace berth::policies {

namespace {

using model::WaitCause;
using model::WaitingInstance;
using model::Workload;
using model::WorkloadClass;

struct Recent {
  double delay_s = 0;  // the smallest 99th percentile
  double cores = 0;    // mean use
};

// The last samples, where all of them are above the limit and newer than the pin.
std::optional<Recent> above_limit(const Workload& workload, double limit_s) {
  if (workload.usage.size() < kWaitingSamples) return std::nullopt;
  Recent recent{.delay_s = HUGE_VAL, .cores = 0};
  auto sample = workload.usage.end();
  for (std::size_t i = 0; i < kWaitingSamples; ++i) {
    --sample;
    const std::optional<double> delay_us = sample->runq_latency_us;
    if (!delay_us || (workload.pinned_at && sample->time <= *workload.pinned_at)) return std::nullopt;
    recent.delay_s = std::min(recent.delay_s, *delay_us * 1e-6);
    recent.cores += sample->cpu_cores / static_cast<double>(kWaitingSamples);
  }
  return recent.delay_s > limit_s ? std::optional(recent) : std::nullopt;
}

// Cores of best-effort work on each vCPU, by position, and the workload that puts most there.
struct BestEffortLoad {
  std::vector<double> cores;
  std::vector<double> most;
  std::vector<std::string> by;
};

// Counts only work that ran for as long as instances are judged: newer work may be confined at once.
BestEffortLoad load_of(const std::vector<const Workload*>& workloads, const Node& node) {
  const auto size = static_cast<std::size_t>(node.size());
  BestEffortLoad load{.cores = std::vector<double>(size),
                      .most = std::vector<double>(size),
                      .by = std::vector<std::string>(size)};
  for (const Workload* workload : workloads) {
    if (workload->workload_class != WorkloadClass::best_effort || workload->usage.size() < kWaitingSamples ||
        workload->usage.without_cpu())
      continue;
    std::vector<int> where;
    for (int at = 0; at < node.size(); ++at) {
      const int cpu = node.cpu(at);
      const bool may = !workload->cpus.empty()  ? workload->cpus.contains(cpu)
                       : workload->allowed_cpus ? workload->allowed_cpus->contains(cpu)
                                                : node.usable(at) || node.reserved().contains(cpu);
      if (may) where.push_back(at);
    }
    double cores = 0;
    auto sample = workload->usage.end();
    for (std::size_t i = 0; i < kWaitingSamples; ++i)
      cores += (--sample)->cpu_cores / static_cast<double>(kWaitingSamples);
    for (const int at : where) {
      const double share = cores / static_cast<double>(where.size());
      load.cores[at] += share;
      if (share > load.most[at]) {
        load.most[at] = share;
        load.by[at] = workload->id;
      }
    }
  }
  return load;
}

double mean_load(const BestEffortLoad& load, const std::vector<int>& positions) {
  double sum = 0;
  for (const int at : positions) sum += load.cores[at];
  return positions.empty() ? 0 : sum / static_cast<double>(positions.size());
}

// More vCPUs, so that its use of each falls by min_gain at least; 0 where that is not possible.
int enlarged(const Workload& workload, const Node& node, const InterferenceSettings& settings) {
  const int held = static_cast<int>(workload.cpus.size());
  int most = static_cast<int>(std::min<long>(long{kMostGrowth} * *workload.vcpus, node.usable_count()));
  if (const auto quota = quota_that_counts(workload))
    most = std::min(most, static_cast<int>(std::min<double>(most, std::ceil(*quota))));
  if (!(settings.min_gain < 1)) return 0;
  const double more = std::max(1.0, std::ceil(held * settings.min_gain / (1 - settings.min_gain) - 1e-9));
  return held + more <= most ? held + static_cast<int>(more) : 0;
}

// vCPUs with less best-effort work than its own have, by min_gain at least.
model::CpuSet quieter_than(double load, const BestEffortLoad& loads, const Node& node, double min_gain) {
  model::CpuSet cpus;
  for (int at = 0; at < node.size(); ++at) {
    if (node.usable(at) && loads.cores[at] <= (1 - min_gain) * load) cpus.insert(node.cpu(at));
  }
  return cpus;
}

std::string loudest(const BestEffortLoad& load, const std::vector<int>& positions) {
  const int at = *std::max_element(positions.begin(), positions.end(),
                                   [&load](int a, int b) { return load.most[a] < load.most[b]; });
  return load.by[at];
}

class Judge {
 public:
  Judge(const std::vector<const Workload*>& workloads, const Node& node, const InterferenceSettings& settings)
      : workloads_(workloads), node_(node), settings_(settings) {}

  // An instance without vCPUs of its own; whether it asks for a wider home.
  bool asks_for_room(const Workload& workload, const Recent& recent, WaitingInstance& found) const {
    found.runq_latency_s = recent.delay_s;
    if (throttled(workload, found)) return false;
    found.cause = WaitCause::unknown;
    const bool everywhere = static_cast<int>(workload.home.size()) >= node_.domain_count();
    found.reason = everywhere ? "it shares its home with other services, and that is every domain already"
                              : "it shares its home with other services, and asks for a wider one";
    return !everywhere;
  }

  // What the instance suffers from, and what it asks for.
  WaitingInstance finding_of(const Workload& workload, const Recent& recent) {
    WaitingInstance found;
    found.runq_latency_s = recent.delay_s;
    const auto held = static_cast<double>(workload.cpus.size());
    const std::vector<int> positions = node_.positions(workload.cpus);
    if (throttled(workload, found)) return found;
    if (recent.cores >= kBusyShare * held) {
      found.cause = WaitCause::vcpus;
      found.vcpus = has_whole_cores(workload, settings_) ? 0 : enlarged(workload, node_, settings_);
      found.reason = fmt::format("it keeps {:.3g} of its {} vCPUs busy", recent.cores, workload.cpus.size());
      found.reason += found.vcpus > 0 ? fmt::format(", and asks for {}", found.vcpus)
                                      : ", and may not own more; raise its vcpus or its CPU quota";
    } else if (const double load = mean_load(loads(), positions); load > kLeastLoad) {
      found.cause = WaitCause::best_effort;
      found.quieter = quieter_than(load, loads(), node_, settings_.min_gain);
      found.reason = fmt::format(
          "best-effort work uses {:.3g} of each of its vCPUs, most of it {}; it asks for another place", load,
          loudest(loads(), positions));
    } else {
      found.cause = WaitCause::unknown;
      found.reason =
          "no figure explains it: it may have more threads than vCPUs, threads that it bound itself, or "
          "interrupts";
    }
    return found;
  }

 private:
  static bool throttled(const Workload& workload, WaitingInstance& found) {
    const double share = workload.cpu_throttled.value_or(0);
    if (share <= kWaitingThrottled) return false;
    found.cause = WaitCause::quota;
    found.reason = fmt::format(
        "its own CPU quota kept it from running for {:.0f} % of the last tick; raise the quota", 100 * share);
    return true;
  }

  // Computed for the first instance that needs it.
  const BestEffortLoad& loads() {
    if (!std::exchange(known_, true)) loads_ = load_of(workloads_, node_);
    return loads_;
  }

  const std::vector<const Workload*>& workloads_;
  const Node& node_;
  const InterferenceSettings& settings_;
  BestEffortLoad loads_;
  bool known_ = false;  // whether `loads_` was computed
};

// An instance that got more vCPUs keeps them while it needs all but one of them.
bool keeps_growth(const Workload& workload) {
  const auto held = static_cast<int>(workload.cpus.size());
  return held > *workload.vcpus && held <= long{kMostGrowth} * *workload.vcpus &&
         workload.usage.cpu().max > kKeepShare * (held - 1);
}

}  // namespace

Waits find_waits(const model::Snapshot& snapshot, const std::vector<const Workload*>& workloads,
                 const Node& node, const InterferenceSettings& settings, const GrownRequests& grown,
                 double repin_cooldown_s) {
  Waits waits;
  if (!(settings.max_runq_latency_s > 0)) return waits;
  Judge judge(workloads, node, settings);
  std::vector<const Workload*> asking;
  for (const Workload* workload : workloads) {
    if (is_shared(*workload, settings)) {
      if (workload->left_alone) continue;
      const auto recent = above_limit(*workload, settings.max_runq_latency_s);
      if (!recent) continue;
      WaitingInstance& found = waits.findings[workload->id];
      if (!judge.asks_for_room(*workload, *recent, found)) continue;
      if (cools_down(workload->pinned_at, snapshot.time, repin_cooldown_s)) {
        found.reason += "; its pin changed less than safety.repin_cooldown ago";
      } else {
        waits.wider.insert(workload->id);
      }
      continue;
    }
    const int declared = workload->vcpus.value_or(0);
    if (workload->workload_class != WorkloadClass::latency_sensitive || declared <= 0 || workload->shares ||
        static_cast<int>(workload->cpus.size()) < declared)
      continue;
    if (grown.count(workload->id) == 0 && !has_whole_cores(*workload, settings) && keeps_growth(*workload))
      waits.grown[workload->id] = static_cast<int>(workload->cpus.size());
    const auto recent = above_limit(*workload, settings.max_runq_latency_s);
    if (!recent) continue;
    WaitingInstance& found = waits.findings[workload->id] = judge.finding_of(*workload, *recent);
    const bool asks = found.vcpus > 0 || found.cause == WaitCause::best_effort;
    if (asks && grown.count(workload->id) > 0) {
      found.reason += "; it is a straggler, which is helped otherwise";
    } else if (asks && cools_down(workload->pinned_at, snapshot.time, repin_cooldown_s)) {
      found.reason += "; its pin changed less than safety.repin_cooldown ago";
    } else if (asks) {
      asking.push_back(workload);
    }
  }
  std::stable_sort(asking.begin(), asking.end(), [&waits](const auto* a, const auto* b) {
    return waits.findings[a->id].runq_latency_s > waits.findings[b->id].runq_latency_s;
  });
  for (const Workload* workload : asking) waits.asking.push_back(workload->id);
  return waits;
}

Waits with_turns(Waits waits, const std::set<std::string>& in_vain, int max_moves) {
  for (const std::string& id : waits.asking) {
    WaitingInstance& found = waits.findings[id];
    if (in_vain.count(id) > 0) {
      found.reason += "; there is nothing free that would help";
    } else if (std::ssize(waits.turns) >= max_moves) {
      found.reason += fmt::format("; {} others wait longer (max_moves)", waits.turns.size());
    } else {
      waits.turns.insert(id);
      if (found.vcpus > 0) {
        waits.grown[id] = found.vcpus;
      } else {
        waits.quieter[id] = found.quieter;
      }
    }
  }
  return waits;
}

}  // namespace berth::policies
