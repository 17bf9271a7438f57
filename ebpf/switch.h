// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ebpf/aggregate.h"
#include "ebpf/collector.h"
#include "ebpf/counters.h"
#include "model/cpu_set.h"
#include "model/error.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace berth::ebpf {

// The CPUs that are online; all possible ones where that cannot be read.
model::CpuSet cpus_to_count(const std::filesystem::path& sys_root);

// The hook on the context switch and the tables it fills.
class Switch {
 public:
  // `rows` of each CPU's table, a power of two. Without `counters` no hardware counter is read. `after` is a
  // map of one program that runs after the hook, or -1.
  static model::Result<std::unique_ptr<Switch>> start(std::uint32_t rows, const Options& options,
                                                      const Counters* counters, int after);
  ~Switch();

  // Whether the program in `after` runs after the hook.
  bool runs_after() const;

  // Reads these counters from now on, or none. It needs a start() with counters. Earlier counts stay.
  model::Result<void> use(const Counters* counters);

  // From here on, all groups below these cgroups count in their rows. Takes BERTH_MOST_KEEPERS of them.
  void keep_together(const std::set<std::uint64_t>& cgroups);
  // The CPUs that have a table: those that were online. On another CPU, each cgroup lacks a row.
  const model::CpuSet& cpus() const;

  // Credits the tasks running now with their usage, on every CPU that is not idle. Unless `all`, it skips
  // CPUs that switched often since the last call, and the caller's own CPU.
  void flush(bool all);
  // One a CPU, for Aggregate::collect().
  std::vector<Aggregate::Table> tables() const;
  // Refreshes the copied values in them.
  void update(std::vector<Aggregate::Table>& tables) const;
  std::uint32_t rows() const;
  // Times that a cgroup found no row, or a task no storage.
  struct Trouble {
    std::uint64_t full = 0;
    std::uint64_t untracked = 0;
    std::uint64_t counter_errors = 0;
  };
  Trouble trouble() const;
  // Cost of the switch program; `reads` and their times are left 0.
  Cost cost() const;

 private:
  struct State;
  explicit Switch(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace berth::ebpf
