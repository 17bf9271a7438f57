// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/cgroup_counters.h"
#include "model/error.h"

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace berth::ebpf {

// One performance event, as in perf_event_open(2).
struct CounterEvent {
  std::uint32_t type = 0;
  std::uint64_t config = 0;
};
// Instructions, cycles, last-level cache references and misses.
using CounterEvents = std::array<CounterEvent, 4>;
CounterEvents hardware_events();

struct Options {
  std::filesystem::path cgroup_root;        // of the v2 hierarchy
  std::filesystem::path sys_root = "/sys";  // where kernel/btf/vmlinux and fs/resctrl are looked for
  std::filesystem::path log_directory;  // where the verifier's log of a refused program goes; empty: nowhere
  // The tables, one a CPU of some 180 bytes a row, hold twice as many or more; 0 counts those that are there.
  // They grow when they get too full.
  std::uint32_t cgroups = 0;
  // Places in a table of tasks, 32 bytes each; a task whose place is taken costs a few ns more at a switch.
  std::uint32_t tasks = 32768;
  CounterEvents events = hardware_events();
};

// One figure, how it is had here, and what stands in the way of a better way.
struct Rung {
  // "run-time", "run-queue-delay": "sched-switch". "hardware-counters": "perf". "usage" (with memory and
  // throttling): "iter-css" (Linux 6.7), "iter-cgroup". "cgroup-events": "ring-buffer". Any of them: "none".
  std::string figure;
  std::string rung;
  bool available = false;
  std::string detail;  // why the better ones are missing; empty on the best
};

// What sampling cost since the start. Times in ns of CPU time.
struct Cost {
  std::uint64_t switches = 0;  // context switches seen
  // Of the switch program, extrapolated from every 256th run; what the kernel needs to enter it is not in it.
  std::uint64_t bpf_ns = 0;
  std::uint64_t reads = 0;
  std::uint64_t read_ns = 0;       // of read(), all of them
  std::uint64_t last_read_ns = 0;  // of the last one
};

// A cgroup that came or went.
struct CgroupEvent {
  bool created = false;
  std::uint64_t id = 0;
  std::uint64_t parent = 0;
  std::string path;  // below the root, without a leading slash
};

// Counts, in the kernel, what every cgroup of this host does.
//
// Needs BTF (CONFIG_DEBUG_INFO_BTF), Linux 6.1, and CAP_BPF with CAP_PERFMON; nothing else of root's.
class Collector {
 public:
  // Loads the programs, each rung tried by loading it. Error where not even the hook on the context switch
  // can be had: unavailable (no BTF, an older kernel), permission, or io with the path of the verifier's log.
  static model::Result<std::unique_ptr<Collector>> start(Options options);
  ~Collector();
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  // One reading of every cgroup. What find() gave before is void. An ordinary one leaves `accounts.usage_ns`
  // as it was at the last full one, which every tenth is, and may owe a CPU-bound task what it has used since
  // its CPU last switched, to the next reading; memory and throttling are always current.
  enum class Depth { ordinary, full };
  model::Result<void> read(Depth depth = Depth::ordinary);
  // To be called after CPUs went on- or offline: the performance events of a CPU end with it. Error
  // where they cannot be had again, which the rung says too.
  model::Result<void> follow_cpus();

  // As of the last reading; nullptr for a cgroup that is not there.
  const model::CgroupReading* find(std::uint64_t id) const;
  void for_each(const std::function<void(const model::CgroupReading&)>& visit) const;
  std::size_t size() const;

  // Readable when cgroups came or went; -1 where this host has no such events.
  int events_fd() const;
  // What happened since the last call, in order. `lost` where there was too much of it: look at the tree.
  struct Events {
    std::vector<CgroupEvent> events;
    bool lost = false;
  };
  Events take_events();

  Cost cost() const;
  const std::vector<Rung>& rungs() const;

 private:
  struct State;
  explicit Collector(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The rungs of a host where Collector::start() failed with `error`: none, and why.
std::vector<Rung> rungs_without(const model::Error& error);

}  // namespace berth::ebpf
