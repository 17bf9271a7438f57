// SPDX-License-Identifier: Apache-2.0
#include "policies/vcpus/pressure.h"

#include "policies/usage.h"

#include <algorithm>

#include <fmt/core.h>

namespace berth::policies {

namespace {

struct Measured {
  double sum = 0;  // of cores used per vCPU
  int instances = 0;
};

Pressure pressure_of(const Measured& measured) {
  if (measured.instances == 0) return {.value = kUnknownPressure, .source = "no samples yet"};
  return {.value = std::clamp(measured.sum / measured.instances, 0.0, 1.0),
          .source = measured.instances == 1 ? std::string("measured on 1 instance")
                                            : fmt::format("measured on {} instances", measured.instances)};
}

}  // namespace

std::map<std::string, Pressure> service_pressures(const model::Snapshot& snapshot,
                                                  const std::vector<const model::Workload*>& workloads) {
  std::map<std::string, Measured> measured;
  for (const model::Workload* workload : workloads) {
    if (workload->workload_class != model::WorkloadClass::latency_sensitive) continue;
    Measured& service = measured[workload->service];
    if (workload->usage.empty() || workload->vcpus.value_or(0) <= 0) continue;
    service.sum += mean_cores(*workload) / *workload->vcpus;
    ++service.instances;
  }
  for (const model::PendingWorkload& pending : snapshot.pending) measured.try_emplace(pending.service);

  std::map<std::string, Pressure> pressures;
  for (const auto& [service, seen] : measured) {
    const auto profile = snapshot.services.find(service);
    const bool given = profile != snapshot.services.end() && profile->second.pressure.has_value();
    pressures[service] =
        given ? Pressure{.value = std::clamp(*profile->second.pressure, 0.0, 1.0), .source = "given"}
              : pressure_of(seen);
  }
  return pressures;
}

ModelChoice choose_model(const model::Snapshot& snapshot, const std::string& service,
                         const model::InterferenceModel& fallback) {
  const auto profile = snapshot.services.find(service);
  if (profile != snapshot.services.end()) {
    const auto& [pressure, given, learned] = profile->second;
    if (given && learned) return {.model = *given, .origin = model::ModelOrigin::fitted, .reason = *learned};
    if (given) {
      return {.model = *given,
              .origin = model::ModelOrigin::given,
              .reason = fmt::format("given for service '{}'", service)};
    }
    if (learned) return {.model = fallback, .origin = model::ModelOrigin::fallback, .reason = *learned};
  }
  return {.model = fallback,
          .origin = model::ModelOrigin::fallback,
          .reason = fmt::format("no model is given for service '{}'", service)};
}

}  // namespace berth::policies
