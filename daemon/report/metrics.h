// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/report/report_json.h"
#include "model/workload.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace berth::daemon {

// A workload's figures of the last tick; an unknown one is nullopt.
struct WorkloadFigures {
  std::string id;
  std::string service;
  model::WorkloadClass workload_class = model::WorkloadClass::best_effort;
  std::optional<model::Isolation> isolation;  // of a service
  std::optional<double> cpu_cores;
  std::optional<double> cpu_time_s;  // since its cgroup was made
  std::optional<std::uint64_t> memory_bytes;
  std::optional<int> vcpus;      // the request
  std::size_t pinned_vcpus = 0;  // 0: not pinned
  std::optional<double> score;
  std::optional<double> cpu_pressure_some_avg10;  // percent
  std::optional<double> service_pressure;         // 0..1
  std::optional<double> cpu_quota_cores;
  std::optional<double> original_cpu_quota_cores;
  std::optional<double> cpu_throttled;  // 0..1
  std::optional<std::uint64_t> memory_high_bytes;
  std::optional<std::uint64_t> original_memory_high_bytes;
  std::optional<double> progress;  // 0..1
  std::optional<double> runq_latency_us;
  std::optional<double> runq_latency_p50_us;
  std::optional<double> llc_mpki;
};

// Ascending by id.
std::vector<WorkloadFigures> workload_figures(const Tick& tick);

// Version 0.0.4 of the text format that Prometheus scrapes
// (https://prometheus.io/docs/instrumenting/exposition_formats/), its families those of
// docs/contract/metrics.md, in base units. A figure that is not known has no sample, a family without samples
// is left out.
std::string metrics_text(const StatusReport& status, const std::vector<WorkloadFigures>& workloads);

}  // namespace berth::daemon
