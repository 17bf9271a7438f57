// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/workload.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace berth::model {

// An amount of both resources that stragglers are helped with.
struct Resources {
  double cpu_cores = 0;
  std::uint64_t memory_bytes = 0;

  friend bool operator==(const Resources&, const Resources&) = default;
};

// How a latency-sensitive task with a deadline gets on. The figures are those of docs/algorithms.md,
// stragglers; what could not be computed is nullopt.
struct StragglerTask {
  bool straggler = false;
  std::string reason;                   // in words: the comparison that decided, or why it is not judged
  std::vector<ProgressReport> samples;  // the four it is judged by; fewer where there are no more
  std::optional<double> deadline;       // epoch seconds
  std::optional<double> v1;             // progress per second, earlier
  std::optional<double> v2;             // and now
  std::optional<double> finish;         // T, epoch seconds; nullopt where it never will at v2
  std::optional<double> growth;         // rho
  std::optional<double> allocation_cores;
  std::optional<std::uint64_t> allocation_bytes;
  Resources extension;       // what it lacks
  Resources granted;         // what it gets of that this tick
  std::optional<int> vcpus;  // how many it is to own while it is grown; nullopt: what it asks for
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

// A best-effort task that does not use what it holds of one resource at least. Where it does use the other,
// nothing of that is reclaimable; nullopt where its allocation or its use is not known.
struct RedundantTask {
  std::optional<RedundantCpu> cpu;
  std::optional<RedundantMemory> memory;
  friend bool operator==(const RedundantTask&, const RedundantTask&) = default;
};

// What one workload gives up, or gets back, this tick.
struct LimitMove {
  // recall: it wants back what it lent; release: a straggler's growth taken back.
  enum class Kind { reclaim, preempt, recall, restore, release };
  Kind kind = Kind::reclaim;
  std::string workload;
  Resources amount;
  std::string reason;
  friend bool operator==(const LimitMove&, const LimitMove&) = default;
};

// A straggler that this node cannot help, for whatever places work across hosts.
struct Relocation {
  std::string workload;
  Resources lacks;
  friend bool operator==(const Relocation&, const Relocation&) = default;
};

struct StragglerFindings {
  std::map<std::string, StragglerTask> tasks;  // every latency-sensitive workload with a deadline or progress
  std::map<std::string, RedundantTask> redundant;  // by workload id
  // Best-effort workloads that would be redundant, and why they lend nothing all the same.
  std::map<std::string, std::string> keeping;
  // By the id of each latency-sensitive workload that is pending: what this and earlier ticks made room for.
  std::map<std::string, Resources> room;
  Resources idle;                // R_idle
  Resources needed;              // R_ne
  std::vector<LimitMove> moves;  // in the order in which they were decided
  std::vector<Relocation> relocate;
  friend bool operator==(const StragglerFindings&, const StragglerFindings&) = default;
};

}  // namespace berth::model
