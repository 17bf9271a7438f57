// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/cpu_set.h"
#include "model/error.h"
#include "model/gpu_link.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace berth::model {

// One hardware thread. `core`, `llc`, `numa` and `socket` are host-wide indices (hwloc's logical ones).
struct Cpu {
  int cpu = 0;
  int core = 0;
  std::optional<int> llc;  // last-level cache domain; nullopt where the host reports no shared cache
  int numa = 0;
  int socket = 0;
  bool online = true;
  bool allowed = true;            // berth may use it (root cpuset)
  std::optional<int> efficiency;  // hwloc CPU-kind rank on hybrid processors: 0 is the most power-efficient

  friend bool operator==(const Cpu&, const Cpu&) = default;
};

// A figure that is not known is nullopt, never 0.
struct Gpu {
  std::string id;      // PCI address, "0000:3b:00.0"
  std::string vendor;  // "nvidia", "amd", "intel"
  std::string model;
  std::optional<int> numa;
  std::optional<std::uint64_t> memory_bytes = std::nullopt;
  std::optional<std::uint64_t> memory_used_bytes = std::nullopt;
  std::optional<double> utilisation = std::nullopt;  // 0..1
  bool healthy = true;
  std::optional<std::string> holder = std::nullopt;   // id of the workload that has it alone
  std::optional<std::string> problem = std::nullopt;  // why it is not healthy
  // Processes that use it and belong to no workload.
  std::optional<int> other_processes = std::nullopt;
  // To other GPUs of the host, ascending by id; a link that is not known is not there. If only one of two
  // GPUs names their link, it is the link of both (link_between()).
  std::vector<GpuPeer> links = {};

  friend bool operator==(const Gpu&, const Gpu&) = default;
};

// nullopt where neither names it.
std::optional<GpuLink> link_between(const Gpu& a, const Gpu& b);

// More NUMA nodes have no distances.
inline constexpr std::size_t kMostDistantNodes = 64;
inline constexpr int kMaxNumaDistance = 1'000'000;

// How far NUMA nodes are from each other, as the firmware tells it (ACPI, SLIT): a node is 10 from itself,
// and twice as slow memory is at 20. Empty where the host does not tell.
struct NumaDistances {
  std::vector<int> nodes;   // ascending; at most kMostDistantNodes
  std::vector<int> values;  // from nodes[i] to nodes[j] at i * nodes.size() + j; 1 to kMaxNumaDistance

  // nullopt where it is not known.
  std::optional<int> between(int from, int to) const;

  friend bool operator==(const NumaDistances&, const NumaDistances&) = default;
};

enum class DomainKind { llc, socket };

// A set of vCPUs whose occupants share a last-level cache or a socket (docs/decisions/pinning.md, domains).
// `cpus` holds the usable ones only.
struct Domain {
  int id = 0;
  int socket = 0;
  CpuSet cpus;

  friend bool operator==(const Domain&, const Domain&) = default;
};

// The host's processors. Invariant: vCPU numbers are unique and ascending. The hardware threads of one core
// agree on LLC, NUMA node and socket. An LLC lies within one socket. At least one vCPU is usable.
class Topology {
 public:
  // Holds no vCPU, the one value outside the invariant: a Snapshot holds it until it is filled.
  Topology() = default;
  // Error invalid_input names the index in `cpus` or `gpus` that breaks the invariant ("cpus[3]: ..."),
  // "gpus" or "numa_distances".
  static Result<Topology> make(std::vector<Cpu> cpus, std::vector<Gpu> gpus = {},
                               NumaDistances numa_distances = {});

  // Replaces the GPUs. Error as of make(); then the old ones stay.
  Result<void> set_gpus(std::vector<Gpu> gpus);

  const std::vector<Cpu>& cpus() const { return cpus_; }
  const std::vector<Gpu>& gpus() const { return gpus_; }
  const NumaDistances& numa_distances() const { return numa_distances_; }
  // nullptr where there is no such vCPU.
  const Cpu* find(int cpu) const;

  // Every vCPU named, online or not.
  const CpuSet& all() const { return all_; }
  // Online and allowed: the ones that can be given out. Every other view below speaks of these only.
  const CpuSet& usable() const { return usable_; }
  // The usable threads of `cpu`'s core, `cpu` included; empty for an unknown one.
  const CpuSet& core_threads(int cpu) const;
  // Position of `cpu` among the usable threads of its core, 0 for the first; -1 for an unknown one.
  int smt_rank(int cpu) const;
  // Threads of the widest core: 1 without SMT.
  int max_threads_per_core() const { return max_threads_; }
  // True where every usable vCPU has an LLC.
  bool has_llc() const { return has_llc_; }

  // Ascending by id. `llc` falls back to sockets on a host without LLC information.
  const std::vector<Domain>& domains(DomainKind kind) const;
  const std::vector<Domain>& sockets() const { return sockets_; }

  // Every usable vCPU: first threads of all cores ascending by the core's lowest vCPU, then second threads,
  // and so on ("window order").
  const std::vector<int>& window_order() const { return window_order_; }

  friend bool operator==(const Topology& a, const Topology& b) {
    return a.cpus_ == b.cpus_ && a.gpus_ == b.gpus_ && a.numa_distances_ == b.numa_distances_;
  }

 private:
  std::vector<Cpu> cpus_;
  std::vector<Gpu> gpus_;
  NumaDistances numa_distances_;
  CpuSet all_;
  CpuSet usable_;
  std::map<int, CpuSet> core_threads_;  // by core
  std::vector<Domain> llcs_;
  std::vector<Domain> sockets_;
  std::vector<int> window_order_;
  int max_threads_ = 1;
  bool has_llc_ = false;
};

}  // namespace berth::model
