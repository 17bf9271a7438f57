// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/cgroup_counters.h"
#include "model/error.h"

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace berth::ebpf {

// One performance event, as in perf_event_open(2).
struct CounterEvent {
  std::uint32_t type = 0;
  std::uint64_t config = 0;
};
// berth counts no more cgroups in the kernel, as each takes some 500 bytes of its memory. On a host with
// more, it reads files.
inline constexpr std::size_t kMostCgroups = 131072;
// The error for such a host.
model::Error too_many_cgroups();

// Instructions, cycles, last-level cache references and misses.
using CounterEvents = std::array<CounterEvent, 4>;
CounterEvents hardware_events();

struct Options {
  std::filesystem::path cgroup_root;        // of the v2 hierarchy
  std::filesystem::path sys_root = "/sys";  // where kernel/btf/vmlinux and fs/resctrl are looked for
  // Where the verifier's log of a refused program is written; empty: nowhere.
  std::filesystem::path log_directory;
  // Number of cgroups expected; 0 counts those that are there. Each CPU has a table for twice as many or
  // more, at some 180 bytes a row. The tables grow when they get too full.
  std::uint32_t cgroups = 0;
  // The most rows that the table of a CPU may have; 0: as many as 384 MiB hold in all tables.
  std::uint32_t most_rows = 0;
  // Places in a table of tasks, 32 bytes each. A task whose place is taken costs a few ns more at a switch.
  std::uint32_t tasks = 32768;
  CounterEvents events = hardware_events();
};

// One figure, the way to get it on this host, and the obstacles to a better way.
struct FigureWay {
  // "run-time", "run-queue-delay": "sched-switch". "hardware-counters": "perf". "usage" (with memory and
  // throttling): "iter-css" (Linux 6.7), "iter-cgroup". "cgroup-events": "ring-buffer". Any of them: "none".
  std::string figure;
  std::string way;
  bool available = false;
  std::string detail;  // why the better ones are missing; empty on the best
};

// The cost of sampling since the start. Times in ns of CPU time.
struct Cost {
  std::uint64_t switches = 0;  // context switches seen
  // Of the switch program, extrapolated from every 256th run; without the kernel's time to enter it.
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

// The interface of a Collector.
class Counts {
 public:
  enum class Depth { ordinary, full };
  virtual ~Counts() = default;
  virtual model::Result<void> read(Depth depth) = 0;
  virtual void rest() = 0;
  virtual model::Result<void> begin_again() = 0;
  virtual std::size_t rows() const = 0;
  virtual void keep_together(std::set<std::uint64_t> cgroups) = 0;
  virtual model::Result<void> follow_cpus() = 0;
  virtual const model::CgroupReading* find(std::uint64_t id) const = 0;
  virtual int events_fd() const = 0;
  // A map of one program (BPF_MAP_TYPE_PROG_ARRAY) that runs after the hook on the context switch, the same
  // for all hooks. -1 where there is no hook.
  virtual int after_switch() const = 0;
  // Events since the last call, in order. `lost` where there were too many: then look at the tree.
  struct Events {
    std::vector<CgroupEvent> events;
    bool lost = false;
  };
  virtual Events take_events() = 0;
  virtual Cost cost() const = 0;
  virtual const std::vector<FigureWay>& ways() const = 0;
};

// Counts, in the kernel, CPU time, waits and hardware events of every cgroup of this host.
//
// Needs BTF (CONFIG_DEBUG_INFO_BTF), Linux 6.1, and CAP_BPF with CAP_PERFMON; no other privilege of root.
class Collector final : public Counts {
 public:
  // Loads the programs; each way is tried by loading it. Error where even the hook on the context switch
  // fails. It is unavailable (no BTF, an older kernel), permission, or io with the path of the verifier's
  // log.
  static model::Result<std::unique_ptr<Collector>> start(Options options);
  ~Collector() override;
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  // One reading of every cgroup. Earlier results of find() become invalid. Memory and throttling are always
  // current. An ordinary reading leaves `accounts.usage_ns` as it was at the last full one; every tenth is
  // full. It may miss the latest CPU time of a CPU-bound task, since its CPU last switched; the next reading
  // has that.
  //
  // An error leaves the figures of this reading unknown. It is transient where the tables were too small and
  // are larger now; unavailable where they cannot be made larger, so that each reading would miss cgroups.
  model::Result<void> read(Depth depth) override;
  model::Result<void> read() { return read(Depth::ordinary); }
  // Counts nothing until begin_again(), and costs nothing.
  void rest() override;
  // Counts from zero, in tables for the cgroups that are there now. Error as of start() or of read().
  model::Result<void> begin_again() override;
  // That the table of a CPU may have at most.
  std::size_t rows() const override;
  // From here on, all groups below these cgroups count in their rows: none of them has figures of its own,
  // and find() does not find it. Takes BERTH_MOST_KEEPERS of them.
  void keep_together(std::set<std::uint64_t> cgroups) override;
  // Call it after CPUs went on- or offline: only those that are online have tables, and the performance
  // events of a CPU end with it. Error where either cannot be made again; for events the way says so too.
  model::Result<void> follow_cpus() override;

  // As of the last reading; nullptr for a cgroup that is not there.
  const model::CgroupReading* find(std::uint64_t id) const override;
  void for_each(const std::function<void(const model::CgroupReading&)>& visit) const;
  std::size_t size() const;

  // Readable when cgroups came or went; -1 where this host has no such events.
  int events_fd() const override;
  int after_switch() const override;
  Events take_events() override;

  Cost cost() const override;
  const std::vector<FigureWay>& ways() const override;

 private:
  struct State;
  explicit Collector(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The ways of a host where Collector::start() failed with `error`: all "none", with the reason.
std::vector<FigureWay> ways_without(const model::Error& error);

// Describes in words the figures about the last-level cache that the kernel's resource control offers on this
// host. It is nothing, "not mounted", or the names of its monitoring figures (llc_occupancy, mbm_total_bytes,
// ...). Source: the kernel's Documentation/arch/x86/resctrl.rst.
std::string resctrl_offer(const std::filesystem::path& sys_root);

}  // namespace berth::ebpf
