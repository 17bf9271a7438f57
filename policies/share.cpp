// SPDX-License-Identifier: Apache-2.0
#include "policies/share.h"

#include "model/bytes_text.h"
#include "model/ground.h"
#include "model/standing.h"
#include "policies/vcpus/pool.h"
#include "policies/victim.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include <fmt/core.h>

namespace berth::policies {

namespace {

std::optional<double> as_number(const std::optional<std::uint64_t>& bytes) {
  if (!bytes) return std::nullopt;
  return static_cast<double>(*bytes);
}

bool owns_vcpus(const model::Workload& workload) {
  return workload.workload_class == model::WorkloadClass::latency_sensitive && workload.vcpus &&
         !workload.cpus.empty() && !workload.shares;
}

std::optional<double> cpu_asked(const model::Workload& workload) {
  if (owns_vcpus(workload)) return std::max(*workload.vcpus, static_cast<int>(workload.cpus.size()));
  if (workload.vcpus) return *workload.vcpus;
  return std::nullopt;
}

std::optional<double> memory_asked(const model::Workload& workload) {
  if (workload.memory_request_bytes > 0) return static_cast<double>(workload.memory_request_bytes);
  return std::nullopt;
}

}  // namespace

bool is_lifted(const model::Workload& workload) {
  return workload.held_cpu && workload.held_cpu->cause == model::HeldCause::lifted;
}

std::optional<double> quota_that_counts(const model::Workload& workload) {
  return is_lifted(workload) ? model::limits_of_owner(workload).cpu_quota_cores : workload.cpu_quota_cores;
}

double Share::counted_under(const std::optional<double>& other) const {
  if (other) return *other;
  return std::max(counted(), asked.value_or(mean_use.value_or(0)));
}

Share share_of(const model::Workload& workload, model::Resource resource, double capacity) {
  const bool cpu = resource == model::Resource::cpu;
  Share share;
  share.asked = cpu ? cpu_asked(workload) : memory_asked(workload);
  share.limit = cpu ? quota_that_counts(workload) : as_number(workload.memory_high_bytes);
  share.whole = cpu && !share.limit && owns_vcpus(workload);
  share.allocation = share.limit ? share.limit : share.asked;
  if (share.allocation && capacity > 0) share.allocation = std::min(*share.allocation, capacity);
  share.fixed = cpu ? workload.fixed.cpu : workload.fixed.memory;
  // Without the original nothing can be given back: the limit then counts as not berth's.
  if (workload.original && !share.fixed && !(cpu && is_lifted(workload))) {
    share.held = cpu ? workload.held_cpu : workload.held_memory;
    share.original =
        cpu ? workload.original->cpu_quota_cores : as_number(workload.original->memory_high_bytes);
  }
  share.by_user =
      share.limit && !share.held && !model::may_favour_itself({.user = workload.user}, model::Word::limit);
  const auto& use = cpu ? workload.usage.cpu() : workload.usage.memory();
  if (const auto mean = use.mean()) {
    share.mean_use = cpu ? *mean : std::ceil(*mean);
    share.max_use = use.max;
    share.last_use = latest_use(workload, resource);
  }
  return share;
}

bool is_growth(const std::optional<model::HeldLimit>& held) {
  return held && held->cause == model::HeldCause::extended;
}

double distance_from_original(const Share& share, double capacity) {
  const auto in_effect = [capacity](const std::optional<double>& limit) {
    if (capacity <= 0) return limit.value_or(0);
    return std::min(limit.value_or(capacity), capacity);
  };
  return std::abs(in_effect(share.original) - in_effect(share.limit));
}

double capacity_of(const model::Snapshot& snapshot, const InterferenceSettings& settings,
                   model::Resource resource) {
  return resource == model::Resource::cpu ? static_cast<double>(vcpus_for_work(snapshot, settings).size())
                                          : static_cast<double>(snapshot.memory.total_bytes);
}

std::string amount_text(model::Resource resource, double amount) {
  if (resource == model::Resource::cpu) {
    const std::string number = fmt::format("{:.3g}", amount);
    return number + (number == "1" ? " core" : " cores");
  }
  return model::bytes_in_four_digits(amount);
}

void add(model::Resources& resources, model::Resource resource, double amount) {
  if (resource == model::Resource::cpu) {
    resources.cpu_cores += amount;
  } else {
    resources.memory_bytes += static_cast<std::uint64_t>(std::max(0.0, amount));
  }
}

model::Action set_limit(const std::string& workload, model::Resource resource, std::optional<double> limit,
                        std::string reason) {
  model::Action action{.what = {}, .policy = "straggler", .decision = {}, .reason = std::move(reason)};
  if (resource == model::Resource::cpu) {
    action.what = model::Set{.workload = workload, .value = model::CpuQuota{limit}};
  } else {
    model::MemoryHigh high;
    if (limit) high.bytes = static_cast<std::uint64_t>(std::ceil(*limit));
    action.what = model::Set{.workload = workload, .value = high};
  }
  return action;
}

}  // namespace berth::policies
