// SPDX-License-Identifier: Apache-2.0
#include "policies/interference/warnings.h"

#include "model/count_text.h"
#include "model/standing.h"
#include "policies/interference/waiting.h"
#include "policies/level.h"
#include "policies/share.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include <fmt/core.h>

namespace berth::policies {

namespace {

// Whole vCPUs for so many cores, at least one. A use that only rounding lifts above a number needs no more.
int vcpus_for(double cores) {
  return std::max(1, static_cast<int>(std::ceil(std::min<double>(cores / kMoreThanVcpus, model::kMaxCpu))));
}

bool is_above(const model::Workload& workload, int vcpus, double cores) {
  const bool pinned_so = static_cast<int>(workload.cpus.size()) == vcpus && !workload.shares;
  return cores > vcpus * (pinned_so ? kMoreThanPinned : kMoreThanVcpus);
}

// A service cannot use more than the vCPUs that it is pinned to, but its threads wait then. Not those that
// its quota keeps waiting.
bool is_full(const model::Workload& workload, int asked, double cores) {
  const auto held = static_cast<double>(workload.cpus.size());
  return !workload.cpus.empty() && !workload.shares && held >= asked && cores >= kFullShare * held &&
         workload.cpu_pressure.value_or(0) >= kHighPressure &&
         workload.cpu_throttled.value_or(0) <= kWaitingThrottled;
}

}  // namespace

std::optional<double> mean_cores_of_life(const model::Workload& workload, double now) {
  const double age_s = now - workload.created;
  if (!workload.cpu_time_s || age_s < kLeastLife_s) return std::nullopt;
  return *workload.cpu_time_s / age_s;
}

std::optional<double> measured_cores(const model::Workload& workload, double now) {
  if (const auto mean = workload.usage.cpu().mean()) return mean;
  return workload.cpus.empty() ? mean_cores_of_life(workload, now) : std::nullopt;
}

bool would_be_cut(const model::Workload& workload, int vcpus, double now) {
  if (workload.force) return false;
  const auto cores = measured_cores(workload, now);
  return cores && is_above(workload, vcpus, *cores);
}

int vcpus_that_cover(const model::Workload& workload, double now) {
  const auto cores = measured_cores(workload, now);
  return cores ? vcpus_for(*cores) : 1;
}

// The quota that would not have throttled the service. It assumes that the service lacked CPU time only while
// it was throttled.
std::optional<double> enough_cores(const model::Workload& workload, double quota) {
  const double throttled = workload.cpu_throttled.value_or(0);
  if (!workload.cpu_lacked || throttled <= 0) return std::nullopt;
  constexpr double kStep = 0.1;
  return std::ceil((quota + *workload.cpu_lacked / throttled) / kStep - 1e-9) * kStep;
}

std::optional<model::ServiceWarning> throttled_warning(const model::Workload& workload, double now) {
  const auto quota = model::limits_of_owner(workload).cpu_quota_cores;
  const double throttled = workload.cpu_throttled.value_or(0);
  if (!quota || workload.left_alone || throttled <= kWaitingThrottled) return std::nullopt;
  if (workload.vcpus && *quota < *workload.vcpus) {
    const int vcpus = *workload.vcpus;
    const int whole = std::max(1, static_cast<int>(std::ceil(*quota)));
    const bool covers = whole < vcpus && whole >= vcpus_that_cover(workload, now);
    return model::ServiceWarning{
        .workload = workload.id,
        .cause = model::WarningCause::quota,
        .vcpus = covers ? std::optional(whole) : std::nullopt,
        .reason = fmt::format("its CPU quota of {:.3g} cores is below its vcpus = {}, and throttled it for "
                              "{:.0f} % of the last tick; raise the quota to {} cores{}",
                              *quota, vcpus, 100 * throttled, vcpus,
                              covers ? fmt::format(", or set vcpus = {}", whole) : "")};
  }
  // It was throttled by the quota that the straggler policy set, and that policy raises it.
  if (workload.held_cpu && !is_lifted(workload)) return std::nullopt;
  const auto enough = enough_cores(workload, *quota);
  return model::ServiceWarning{
      .workload = workload.id,
      .cause = model::WarningCause::quota,
      .vcpus = std::nullopt,
      .reason = fmt::format("its CPU quota of {:.3g} cores throttled it for {:.0f} % of the last tick; {}",
                            *quota, 100 * throttled,
                            enough ? fmt::format("a quota of {:.4g} cores would do", *enough)
                                   : "the kernel does not tell which quota would do")};
}

std::vector<model::ServiceWarning> own_warnings(const model::Workload& workload, int asked, double now,
                                                const PlaceFor& place_for) {
  std::vector<model::ServiceWarning> warnings;
  if (!workload.vcpus || workload.left_alone) return warnings;
  const int vcpus = *workload.vcpus;
  const auto cores = measured_cores(workload, now);
  if (cores && is_above(workload, asked, *cores)) {
    // For its peak, if there is a place for that.
    const int least = std::max(vcpus + 1, vcpus_for(*cores));
    const int for_peak = std::max(least, vcpus_for(workload.usage.cpu().max));
    std::optional<int> enough = place_for(for_peak);
    if (!enough && least < for_peak) enough = place_for(least);
    warnings.push_back({.workload = workload.id,
                        .cause = model::WarningCause::use,
                        .vcpus = enough,
                        .reason = fmt::format(
                            "it uses {:.3g} cores, more than its vcpus = {}: {}; {}", *cores, vcpus,
                            workload.force ? "force = true lets the pin cut it"
                                           : "a pin would cut it, so it gets no vCPUs of its own (force = "
                                             "true would pin it all the same)",
                            enough ? fmt::format("vcpus = {} would do", *enough)
                                   : fmt::format("it needs {}, and there is no place for so many", least))});
  } else if (cores && is_full(workload, asked, *cores)) {
    warnings.push_back({.workload = workload.id,
                        .cause = model::WarningCause::use,
                        .reason = fmt::format(
                            "it uses {:.3g} cores of the {} that it is pinned to, and its threads wait for "
                            "a vCPU in {:.0f} % of the time: it may need more than vcpus = {}",
                            *cores, workload.cpus.size(), 100 * *workload.cpu_pressure, vcpus)});
  }
  return warnings;
}

int most_that_fit(const Occupancy& occupancy, const InterferenceSettings& settings,
                  const BestEffortDemand& best_effort, const PlacementRequest& request) {
  // More leave too few to others.
  const int free = occupancy.unowned_count() - best_effort.min_cpus;
  PlacementRequest fewer = request;
  fewer.vcpus = std::min(request.vcpus - 1, free);
  // A larger request may have a larger region, so that one may fit where a smaller one does not.
  for (int tries = 0; fewer.vcpus > 0 && tries < kMostTries; ++tries, --fewer.vcpus) {
    if (choose_window(occupancy, settings, best_effort, fewer).region >= 0) return fewer.vcpus;
  }
  return 0;
}

std::optional<int> least_that_fits(const Occupancy& occupancy, int tenant,
                                   const InterferenceSettings& settings, const BestEffortDemand& best_effort,
                                   PlacementRequest request) {
  Occupancy others(occupancy.node(), {});
  for (int i = 0; i < static_cast<int>(occupancy.tenants().size()); ++i) {
    if (i != tenant && occupancy.placed(i)) others.add(occupancy.tenant(i));
  }
  int most = std::min(others.unowned_count() - best_effort.min_cpus, request.vcpus + kMostTries - 1);
  if (request.allowed) most = std::min(most, static_cast<int>(request.allowed->size()));
  for (; request.vcpus <= most; ++request.vcpus) {
    if (choose_window(others, settings, best_effort, request).region >= 0) return request.vcpus;
  }
  return std::nullopt;
}

void find_warnings(const Workloads& workloads, const GrownRequests& grown, const Queue& queue,
                   const Placement& placement, const InterferenceSettings& settings,
                   const BestEffortDemand& demand, double now, model::InterferenceFindings& findings) {
  for (const model::Workload* workload : workloads) {
    if (!latency_sensitive(workload->workload_class)) continue;
    const auto more = grown.find(workload->id);
    const int asked = std::max(workload->vcpus.value_or(0), more == grown.end() ? 0 : more->second);
    const auto place_for = [&](int least) {
      const auto own = std::find_if(queue.instances.begin(), queue.instances.end(),
                                    [&](const Instance& it) { return it.workload == workload; });
      const bool queued = own != queue.instances.end();
      return least_that_fits(placement.occupancy,
                             queued ? static_cast<int>(own - queue.instances.begin()) : -1, settings, demand,
                             {.vcpus = least,
                              .model = {},
                              .allowed = workload->allowed_cpus,
                              .whole_cores = has_whole_cores(*workload, settings)});
    };
    if (!is_shared(*workload, settings)) {
      for (model::ServiceWarning& warning : own_warnings(*workload, asked, now, place_for))
        findings.warnings.push_back(std::move(warning));
    }
    if (auto warning = throttled_warning(*workload, now)) findings.warnings.push_back(*std::move(warning));
  }
  for (int i = 0; i < static_cast<int>(queue.instances.size()); ++i) {
    const Instance& instance = queue.instances[i];
    if (instance.workload == nullptr || placement.occupancy.placed(i)) continue;
    const PlacementRequest& request = queue.requests[i];
    const int most = most_that_fit(placement.occupancy, settings, demand, request);
    // A forced pin may cut its use. A larger number may find a place in a larger region.
    const int cover = instance.workload->force ? 1 : vcpus_that_cover(*instance.workload, now);
    PlacementRequest larger = request;
    larger.vcpus = std::max(request.vcpus + 1, cover);
    const auto enough =
        most >= cover ? most : least_that_fits(placement.occupancy, i, settings, demand, larger);
    const char* none = most > 0 ? "no number of vCPUs that covers its use would find one"
                                : "no number of vCPUs would find one";
    findings.warnings.push_back(
        {.workload = instance.id,
         .cause = model::WarningCause::place,
         .vcpus = enough,
         .reason = fmt::format("it finds no place: {}; {}", placement.reasons[i],
                               enough ? fmt::format("vcpus = {} would find one", *enough) : none)});
  }
  std::sort(findings.warnings.begin(), findings.warnings.end(), [](const auto& a, const auto& b) {
    return std::tie(a.workload, a.cause) < std::tie(b.workload, b.cause);
  });
}

}  // namespace berth::policies
