// SPDX-License-Identifier: Apache-2.0
// Functions common to the policies that evict: which workloads can be victims, and their worth.
#pragma once

#include "model/plan.h"
#include "model/snapshot.h"
#include "policies/usage.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace berth::policies {

// In an emergency, each step of an eviction has this time at most, and the evictor needs about the least.
inline constexpr double kEmergencyGrace_s = 1;
inline constexpr double kLeastStep_s = 0.2;

// An eviction that frees less is none: it is less than a process needs. While others cover the need, nor is
// one that frees less than this share of it.
inline constexpr std::uint64_t kLeastFreedBytes = std::uint64_t{16} << 20;
inline constexpr double kLeastFreedShare = 0.01;
// Seconds of work that any restart costs at least. So work that has just begun is not nearly free.
inline constexpr double kLeastCost_s = 5;

// CPU seconds that are lost with a workload outside Spark: those that it used, and 1 % of its age, unless it
// is a user's. Most work that lives for days is a service, whatever CPU it uses. Among work of one age, the
// CPU seconds decide.
double loss_outside_spark(const model::Workload& workload, double now);

// Whether berth may end it: best-effort, managed by berth, not spared, and not being ended already.
bool may_be_ended(const model::Workload& workload);
// As may_be_ended(), and it is known to use memory.
bool can_be_evicted(const model::Workload& workload);
// Memory of workloads that berth is evicting, at most what they had in the last two seconds. It counts as
// free: it soon will be, and no other workload must be evicted for it.
std::uint64_t memory_being_freed(const model::Snapshot& snapshot);

// The memory that ends with a workload.
struct Freed {
  std::optional<std::uint64_t> bytes;  // nullopt: not known
  std::optional<std::uint32_t> user;   // model::Workload::user
};
Freed freed_by(const model::Workload& workload);
// The bytes by which each of them counts as one that frees too little. A user can divide its work as it
// likes, so for each workload of a user it is the sum of all of them.
std::vector<std::optional<std::uint64_t>> worth_freeing(const std::vector<Freed>& frees);

// Positions of the victims among workloads that free so much each, first victim first (docs/decisions/
// eviction-order.md). Together they free `need_bytes`, if all of them can; of a need of 0 it is one victim.
// None is needless because of a later one, and none frees too little, by worth_freeing(). One whose bytes are
// not known is the last.
std::vector<std::size_t> victims_among(const std::vector<Freed>& frees, double need_bytes);

// The first step of eviction for this workload. Each step has `grace_s` before the next; 1 s at most in an
// emergency.
model::Action eviction_of(const model::Workload& workload, double grace_s, bool emergency, const char* policy,
                          std::string reason);

}  // namespace berth::policies
