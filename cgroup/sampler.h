// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "cgroup/cgroup.h"
#include "model/workload.h"

namespace berth::cgroup {

// Reads usage, memory and pressure of workloads from file descriptors kept open.
class Sampler {
 public:
  Sampler();
  ~Sampler();

  void add(const std::string& id, std::shared_ptr<Cgroup> cgroup);
  void remove(const std::string& id);

  struct Reading {
    // nullopt on the first reading (a rate needs two) and where cpu.stat cannot be read.
    std::optional<model::UsageSample> sample;
    std::optional<double> cpu_pressure_some_avg10;  // percent; null where there is no PSI
    model::CpuSet cpus;                // cpuset.cpus; empty where unset or without the controller
    model::CpuSet effective_cpus;      // cpuset.cpus.effective; empty without the controller
    std::optional<double> cpu_quota_cores;
    std::optional<std::uint64_t> memory_high_bytes;
    bool gone = false;                 // the cgroup vanished between two reads
  };
  // `now` in epoch seconds stamps the samples; rates are over monotonic time. One pass over all workloads.
  std::map<std::string, Reading> sample(double now);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace berth::cgroup
