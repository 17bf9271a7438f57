// SPDX-License-Identifier: Apache-2.0
#include "policies/eviction/policy.h"

#include "model/bytes_text.h"
#include "model/json.h"
#include "policies/eviction/candidates.h"
#include "policies/eviction/demand.h"
#include "policies/eviction/forecast/forecast.h"
#include "policies/eviction/squeeze.h"
#include "policies/replacements.h"
#include "policies/victim.h"
#include "policies/workload_index.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace berth::policies {

namespace {

using model::bytes_in_four_digits;
using model::EvictionTrigger;

// The time that psi_full_avg10 covers: it does not fully show an action within that time.
constexpr double kPressureWindow_s = 10;

// Fills in the growth, and the forecast that it comes from. Returns the method in words.
std::string forecast_growth(const model::Snapshot& snapshot, const EvictionSettings& settings,
                            model::EvictionFindings& out) {
  if (settings.forecast == ForecastRule::published) {
    out.growth_bytes = growth_of(out.demand, settings.z);
    return fmt::format("z {:.3g}", settings.z);
  }
  const auto series = demand_series(snapshot);
  const double horizon_s = horizon_of(snapshot.eviction_durations_s, settings.horizon_s);
  const auto forecast = forecast_memory(series, horizon_s, settings.confidence);
  if (forecast) {
    out.forecast = model::MemoryForecast{.shape = to_string(forecast->shape),
                                         .horizon_s = horizon_s,
                                         .peak_bytes = forecast->peak_bytes,
                                         .margin_bytes = forecast->margin_bytes,
                                         .slope_bytes_per_s = forecast->slope_bytes_per_s,
                                         .readings = series.size(),
                                         .errors = forecast->errors};
    const double growth =
        forecast->peak_bytes + forecast->margin_bytes - static_cast<double>(series.back().bytes);
    out.growth_bytes =
        static_cast<std::uint64_t>(std::clamp(std::ceil(growth), 0.0, static_cast<double>(model::kMaxBytes)));
  }
  return fmt::format("within {:.3g} s", horizon_s);
}

// Fills in the need, and the reason for it or against it.
void judge(const model::Snapshot& snapshot, const EvictionSettings& settings, model::EvictionFindings& out) {
  out.available_bytes = snapshot.memory.available_bytes;
  out.freeing_bytes = memory_being_freed(snapshot);
  out.psi_full_avg10 = snapshot.memory.psi_full_avg10;
  out.demand = demand_of(snapshot, settings.window);
  out.delta = settings.delta_weight * delta_of(out.demand);
  const std::string method = forecast_growth(snapshot, settings, out);
  if (snapshot.memory.total_bytes == 0) {
    out.reason = "the amount of memory of this node is not known";
    return;
  }
  out.reserve_bytes = static_cast<std::uint64_t>(
      std::ceil(settings.reserve * static_cast<double>(snapshot.memory.total_bytes)));
  const std::uint64_t wanted = out.growth_bytes + out.reserve_bytes;
  const std::uint64_t free = out.available_bytes + out.freeing_bytes;
  std::string comparison = fmt::format(
      "latency-sensitive workloads are expected to need {} more ({}); {} is available, and the "
      "reserve is {}",
      bytes_in_four_digits(out.growth_bytes), method, bytes_in_four_digits(out.available_bytes),
      bytes_in_four_digits(out.reserve_bytes));
  if (out.freeing_bytes > 0)
    comparison += fmt::format(", {} becomes free by evictions", bytes_in_four_digits(out.freeing_bytes));
  if (wanted > free) {
    out.need_bytes = std::min(wanted - free, model::kMaxBytes);
    out.trigger = EvictionTrigger::need;
    out.reason = fmt::format("{}: {} is missing", comparison, bytes_in_four_digits(out.need_bytes));
  } else if (out.psi_full_avg10 > settings.psi_full) {
    out.trigger = EvictionTrigger::pressure;
    out.reason = fmt::format("for {:.3g} % of the last 10 s all tasks waited for memory (psi_full {:.3g})",
                             out.psi_full_avg10, settings.psi_full);
  } else {
    out.reason = comparison + ": nothing is missing";
  }
}

// Chooses the victims for a need of any size. Pressure alone takes one at a time.
void choose_victims(const WorkloadIndex& workloads, model::EvictionFindings& out) {
  std::vector<std::string> able;
  std::vector<Freed> frees;
  for (const std::string& id : out.order) {
    const model::Workload& workload = *workloads.find(id);
    if (!can_be_evicted(workload)) continue;
    able.push_back(id);
    frees.push_back({.bytes = out.candidates.at(id).frees_bytes, .user = workload.user});
  }
  std::uint64_t freed = 0;
  for (const std::size_t at : victims_among(frees, static_cast<double>(out.need_bytes))) {
    const std::string& id = able[at];
    const model::EvictionCandidate& candidate = out.candidates.at(id);
    freed += candidate.frees_bytes;
    out.victims.push_back(
        {.workload = id,
         .bytes = candidate.frees_bytes,
         .reason = fmt::format("{}; with it {} is freed", candidate.reason, bytes_in_four_digits(freed))});
  }
}

model::Action limit_to(const std::string& workload, std::uint64_t bytes, std::string reason) {
  return {.what = model::Set{.workload = workload, .value = model::MemoryHigh{bytes}},
          .policy = "eviction",
          .decision = {},
          .reason = std::move(reason)};
}

// 0 while a workload is being evicted; infinite where none ever was.
double eviction_ended_ago(const model::Snapshot& snapshot) {
  for (const model::Workload& workload : snapshot.workloads) {
    if (workload.evicted_at) return 0;
  }
  // An end in the future comes from a clock that was set back.
  const double ago = snapshot.time - snapshot.eviction_ended_at.value_or(snapshot.time + 1);
  return ago < 0 ? std::numeric_limits<double>::infinity() : ago;
}

// Page cache counts as available already, so squeezing it meets no need. But while all tasks stall for
// memory, it decides which cache is reclaimed first.
void squeeze_or_choose(const model::Snapshot& snapshot, const WorkloadIndex& workloads,
                       EvictionProposal& out) {
  model::EvictionFindings& findings = out.findings;
  if (const double ended_ago = eviction_ended_ago(snapshot); ended_ago < kPressureWindow_s) {
    findings.reason +=
        ended_ago > 0
            ? fmt::format("; an evicted workload ended {:.3g} s ago, and berth waits for the effect",
                          ended_ago)
            : "; a workload is being evicted, and berth waits for the effect";
    return;
  }
  const double ago = squeezed_ago(snapshot);
  if (ago < kPressureWindow_s) {
    findings.reason +=
        fmt::format("; a memory limit was changed {:.3g} s ago, and berth waits for the effect", ago);
    return;
  }
  const std::uint64_t target = findings.reserve_bytes;
  auto taken = squeeze(snapshot, target);
  std::uint64_t sum = 0;
  for (const model::MemoryTaken& part : taken) sum += part.bytes;
  if (target == 0 || sum < target) {
    findings.reason += fmt::format("; caches can give up {} of {} (the reserve)", bytes_in_four_digits(sum),
                                   bytes_in_four_digits(target));
    choose_victims(workloads, findings);
    return;
  }
  for (const model::MemoryTaken& part : taken) {
    const std::uint64_t use = *workloads.find(part.workload)->usage.back().memory_bytes;
    out.actions.push_back(
        limit_to(part.workload, use - part.bytes, fmt::format("{}; {}", findings.reason, part.reason)));
  }
  findings.reason += fmt::format("; caches give up {}", bytes_in_four_digits(sum));
  findings.reclaim = std::move(taken);
}

void hold_replacements(const model::Snapshot& snapshot, const WorkloadIndex& workloads,
                       const EvictionSettings& settings, EvictionProposal& out) {
  for (const std::string& id : replacements_to_hold(snapshot, settings.hold_s)) {
    const model::Workload& workload = *workloads.find(id);
    const bool goes = std::any_of(out.actions.begin(), out.actions.end(), [&](const model::Action& action) {
      return std::holds_alternative<model::Evict>(action.what) && *action.workload() == id;
    });
    if (goes) continue;
    const std::string& app = workload.spark->app;
    const std::string reason = fmt::format(
        "it replaces an executor of {} that was evicted {:.0f} s ago; berth holds it while memory is short, "
        "and {:.4g} s after that (hold): {}",
        app, std::max(0.0, snapshot.time - snapshot.spark_evicted.at(app)), settings.hold_s,
        out.findings.reason);
    if (auto action = hold(workload, reason)) out.actions.push_back(*std::move(action));
    out.findings.held.emplace(id, reason);
  }
}

// Half the threshold: a squeezed cache is not given back while it would have to be taken again.
void keep_squeezed(const model::Snapshot& snapshot, const EvictionSettings& settings, EvictionProposal& out) {
  if (out.findings.psi_full_avg10 <= settings.psi_full / 2) return;
  for (const model::Workload& workload : snapshot.workloads) {
    if (workload.workload_class != model::WorkloadClass::best_effort || workload.fixed.memory) continue;
    if (!workload.memory_high_bytes || !workload.held_memory ||
        workload.held_memory->cause != model::HeldCause::preempted)
      continue;
    const bool squeezed_anew =
        std::any_of(out.actions.begin(), out.actions.end(), [&](const model::Action& action) {
          return action.attribute() == model::Attribute::memory_high && *action.workload() == workload.id;
        });
    if (squeezed_anew) continue;
    out.actions.push_back(
        limit_to(workload.id, *workload.memory_high_bytes,
                 fmt::format("the limit stays while memory is short: {}", out.findings.reason)));
  }
}

}  // namespace

EvictionProposal propose_evictions(const model::Snapshot& snapshot, const EvictionSettings& settings) {
  EvictionProposal out;
  model::EvictionFindings& findings = out.findings;
  findings.complexity = to_string(settings.complexity);
  findings.rank = to_string(settings.rank);
  judge(snapshot, settings, findings);
  Candidates candidates =
      candidates_of(snapshot, settings, findings.delta,
                    findings.trigger == EvictionTrigger::none ? Priced::spark : Priced::all);
  findings.apps = std::move(candidates.apps);
  findings.candidates = std::move(candidates.by_workload);
  findings.order = std::move(candidates.order);
  for (const model::Workload& workload : snapshot.workloads) {
    if (workload.workload_class == model::WorkloadClass::best_effort && workload.spared)
      findings.spared.emplace(workload.id, *workload.spared);
  }
  const WorkloadIndex workloads(snapshot);
  if (findings.trigger == EvictionTrigger::need) choose_victims(workloads, findings);
  if (findings.trigger == EvictionTrigger::pressure) squeeze_or_choose(snapshot, workloads, out);
  if (settings.evict && !findings.victims.empty()) {
    // One victim a tick: the next tick sees the effect of the first before it takes a second.
    const model::MemoryTaken& first = findings.victims.front();
    out.actions.push_back(eviction_of(*workloads.find(first.workload), settings.grace_s,
                                      findings.psi_full_avg10 > settings.psi_full, "eviction",
                                      findings.reason + "; " + first.reason));
  }
  hold_replacements(snapshot, workloads, settings, out);
  keep_squeezed(snapshot, settings, out);
  return out;
}

}  // namespace berth::policies
