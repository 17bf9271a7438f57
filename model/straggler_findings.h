// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/workload.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace berth::model {

// An amount of both resources, as given to stragglers.
struct Resources {
  double cpu_cores = 0;
  std::uint64_t memory_bytes = 0;

  friend bool operator==(const Resources&, const Resources&) = default;
};

// The progress of a latency-sensitive task with a deadline. docs/decisions/stragglers.md defines the
// figures. A figure that cannot be computed is nullopt.
struct StragglerTask {
  bool straggler = false;
  std::string reason;                   // in words: the comparison that decided, or why it is not judged
  std::vector<ProgressReport> samples;  // the four it is judged by; fewer where there are no more
  std::optional<double> deadline;       // epoch seconds
  std::optional<double> v1;             // progress per second, earlier
  std::optional<double> v2;             // and now
  std::optional<double> finish;         // T, epoch seconds; nullopt where it never finishes at v2
  std::optional<double> growth;         // rho
  std::optional<double> allocation_cores;
  std::optional<std::uint64_t> allocation_bytes;
  Resources extension;       // the resources it lacks
  Resources granted;         // the part of that which it gets this tick
  std::optional<int> vcpus;  // how many it is to own while it is grown; nullopt: its request
  friend bool operator==(const StragglerTask&, const StragglerTask&) = default;
};

struct RedundantCpu {
  double utilisation = 0;  // U_c, largest use in the window / allocation
  double reclaimable_cores = 0;
  friend bool operator==(const RedundantCpu&, const RedundantCpu&) = default;
};

struct RedundantMemory {
  double utilisation = 0;
  std::uint64_t reclaimable_bytes = 0;
  friend bool operator==(const RedundantMemory&, const RedundantMemory&) = default;
};

// A best-effort task that leaves a part of at least one resource unused. A resource that it does use has
// nothing reclaimable. nullopt where its allocation or its use is not known.
struct RedundantTask {
  std::optional<RedundantCpu> cpu;
  std::optional<RedundantMemory> memory;
  friend bool operator==(const RedundantTask&, const RedundantTask&) = default;
};

// Resources that one workload gives up, or gets back, this tick.
struct LimitMove {
  // recall: it wants back what it lent; release: a straggler's growth taken back.
  enum class Kind { reclaim, preempt, recall, restore, release };
  Kind kind = Kind::reclaim;
  std::string workload;
  Resources amount;
  std::string reason;
  friend bool operator==(const LimitMove&, const LimitMove&) = default;
};

// A straggler that this host cannot help; for the scheduler that places work across hosts.
struct Relocation {
  std::string workload;
  Resources lacks;
  friend bool operator==(const Relocation&, const Relocation&) = default;
};

struct StragglerFindings {
  std::map<std::string, StragglerTask> tasks;  // every latency-sensitive workload with a deadline or progress
  std::map<std::string, RedundantTask> redundant;  // by workload id
  // Best-effort workloads that would be redundant but lend nothing, and why.
  std::map<std::string, std::string> keeping;
  // By the id of each pending latency-sensitive workload: the room that this and earlier ticks made for it.
  std::map<std::string, Resources> room;
  Resources idle;                // R_idle
  Resources needed;              // R_ne
  std::vector<LimitMove> moves;  // in the order in which they were decided
  std::vector<Relocation> relocate;
  friend bool operator==(const StragglerFindings&, const StragglerFindings&) = default;
};

}  // namespace berth::model
