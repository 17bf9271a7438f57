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

// One hardware thread. `numa` and `socket` are the kernel's numbers (hwloc's os_index), which may have gaps.
// `core` and `llc` are numbers that berth gives. All four are unique on the host.
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
  std::string id;      // PCI address, "0000:3b:00.0"; of an instance in MIG mode its UUID, "MIG-..."
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

// A NUMA node of a host where nodes differ (Topology::numa_nodes()).
struct NumaNode {
  int number = 0;  // the kernel's
  // 0: it has no memory, and cannot be in cpuset.mems. nullopt: it has memory, of an unknown size.
  std::optional<std::uint64_t> memory_bytes;

  friend bool operator==(const NumaNode&, const NumaNode&) = default;
};

// The kernel knows no more (MAX_NUMNODES).
inline constexpr std::size_t kMostNumaNodes = 1024;

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
  // "gpus", "numa_distances" or "numa_nodes".
  static Result<Topology> make(std::vector<Cpu> cpus, std::vector<Gpu> gpus = {},
                               NumaDistances numa_distances = {}, std::vector<NumaNode> numa_nodes = {});

  // Replaces the GPUs. Error as of make(); then the old ones stay.
  Result<void> set_gpus(std::vector<Gpu> gpus);

  const std::vector<Cpu>& cpus() const { return cpus_; }
  const std::vector<Gpu>& gpus() const { return gpus_; }
  const NumaDistances& numa_distances() const { return numa_distances_; }
  // Every NUMA node, ascending, if one of them has no vCPUs (CXL, HBM) or no memory. Empty on other hosts:
  // each node has both there.
  const std::vector<NumaNode>& numa_nodes() const { return numa_nodes_; }
  // The nodes that have vCPUs, usable or not, and memory.
  const CpuSet& nodes_to_bind() const { return nodes_to_bind_; }
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
  // True where every usable vCPU has an LLC, unless lone_sockets().
  bool has_llc() const { return has_llc_; }
  // True where every socket has one online core alone, and some NUMA node has several of these sockets, as
  // virtual machines with one vCPU a socket have it. Such sockets share nothing, so that they and their
  // caches bound nothing. All of a NUMA node count as one then.
  bool lone_sockets() const { return lone_sockets_; }

  // Ascending by id. `llc` falls back to sockets on a host without LLC information.
  const std::vector<Domain>& domains(DomainKind kind) const;
  // Where lone_sockets(), those of a NUMA node as one, by the node's number.
  const std::vector<Domain>& sockets() const { return sockets_; }
  // The id in sockets() of the one that a vCPU of this host is in.
  int socket_domain(const Cpu& cpu) const { return lone_sockets_ ? cpu.numa : cpu.socket; }

  // Every usable vCPU: first threads of all cores ascending by the core's lowest vCPU, then second threads,
  // and so on ("window order").
  const std::vector<int>& window_order() const { return window_order_; }

  friend bool operator==(const Topology& a, const Topology& b) {
    return a.cpus_ == b.cpus_ && a.gpus_ == b.gpus_ && a.numa_distances_ == b.numa_distances_ &&
           a.numa_nodes_ == b.numa_nodes_;
  }

 private:
  std::vector<Cpu> cpus_;
  std::vector<Gpu> gpus_;
  NumaDistances numa_distances_;
  std::vector<NumaNode> numa_nodes_;
  CpuSet nodes_to_bind_;
  CpuSet all_;
  CpuSet usable_;
  std::map<int, CpuSet> core_threads_;  // by core
  std::vector<Domain> llcs_;
  std::vector<Domain> sockets_;
  std::vector<int> window_order_;
  int max_threads_ = 1;
  bool has_llc_ = false;
  bool lone_sockets_ = false;
};

}  // namespace berth::model
