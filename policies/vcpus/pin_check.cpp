// SPDX-License-Identifier: Apache-2.0
#include "policies/vcpus/pin_check.h"

#include "model/count_text.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace berth::policies {

namespace {

PinCheck fault(std::string text) { return {.region = -1, .fault = std::move(text)}; }

}  // namespace

std::string check_vcpus(const Node& node, const InterferenceSettings& settings,
                        const model::Workload& workload) {
  const model::CpuSet& cpus = workload.cpus;
  for (const int cpu : cpus) {
    const int position = node.position(cpu);
    if (position < 0) return fmt::format("vCPU {} is offline", cpu);
    if (!node.usable(position) && !node.reserved().contains(cpu))
      return fmt::format("berth may not use vCPU {}", cpu);
  }
  if (workload.allowed_cpus && !cpus.is_subset_of(*workload.allowed_cpus)) {
    return fmt::format("it may not use vCPUs {} any more", (cpus - *workload.allowed_cpus).to_string());
  }
  if (cpus.intersects(settings.reserved_cpus)) {
    return fmt::format("vCPUs {} are reserved", (cpus & settings.reserved_cpus).to_string());
  }
  if (!cpus.empty() && node.kind_of(cpus) < 0) return "it mixes kinds of cores";
  return {};
}

PinCheck check_place(const Node& node, const InterferenceSettings& settings, const model::Workload& workload,
                     int vcpus) {
  if (std::string text = check_vcpus(node, settings, workload); !text.empty()) return fault(std::move(text));
  const auto regions = node.regions_for(vcpus, settings.allow_cross_socket);
  if (!regions) return fault(regions.error().message());
  const std::vector<int> positions = node.positions(workload.cpus);
  for (const int region : *regions) {
    if (std::all_of(positions.begin(), positions.end(), [&](int at) { return node.holds(region, at); })) {
      return {.region = region, .fault = {}};
    }
  }
  return fault("it does not lie in one domain");
}

PinCheck check_pin(const Node& node, const InterferenceSettings& settings, const model::Workload& workload,
                   int asked) {
  const model::CpuSet& cpus = workload.cpus;
  if (cpus.empty()) return fault("it is not pinned");
  if (static_cast<int>(cpus.size()) != asked) {
    return fault(fmt::format("it holds {} and asks {}", model::count_text(cpus.size(), "vCPU"), asked));
  }
  return check_place(node, settings, workload, asked);
}

PinCheck check_cores(const Node& node, const InterferenceSettings& settings, const model::Workload& workload,
                     int asked) {
  const int held = static_cast<int>(workload.cpus.size());
  if (held == 0) return fault("it is not pinned");
  if (held < asked)
    return fault(fmt::format("it holds {} and asks {}", model::count_text(held, "vCPU"), asked));
  for (const int position : node.positions(workload.cpus)) {
    int threads = 0;
    for (const int thread : node.core_threads(node.core(position))) {
      if (!node.usable(thread) && !node.reserved().contains(node.cpu(thread))) continue;
      ++threads;
      if (!workload.cpus.contains(node.cpu(thread)))
        return fault(fmt::format("vCPU {} is of a core that it has not all of", node.cpu(position)));
    }
    if (held - threads >= asked) return fault(fmt::format("it needs fewer cores for {} vCPUs", asked));
  }
  return check_place(node, settings, workload, asked);
}

bool cools_down(std::optional<double> changed_at, double now, double cooldown_s) {
  if (!changed_at) return false;
  const double age = now - *changed_at;
  return age >= 0 && age < cooldown_s;
}

PinCheck check_pin(const Node& node, const InterferenceSettings& settings, const model::Workload& workload) {
  return check_pin(node, settings, workload, workload.vcpus.value_or(0));
}

}  // namespace berth::policies
