// SPDX-License-Identifier: Apache-2.0
#include "policies/eviction/squeeze.h"

#include "model/bytes_text.h"
#include "model/json.h"
#include "policies/share.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include <fmt/core.h>

namespace berth::policies {

namespace {

std::uint64_t can_give(const model::Workload& workload) {
  if (workload.fixed.memory || workload.evicted_at) return 0;
  if (!workload.cache_bytes || workload.usage.empty() || !workload.usage.back().memory_bytes) return 0;
  const std::uint64_t use = *workload.usage.back().memory_bytes;
  const auto least = static_cast<std::uint64_t>(kLeastMemoryBytes);
  return use > least ? std::min(*workload.cache_bytes, use - least) : 0;
}

}  // namespace

std::vector<model::MemoryTaken> squeeze(const model::Snapshot& snapshot, std::uint64_t bytes) {
  std::vector<std::pair<std::uint64_t, const model::Workload*>> caches;
  for (const model::Workload& workload : snapshot.workloads) {
    if (workload.workload_class != model::WorkloadClass::best_effort) continue;
    if (const std::uint64_t cache = can_give(workload); cache > 0) caches.emplace_back(cache, &workload);
  }
  std::sort(caches.begin(), caches.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second->id < b.second->id;
  });
  std::vector<model::MemoryTaken> taken;
  std::uint64_t missing = bytes;
  for (const auto& [cache, workload] : caches) {
    if (missing == 0) break;
    const std::uint64_t part = std::min(cache, missing);
    const std::uint64_t limit = *workload->usage.back().memory_bytes - part;
    // It is squeezed to that already, and this change would end the squeezing.
    if (workload->memory_high_bytes && *workload->memory_high_bytes <= limit) continue;
    missing -= part;
    taken.push_back(
        {.workload = workload->id,
         .bytes = part,
         .reason = fmt::format("{} of {} that it keeps in the page cache and has not used recently",
                               model::bytes_in_four_digits(part), model::bytes_in_four_digits(cache))});
  }
  return taken;
}

double squeezed_ago(const model::Snapshot& snapshot) {
  double ago = std::numeric_limits<double>::infinity();
  for (const model::Workload& workload : snapshot.workloads) {
    if (workload.workload_class != model::WorkloadClass::best_effort || workload.fixed.memory) continue;
    if (!workload.held_memory) continue;
    // A change in the future comes from a clock that was set back.
    if (const double age = snapshot.time - workload.held_memory->changed_at; age >= 0)
      ago = std::min(ago, age);
  }
  return ago;
}

}  // namespace berth::policies
