// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/cgroup.h"
#include "model/cgroup_counters.h"
#include "model/cpu_set.h"
#include "model/workload.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace berth::cgroup {

// What somebody read of all cgroups at once.
struct BulkReading {
  std::int64_t read_ns = 0;  // monotonic
  // nullptr for a cgroup that is not in it; empty where there is no such reading.
  std::function<const model::CgroupReading*(std::uint64_t cgroup_id)> find;
};

// Reads usage, memory and pressure of workloads from file descriptors kept open (at most half of
// RLIMIT_NOFILE; what is beyond is opened for each reading).
//
// What costs is read only where it can have changed: pressure where the usage moved (and, where it is known,
// threads waited), or where there was pressure before; the settings (cpuset.cpus, cpuset.cpus.effective,
// cpu.max, memory.high) in the first sample, after refresh(), and every kSettingsPeriod samples, a share of
// the workloads each time, which is also when a file that was missing is tried again; the page cache, which
// costs more than all the rest, as often while it is wanted.
class Sampler {
 public:
  static constexpr unsigned kSettingsPeriod = 10;

  Sampler();
  ~Sampler();
  Sampler(Sampler&&) noexcept;
  Sampler& operator=(Sampler&&) noexcept;

  // Nothing changes where `id` is there with the same cgroup; with another one, its history starts anew.
  void add(const std::string& id, std::shared_ptr<Cgroup> cgroup);
  void remove(const std::string& id);
  // The next sample reads the settings of this workload afresh; for after a write.
  void refresh(const std::string& id);
  // Whether the samples from here on tell the page cache; the next one tells all of it, if so.
  void want_caches(bool wanted);

  struct Reading {
    // nullopt on the first reading (a rate needs two, 1 ms apart at least), where cpu.stat cannot be read,
    // and where usage went backwards. memory_bytes is nullopt where there is no memory controller.
    std::optional<model::UsageSample> sample;
    std::optional<double> cpu_pressure_some_avg10;  // percent; null where there is no PSI
    model::CpuSet cpus;            // cpuset.cpus; empty where unset or without the controller
    model::CpuSet effective_cpus;  // cpuset.cpus.effective; empty without the controller
    std::string cpu_max;           // canonical text (cgroup/attribute.h); empty without the controller
    std::optional<double> cpu_quota_cores;
    std::optional<std::uint64_t> memory_high_bytes;
    // Share, 0..1, of the quota's periods since the reading before in which the group used its quota up and
    // had to wait: nr_throttled (cpu.stat; Linux, scheduler/sched-bwc) times the period, per time. Periods
    // in which nothing ran count. nullopt without a quota of its own, and where two readings are not to be
    // had.
    std::optional<double> cpu_throttled;
    // CPU time used since the group was made, seconds; nullopt where cpu.stat cannot be read.
    std::optional<double> cpu_time_s;
    // inactive_file of memory.stat; nullopt without the memory controller, and where it is not wanted.
    std::optional<std::uint64_t> cache_bytes;
    bool gone = false;  // the cgroup vanished between two reads
  };
  using Readings = std::map<std::string, Reading>;  // by id
  // `now` in epoch seconds stamps the samples; rates are over monotonic time. One pass over all workloads.
  // What `bulk` has is not read from files, and what no file tells is taken from it. Says what readings()
  // then does.
  const Readings& sample(double now, const BulkReading& bulk = {});
  // Of the last sample, of the workloads that were there then and still are.
  const Readings& readings() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace berth::cgroup
