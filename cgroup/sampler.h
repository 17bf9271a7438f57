// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/cgroup.h"
#include "cgroup/value.h"
#include "model/cgroup_counters.h"
#include "model/cpu_set.h"
#include "model/workload.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace berth::cgroup {

// A reading of all cgroups at once, from another source than files.
struct BulkReading {
  std::int64_t read_ns = 0;  // monotonic
  // nullptr for a cgroup that is not in the reading. The function is empty where there is no such reading.
  std::function<const model::CgroupReading*(std::uint64_t cgroup_id)> find;
};

// Reads usage, memory and pressure of workloads from file descriptors kept open. At most three eighths of
// RLIMIT_NOFILE are kept; the other files are opened for each reading.
//
// Files that are costly to read are read only where they can have changed. Pressure is read where the usage
// moved (and, where it is known, threads waited), or where there was pressure before. The settings
// (cpuset.cpus, cpuset.cpus.effective, cpu.max, memory.high) are read in the first sample, after refresh(),
// and every kSettingsPeriod samples. Of more than five hundred workloads, a sample reads the settings of
// kMostTurns. The page cache costs more than all the rest. It is read as often as the settings, while it is
// wanted.
//
// Each sample reads the settings of a share of the workloads, with their pressure. A missing file is tried
// again then.
//
// Workloads that a user made are read after all others, and only for as long as set_share() says. Each user
// gets an equal part of that time, and what it leaves goes to the users with more workloads. The next sample
// goes on, in the order of the ids, where this one stopped. Reading::fresh tells what was read.
class Sampler {
 public:
  static constexpr std::size_t kSettingsPeriod = 10;
  static constexpr std::size_t kMostTurns = 50;
  // So many workloads of a user are read in any case. The clock is asked as often.
  static constexpr std::size_t kLeastOfUser = 8;

  Sampler();
  // Looks for no files of controllers that are not in `controllers`, those of the tree's root: opening a file
  // that is missing costs as much as reading one.
  explicit Sampler(const std::set<std::string>& controllers);
  ~Sampler();
  Sampler(Sampler&&) noexcept;
  Sampler& operator=(Sampler&&) noexcept;

  // Changes nothing where `id` is there with the same cgroup. With another cgroup, its history starts anew.
  // `user`: the one that made it, within whose share it is read; nullopt: it is read in each sample.
  void add(const std::string& id, std::shared_ptr<Cgroup> cgroup,
           std::optional<std::uint32_t> user = std::nullopt);
  void remove(const std::string& id);
  // The next sample reads the settings of this workload again. Call it after a write.
  void refresh(const std::string& id);
  // How long the samples from here on may take to read the workloads of all users, in ns of `clock`; for
  // ever, as long as it is not told.
  void set_share(std::int64_t share_ns) { set_share(share_ns, thread_cpu_ns); }
  void set_share(std::int64_t share_ns, std::function<std::int64_t()> clock);
  // The number of online vCPUs. A use beyond that, and beyond what the imprecision of two readings explains,
  // makes no sample. 0, the default: it is not known.
  void set_most_cores(std::size_t cores);
  // Whether the samples from here on tell the page cache. If so, the next one tells all of it.
  void want_caches(bool wanted);
  // Whether the samples from here on tell an attribute that is asked for (model/attribute.h); likewise.
  void want(Attribute attribute, bool wanted);

  struct Reading {
    // This sample read it. Else it was not its turn: rates, pressure and page cache are not known, and the
    // other figures are those of the last time.
    bool fresh = false;
    // The settings were read since refresh(), or since the workload came.
    bool settings_known = false;
    // No sample on the first reading, as a rate needs two, 1 ms apart at least. None where cpu.stat cannot be
    // read, where usage went backwards, and where its source changed (files or bulk). Without a memory
    // controller memory_bytes is nullopt.
    std::optional<model::UsageSample> sample;
    std::optional<double> cpu_pressure_some_avg10;  // percent; null where there is no PSI
    model::CpuSet cpus;                // cpuset.cpus; empty where unset or without the controller
    model::CpuSet effective_cpus;      // cpuset.cpus.effective; empty without the controller
    CpuMax cpu_max;                    // the unset value without the controller
    std::map<Attribute, Value> asked;  // the wanted ones of those that are asked for
    std::optional<double> cpu_quota_cores;
    std::optional<std::uint64_t> memory_high_bytes;
    // Share, 0..1, of the quota's periods since the reading before in which the group used its quota up and
    // had to wait. It is nr_throttled (cpu.stat; Linux, scheduler/sched-bwc) times the period, divided by the
    // time. Periods in which nothing ran count. nullopt without a quota of its own, and without two readings.
    std::optional<double> cpu_throttled;
    // Cores that it would have used more, had the quota not stopped it: the increase of throttled_usec in the
    // same time, by that time. The kernel adds up the time of each vCPU. nullopt likewise.
    std::optional<double> cpu_lacked;
    // Cycles per instruction, and misses of the last-level cache a second, since the reading before. nullopt
    // without a sample, without performance counters, and where nothing ran.
    std::optional<double> cpi;
    std::optional<double> llc_misses_per_s;
    // CPU time used since the group was made, seconds; nullopt where cpu.stat cannot be read.
    std::optional<double> cpu_time_s;
    // inactive_file of memory.stat; nullopt without the memory controller, and where it is not wanted.
    std::optional<std::uint64_t> cache_bytes;
    // Cores by the counter of CPU time since the reading before, where that is more than all vCPUs can give:
    // the counter jumped, and there is no sample.
    std::optional<double> impossible_cores;
    bool gone = false;  // the cgroup vanished between two reads

    // nullopt where it is not wanted.
    std::optional<Value> value(Attribute attribute) const;
  };
  using Readings = std::map<std::string, Reading>;  // by id
  // `now` in epoch seconds stamps the samples; rates are over monotonic time. One pass over all workloads.
  // Figures in `bulk` are not read from files; figures that no file has come from `bulk` alone. Returns
  // readings().
  const Readings& sample(double now, const BulkReading& bulk = {});
  // Reads the settings of the workloads that came since the last sample, and nothing else. The next sample
  // reads and counts the same as without this. Returns readings().
  const Readings& read_new();
  // The last sample, of the workloads that were there then and still are.
  const Readings& readings() const;

 private:
  static std::int64_t thread_cpu_ns();

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace berth::cgroup
