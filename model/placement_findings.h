// SPDX-License-Identifier: Apache-2.0
// Where a workload that waits to start would be placed (docs/decisions/placement.md).
#pragma once

#include "model/cpu_set.h"
#include "model/snapshot.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace berth::model {

// A NUMA node of a host that a request fits in, or a set of them, with the resources that are left there
// after placing it.
struct FittingBin {
  std::string host;
  int numa = 0;         // of a set, the lowest
  CpuSet numa_nodes{};  // the nodes of a set; empty for a single node
  // Latency-sensitive: the vCPUs it would own; best-effort: the unowned vCPUs of the bin.
  CpuSet cpus;
  std::vector<std::string> gpus;  // ids of the GPUs it would get
  // The number of pairs of these GPUs by their link. Unknown ones are left out.
  std::map<GpuLink, int> gpu_links = {};
  double cpu_left_cores = 0;
  std::uint64_t memory_left_bytes = 0;  // of the host
  double free_share = 0;  // mean of CPU left and memory left, each as a share of what there is; 0..1
  int gpus_total = 0;     // in use or not
  int gpus_left = 0;      // healthy and unused ones
  std::uint64_t gpu_memory_left_bytes = 0;  // on those it would get, beyond its request
  // score_node of the host without the request, with it, and the difference; nullopt for a best-effort
  // request.
  std::optional<double> score_before = std::nullopt;
  std::optional<double> score_after = std::nullopt;
  std::optional<double> rise = std::nullopt;
  std::string reason;  // in words: why it has this place in the order
  friend bool operator==(const FittingBin&, const FittingBin&) = default;
};

struct RejectedBin {
  std::string host;
  int numa = 0;         // of a set, the lowest
  CpuSet numa_nodes{};  // the nodes of a set, all of the host; empty for a single node
  std::string reason;
  friend bool operator==(const RejectedBin&, const RejectedBin&) = default;
};

// Every NUMA node is in one of the two. Where a host has several and none of them alone holds the request,
// the smallest set that does is in `fitting` too; or all of them together are in `rejected`.
struct BinRanking {
  std::vector<FittingBin> fitting;    // best first
  std::vector<RejectedBin> rejected;  // by host, single nodes first, then NUMA node
  friend bool operator==(const BinRanking&, const BinRanking&) = default;
};

// The answer to one request.
struct Ranking {
  PendingWorkload request;
  BinRanking bins;
  friend bool operator==(const Ranking&, const Ranking&) = default;
};

// Whether a host takes a workload that is to start.
struct Admission {
  std::string host;
  double time = 0;          // epoch seconds
  double wall_ahead_s = 0;  // of a snapshot
  PendingWorkload request;
  bool admitted = false;
  std::string reason;                   // in words: why it has its place, or why it is refused
  std::vector<std::string> change;      // of a refusal: changes, each of which may be enough
  std::optional<double> until;          // epoch seconds: how long its place is held for it
  BinRanking bins;                      // the workload has the first one that fits
  std::optional<std::string> decision;  // its id in berthd's log
  friend bool operator==(const Admission&, const Admission&) = default;
};

// The NUMA nodes of a bin: those of the set, or the one.
template <typename AnyBin>
CpuSet nodes_of(const AnyBin& bin) {
  return bin.numa_nodes.empty() ? CpuSet{bin.numa} : bin.numa_nodes;
}

// "NUMA node 1", "NUMA nodes 0-1".
std::string nodes_text(const CpuSet& nodes);

struct PlacementFindings {
  // By the id of the pending workload, in the order of the snapshot. Each is placed in its best bin before
  // the next one is looked at.
  std::map<std::string, BinRanking> pending;
  friend bool operator==(const PlacementFindings&, const PlacementFindings&) = default;
};

}  // namespace berth::model
