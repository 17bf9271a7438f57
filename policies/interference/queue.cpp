// SPDX-License-Identifier: Apache-2.0
#include "policies/interference/queue.h"

#include "policies/interference/unpinned.h"
#include "policies/interference/warnings.h"
#include "policies/level.h"
#include "policies/usage.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include <fmt/core.h>

namespace berth::policies {

namespace {

// The latency-sensitive ones, the oldest first.
Workloads served_by_age(const Workloads& workloads) {
  Workloads served;
  std::copy_if(workloads.begin(), workloads.end(), std::back_inserter(served),
               [](const auto* workload) { return latency_sensitive(workload->workload_class); });
  std::sort(served.begin(), served.end(), [](const auto* a, const auto* b) { return is_older(*a, *b); });
  return served;
}

class QueueBuilder {
 public:
  QueueBuilder(const model::Snapshot& snapshot, const InterferenceSettings& settings,
               const Workloads& workloads, const GrownRequests& grown, const PendingBins& bins)
      : snapshot_(snapshot),
        settings_(settings),
        pressures_(service_pressures(snapshot, workloads)),
        grown_(grown),
        bins_(bins) {}

  void add_shared(const model::Workload& workload) {
    queue_.shared.push_back({.workload = &workload,
                             .use_cores = workload.usage.cpu().mean(),
                             .model = choose_model(snapshot_, workload.service, settings_.default_model),
                             .preferred = near_gpus_of(workload)});
  }
  void add(const std::string& id, const std::string& service, int vcpus, bool whole_cores,
           const model::Workload* workload, const model::CpuSet& told) {
    Instance instance{.id = id,
                      .workload = workload,
                      .pressure = pressures_[service],
                      .model = choose_model(snapshot_, service, settings_.default_model),
                      .grown = 0,
                      .fault = {},
                      .settled = {}};
    if (const auto more = grown_.find(id); !whole_cores && more != grown_.end() && more->second > vcpus)
      instance.grown = more->second;
    queue_.requests.push_back({.vcpus = vcpus,
                               .pressure = instance.pressure.value,
                               .model = instance.model.model,
                               .allowed = workload == nullptr ? bin_of(id) : workload->allowed_cpus,
                               .preferred = workload == nullptr ? std::nullopt : near_gpus_of(*workload),
                               .told = told,
                               .pending = workload == nullptr,
                               .whole_cores = whole_cores});
    queue_.instances.push_back(std::move(instance));
  }
  Queue take() { return std::move(queue_); }

 private:
  std::optional<model::CpuSet> bin_of(const std::string& id) const {
    const auto found = bins_.find(id);
    return found == bins_.end() ? std::nullopt : std::optional(found->second.cpus);
  }

  // The vCPUs of the NUMA nodes of its GPUs; nullopt where it has none, or their place is not known.
  std::optional<model::CpuSet> near_gpus_of(const model::Workload& workload) const {
    std::optional<model::CpuSet> near;
    for (const model::Gpu& gpu : snapshot_.topology.gpus()) {
      const auto& used = workload.gpus;
      const bool its_own =
          gpu.holder == workload.id || std::find(used.begin(), used.end(), gpu.id) != used.end();
      if (!its_own || !gpu.numa) continue;
      if (!near) near.emplace();
      for (const model::Cpu& cpu : snapshot_.topology.cpus()) {
        if (cpu.numa == *gpu.numa) near->insert(cpu.cpu);
      }
    }
    return near;
  }

  const model::Snapshot& snapshot_;
  const InterferenceSettings& settings_;
  std::map<std::string, Pressure> pressures_;
  const GrownRequests& grown_;
  const PendingBins& bins_;
  Queue queue_;
};

}  // namespace

Queue make_queue(const model::Snapshot& snapshot, const InterferenceSettings& settings,
                 const Workloads& workloads, const GrownRequests& grown, const PendingBins& bins,
                 std::vector<model::WorkloadFinding>& unplaceable, std::vector<Homeless>& homeless) {
  QueueBuilder queue(snapshot, settings, workloads, grown, bins);
  for (const model::Workload* workload : served_by_age(workloads)) {
    if (workload->left_alone) continue;
    if (is_shared(*workload, settings)) {
      queue.add_shared(*workload);
      continue;
    }
    const auto more = grown.find(workload->id);
    const int grows_to = more == grown.end() ? 0 : more->second;
    if (workload->vcpus && would_be_cut(*workload, std::max(*workload->vcpus, grows_to), snapshot.time)) {
      homeless.push_back(
          {workload, fmt::format("uses {:.3g} cores, more than its vcpus = {}, and a pin would cut that",
                                 measured_cores(*workload, snapshot.time).value_or(0), *workload->vcpus)});
      unplaceable.push_back({workload->id, homeless.back().reason});
    } else if (workload->vcpus) {
      const bool pinned = !workload->cpus.empty() && !workload->shares;
      queue.add(workload->id, workload->service, *workload->vcpus, has_whole_cores(*workload, settings),
                workload, pinned ? model::CpuSet() : workload->told_cpus);
    } else {
      unplaceable.push_back(
          {workload->id,
           fmt::format("declares no vcpus, which a pin needs (it uses {:.3g} cores on average); give "
                       "its rule vcpus, or the unit a CPU quota",
                       mean_cores(*workload))});
    }
  }
  for (const model::PendingWorkload& pending : snapshot.pending) {
    if (!latency_sensitive(pending.workload_class)) continue;
    const auto bin = bins.find(pending.id);
    if (is_shared(pending, settings)) {
      if (bin != bins.end() && !bin->second.rejection.empty())
        unplaceable.push_back({pending.id, bin->second.rejection});
    } else if (!pending.vcpus) {
      unplaceable.push_back(
          {pending.id, "declares no vcpus, which a pin needs; give it vcpus, or a CPU quota"});
    } else if (bin != bins.end() && !bin->second.rejection.empty()) {
      unplaceable.push_back({pending.id, bin->second.rejection});
    } else {
      queue.add(pending.id, pending.service, *pending.vcpus, has_whole_cores(pending, settings), nullptr,
                pending.told_cpus);
    }
  }
  return queue.take();
}

}  // namespace berth::policies
