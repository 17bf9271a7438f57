// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/maybe.h"
#include "model/plan.h"
#include "model/snapshot.h"
#include "policies/settings.h"

#include <algorithm>
#include <optional>
#include <string>

namespace berth::policies {

// A workload's allocation and use of one resource. Amounts are cores or bytes; bytes are whole numbers.
struct Share {
  // nullopt where it is unknown: no limit and no request. The host's capacity at most: a limit beyond that
  // limits nothing.
  model::Maybe<double> allocation;
  model::Maybe<double> asked;     // the allocation that it would have without a limit
  model::Maybe<double> limit;     // quota or memory.high at present; nullopt: none
  bool fixed = false;             // berth cannot change the limit
  bool whole = false;             // its CPU allocation is the vCPUs it owns, which change one by one
  model::Maybe<double> mean_use;  // over the window; nullopt without samples
  model::Maybe<double> max_use;
  model::Maybe<double> last_use;
  std::optional<model::HeldLimit> held;  // while berth holds the limit at another value than its original
  model::Maybe<double> original;         // the limit before; nullopt: there was none

  bool by_user = false;  // the limit is one that a user could set

  // Its amount in sums.
  double counted() const { return allocation.value_or(mean_use.value_or(0)); }
  // The part that others cannot get. A limit that a user could set claims no more than is in use.
  double claimed() const { return by_user ? std::min(counted(), mean_use.value_or(0)) : counted(); }
  // The same under another limit. A workload that loses its limit counts for no less than before.
  double counted_under(const std::optional<double>& other) const;
};

// Whether the quota policy lifted its CPU quota.
bool is_lifted(const model::Workload& workload);
// The present CPU quota. A lifted one counts for other policies as its owner set it.
std::optional<double> quota_that_counts(const model::Workload& workload);

// CPU is allocated by the quota, else by the vCPUs that a pinned latency-sensitive workload owns (the
// declared ones at least). Else it is allocated by the declared vCPUs. Memory is allocated by memory.high,
// else by the request (docs/decisions/stragglers.md, allocation). `capacity`: of the host, cores or bytes; 0
// where it is not known.
Share share_of(const model::Workload& workload, model::Resource resource, double capacity);

// Whether a limit is held because a straggler was given more.
bool is_growth(const std::optional<model::HeldLimit>& held);

// The distance of the present limit from the original. No limit, or one beyond the host's size, counts as all
// of the host.
double distance_from_original(const Share& share, double capacity);

// A smaller amount of cores comes from rounding; bytes have no such remainder.
inline constexpr double kNothing = 1e-9;

// The host's amount of the resource: vCPUs for work, or memory.
double capacity_of(const model::Snapshot& snapshot, const InterferenceSettings& settings,
                   model::Resource resource);

// The least limit that is ever set: cpu.max takes at least 1 ms of its period of 100 ms.
inline constexpr double kLeastQuotaCores = 0.01;
// memory.high stays this far above what is in use.
inline constexpr double kMemoryHeadroom = 1.10;
// Nor is it ever set below this: the least for a process with its libraries.
inline constexpr double kLeastMemoryBytes = 16.0 * 1024 * 1024;

// "1.5 cores", "512 MiB"
std::string amount_text(model::Resource resource, double amount);
// Adds `amount` of one resource.
void add(model::Resources& resources, model::Resource resource, double amount);
// Sets the workload's limit, nullopt: none.
model::Action set_limit(const std::string& workload, model::Resource resource, std::optional<double> limit,
                        std::string reason);

}  // namespace berth::policies
