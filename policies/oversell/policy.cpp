// SPDX-License-Identifier: Apache-2.0
#include "policies/oversell/policy.h"

#include "model/bytes_text.h"
#include "model/count_text.h"
#include "model/json.h"
#include "policies/memory_capacity.h"
#include "policies/oversell/demand.h"
#include "policies/oversell/pace.h"
#include "policies/oversell/peak.h"
#include "policies/share.h"
#include "policies/usage.h"
#include "policies/victim.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <fmt/core.h>

namespace berth::policies {

namespace {

using model::OversoldResource;
using model::Resource;
using model::SchedulingState;

// Tolerance of both comparisons, so that a state does not depend on the last bit of a quotient.
constexpr double kRounding = 1e-12;

struct Thresholds {
  double stop = 0;
  double evict = 0;  // of memory
};

// With fewer values the 95th percentile is the largest, and one burst would count for a day.
constexpr std::size_t kLeastShares = 20;

// One resource of the host at this tick.
struct Judged {
  Resource resource = Resource::cpu;
  std::vector<double> shares;  // of the last day
  Demand demand;
  double capacity = 0;
  double utilisation = 0;
  double weighted = 0;  // utilisation of both resources together, mean over five minutes
  std::optional<model::AdvertisedResource> before;
};

// The means of five minutes, this tick among them.
model::RecentUse recent_use(const model::Snapshot& snapshot, double cpu, double memory) {
  const model::RecentUse before = snapshot.recent_use.value_or(model::RecentUse());
  const auto with = [&](double mean, double now) { return mean + (now - mean) / (before.samples + 1); };
  return {.samples = before.samples + 1,
          .cpu = with(before.cpu, cpu),
          .memory = with(before.memory, memory),
          .load1 = with(before.load1, snapshot.load1)};
}

// The peak of a series by the method; nullopt of an empty one.
std::optional<double> peak_by(const std::vector<double>& series, PeakMethod method) {
  if (series.empty()) return std::nullopt;
  switch (method) {
    case PeakMethod::percentile:
      return percentile_peak(series);
    case PeakMethod::normal:
      return normal_peak(series);
    default:
      return std::max(*percentile_peak(series), *normal_peak(series));
  }
}

// The day's shares give a peak too, applied to the present request: the window alone is too short for the
// tides of a day.
double peak_of(OversoldResource& found, const Judged& reading, PeakMethod method) {
  const Demand& demand = reading.demand;
  found.warming = demand.warming;
  found.percentile = percentile_peak(demand.series);
  found.normal = normal_peak(demand.series);
  // Warming work is in it with its use, which may be more than its share.
  found.weighted = std::max(0.0, reading.weighted * reading.capacity - demand.warming_use);
  if (method == PeakMethod::weighted) return *found.weighted + demand.warming;
  if (const auto share = peak_by(reading.shares, method); share && reading.shares.size() >= kLeastShares)
    found.remembered = std::min(*share, 1.0) * (demand.request - demand.warming) + demand.warming;
  // No use is known at all: every workload counts with its request.
  if (!found.percentile) return demand.request;
  return std::max(*peak_by(demand.series, method) + demand.warming, found.remembered.value_or(0));
}

double wanted_factor(double request, double peak, double most) {
  if (request <= 0) return 1;
  return peak > 0 ? std::clamp(request / peak, 1.0, most) : most;
}

SchedulingState state_of(const Judged& reading, const Thresholds& thresholds) {
  if (reading.resource == Resource::memory && reading.utilisation >= thresholds.evict - kRounding)
    return SchedulingState::evict;
  const bool was_closed = reading.before && reading.before->state != SchedulingState::schedule;
  const double opens_below = thresholds.stop - (was_closed ? kStopHysteresis : 0);
  return reading.utilisation >= opens_below - kRounding ? SchedulingState::no_schedule
                                                        : SchedulingState::schedule;
}

std::string state_text(const OversoldResource& found, const Judged& reading, const Thresholds& thresholds) {
  const double used = 100 * found.utilisation;
  switch (found.state) {
    case SchedulingState::schedule:
      return fmt::format("{:.1f} % is in use, less than {:.4g} %", used, 100 * thresholds.stop);
    case SchedulingState::no_schedule:
      if (found.utilisation < thresholds.stop - kRounding) {
        return fmt::format("{:.1f} % is in use, and the node takes no work until that is below {:.4g} %",
                           used, 100 * (thresholds.stop - kStopHysteresis));
      }
      return fmt::format("{:.1f} % is in use, {:.4g} % or more: the node takes no work", used,
                         100 * thresholds.stop);
    case SchedulingState::evict:
      break;
  }
  return fmt::format("{:.1f} % of {} is in use, {:.4g} % or more", used,
                     amount_text(reading.resource, reading.capacity), 100 * thresholds.evict);
}

std::string describe(const OversoldResource& found, const Judged& reading, const OversellSettings& settings,
                     const Thresholds& thresholds) {
  std::string text =
      fmt::format("{} asked for, peak {} ({} of {}", amount_text(reading.resource, found.request),
                  amount_text(reading.resource, found.peak), to_string(settings.peak),
                  model::count_text(reading.demand.series.size(), "sample"));
  if (found.remembered && found.peak == *found.remembered) text += ", the peak of the last day";
  if (found.warming > 0)
    text += fmt::format(", {} of it requested by workloads that are new or have no known use",
                        amount_text(reading.resource, found.warming));
  text += fmt::format("): factor {:.3g}", found.wanted);
  if (found.factor < found.wanted) text += fmt::format(", {:.3g} for now", found.factor);
  return text + "; " + state_text(found, reading, thresholds);
}

OversoldResource judge(const Judged& reading, const OversellSettings& settings,
                       const Thresholds& thresholds) {
  OversoldResource found;
  found.capacity = reading.capacity;
  found.request = reading.demand.request;
  found.latency_sensitive_request = reading.demand.latency_sensitive_request;
  found.samples = static_cast<int>(reading.demand.series.size());
  if (const double known = found.request - reading.demand.warming; known > 0)
    found.used_share = std::max(0.0, reading.demand.latest - reading.demand.warming_use) / known;
  found.peak = peak_of(found, reading, settings.peak);
  found.wanted = wanted_factor(found.request, found.peak, settings.max_factor);
  // Down at once, up slowly: capacity that was promised too much is already given out.
  const double before = reading.before ? reading.before->factor : 1;
  found.factor = std::min(found.wanted, before + settings.factor_rise);
  found.utilisation = reading.utilisation;
  found.state = state_of(reading, thresholds);
  found.reason = describe(found, reading, settings, thresholds);
  return found;
}

// Until the first advertisement, the plain capacity counts as advertised.
bool is_news(const OversoldResource& found, const std::optional<model::AdvertisedResource>& said,
             double min_change) {
  const model::AdvertisedResource before = said.value_or(model::AdvertisedResource());
  if (before.state != found.state) return true;
  if (before.factor == found.factor) return false;
  // A return to 1 is always news: overselling ends there. Otherwise the wanted factor decides. A small step
  // of a long way may be less than the least change.
  return found.factor == 1 || std::abs(found.wanted - before.factor) >= min_change * before.factor;
}

// New work has no sample yet. After this many seconds, a workload without a known use counts as one whose use
// is not known.
constexpr double kUnreadFor_s = 10;

// A workload that is known to use no memory frees none.
bool may_free_memory(const model::Workload& workload, double now) {
  const auto used = latest_memory(workload);
  const bool young = workload.created > 0 && now - workload.created < kUnreadFor_s;
  return used ? *used > 0 : !young;
}

// Why memory runs out although berth may evict: each best-effort workload is protected.
std::string nothing_to_evict(const model::Snapshot& snapshot, const OversellSettings& settings,
                             const model::OversellFindings& findings) {
  std::size_t best_effort = 0;
  std::size_t spared = 0;
  for (const model::Workload& workload : snapshot.workloads) {
    if (workload.workload_class != model::WorkloadClass::best_effort) continue;
    ++best_effort;
    spared += workload.spared ? 1 : 0;
  }
  std::string text = "memory has to become free, and no workload can be evicted";
  if (best_effort == 0) return text + ": none is best-effort";
  const auto workloads = [](std::size_t number) { return model::count_text(number, "best-effort workload"); };
  const char* separator = ": ";
  const auto add = [&](std::size_t number, const std::string& why) {
    if (number == 0) return;
    text += separator + workloads(number) + why;
    separator = ", ";
  };
  add(best_effort - spared - findings.order.size(),
      fmt::format(" of priority {} or more (oversell.top_priority; oversell.evict_highest is false)",
                  settings.top_priority));
  add(spared, " spared");
  add(findings.order.size(), " that berth cannot end, or that frees less than 16 MiB");
  return text;
}

// Those of the candidates that free so many bytes together, without needless ones.
std::vector<const model::Workload*> least_victims(const std::vector<const model::Workload*>& candidates,
                                                  double bytes) {
  std::vector<Freed> frees;
  frees.reserve(candidates.size());
  for (const model::Workload* candidate : candidates) frees.push_back(freed_by(*candidate));
  std::vector<const model::Workload*> victims;
  for (const std::size_t at : victims_among(frees, std::max(0.0, bytes))) victims.push_back(candidates[at]);
  return victims;
}

// The number of workloads to evict, beyond those being evicted already, and those of them that end next. One
// at a time, as the next tick knows better; several where memory in use rises faster than that frees it.
void choose_victims(const model::Snapshot& snapshot, const PolicySettings& settings, double excess_bytes,
                    OversellProposal& proposal) {
  model::OversellFindings& findings = proposal.findings;
  const WorkloadIndex workloads(snapshot);
  std::vector<const model::Workload*> able;
  std::vector<Freed> frees;
  for (const std::string& id : findings.order) {
    const model::Workload* workload = workloads.find(id);
    if (!may_be_ended(*workload) || !may_free_memory(*workload, snapshot.time)) continue;
    able.push_back(workload);
    frees.push_back(freed_by(*workload));
  }
  const auto worth = worth_freeing(frees);
  std::vector<const model::Workload*> candidates;
  for (std::size_t at = 0; at < able.size(); ++at) {
    if (worth[at].value_or(kLeastFreedBytes) >= kLeastFreedBytes) candidates.push_back(able[at]);
  }
  if (settings.oversell.evict && candidates.empty() && findings.freeing_bytes == 0)
    findings.warning = nothing_to_evict(snapshot, settings.oversell, findings);
  const auto freeing = static_cast<double>(findings.freeing_bytes);
  std::string& reason = findings.memory.reason;
  if (freeing > excess_bytes) {
    reason += fmt::format(": {} of it becomes free when the evicted workloads have ended",
                          model::bytes_in_four_digits(freeing));
    return;
  }
  findings.evict_count =
      eviction_count(snapshot, excess_bytes - freeing, static_cast<int>(candidates.size()));
  reason += fmt::format(": {} of {} candidates would have to end", findings.evict_count, candidates.size());
  const auto ends_unknown = [](const model::Workload& it) { return it.evicted_at && !latest_memory(it); };
  if (std::any_of(snapshot.workloads.begin(), snapshot.workloads.end(), ends_unknown)) {
    reason += "; one workload with an unknown use of memory is ending, and berth waits for the effect";
    return;
  }
  if (candidates.empty()) return;
  const double steps_s = steps_take_s(settings.eviction.grace_s);
  const double rise = memory_rise(snapshot, steps_s);
  const std::vector<const model::Workload*> victims =
      least_victims(candidates, std::max(excess_bytes, rise) - freeing);
  // One alone may free next to nothing: those of a user count together as victims.
  const auto least = static_cast<double>(kLeastFreedBytes);
  const std::size_t count = evictions_at_once(victims, std::max(rise - freeing, least),
                                              static_cast<std::size_t>(findings.evict_count));
  for (std::size_t at = 0; at < count; ++at) findings.chosen.push_back(victims[at]->id);
  if (!settings.oversell.evict) return;
  if (count > 1 && rise - freeing <= least) {
    reason += fmt::format("; each frees little, so {} end at once", count);
  } else if (count > 1) {
    reason +=
        fmt::format("; memory in use rises by {} in the {:.2g} s that an eviction takes, so {} end at once",
                    model::bytes_in_four_digits(rise), steps_s, count);
  }
  for (std::size_t at = 0; at < count; ++at) {
    const model::OversellCandidate& victim = findings.candidates.at(victims[at]->id);
    proposal.actions.push_back(eviction_of(
        *victims[at], settings.eviction.grace_s, true, "oversell",
        fmt::format("{}; {} of stage {}, priority {}, {:.4g} s of work lost", reason,
                    at == 0 ? "the first" : "the next", victim.stage, victim.priority, victim.cost)));
  }
}

}  // namespace

OversellProposal propose_advertising(const OrderedSnapshot& ordered, const PolicySettings& settings,
                                     const EvictionCost& cost) {
  const model::Snapshot& snapshot = ordered.snapshot;
  const auto& workloads = ordered.workloads;
  const OversellSettings& own = settings.oversell;
  const double cpus = capacity_of(snapshot, settings.interference, Resource::cpu);
  const auto total = static_cast<double>(snapshot.memory.total_bytes);
  const auto cap = static_cast<double>(memory_capacity(snapshot.memory, own));
  const Thresholds thresholds{.stop = own.stop_threshold, .evict = 1 - own.reserve};

  Judged cpu{.resource = Resource::cpu,
             .shares = {},
             .demand = demand_of(snapshot, workloads, Resource::cpu, cpus, own.warmup_s),
             .capacity = cpus,
             .before = snapshot.advertised.cpu};
  Judged memory{.resource = Resource::memory,
                .shares = {},
                .demand = demand_of(snapshot, workloads, Resource::memory, cap, own.warmup_s),
                .capacity = cap,
                .before = snapshot.advertised.memory};
  for (const model::UsedShare& share : snapshot.used_shares) {
    cpu.shares.push_back(share.cpu);
    memory.shares.push_back(share.memory);
  }
  cpu.utilisation = cpus > 0 ? cpu.demand.latest / cpus : 0;
  if (cap > 0) memory.utilisation = (total - static_cast<double>(snapshot.memory.available_bytes)) / cap;
  const model::RecentUse recent = recent_use(snapshot, cpu.utilisation, memory.utilisation);
  cpu.weighted = memory.weighted = weighted_utilisation(recent.cpu, recent.memory, recent.load1, cpus);

  OversellProposal proposal;
  model::OversellFindings& findings = proposal.findings;
  findings.method = to_string(own.peak);
  for (const model::Workload* workload : workloads) {
    const auto warms = [&](Resource resource) {
      return is_warming(*workload, resource, snapshot.time, own.warmup_s);
    };
    if (warms(Resource::cpu) || warms(Resource::memory))
      findings.warming.append(workload->id, std::max(0.0, snapshot.time - known_since(*workload)));
  }
  findings.cpu = judge(cpu, own, thresholds);
  findings.memory = judge(memory, own, thresholds);
  findings.stop_threshold = thresholds.stop;
  findings.evict_threshold = thresholds.evict;
  findings.freeing_bytes = memory_being_freed(snapshot);
  const EvictionCost used = [&](const model::Workload& it) { return loss_outside_spark(it, snapshot.time); };
  // A host with a thousand workloads need not price them while it takes new work.
  if (findings.memory.state != SchedulingState::schedule) {
    EvictionOrder order = eviction_order(snapshot, own, cost ? cost : used);
    findings.order = std::move(order.order);
    findings.candidates = std::move(order.candidates);
  }
  if (findings.memory.state == SchedulingState::evict) {
    choose_victims(snapshot, settings, (memory.utilisation - thresholds.evict) * cap, proposal);
  }

  for (const Judged* reading : {&cpu, &memory}) {
    const OversoldResource& found = reading->resource == Resource::cpu ? findings.cpu : findings.memory;
    if (!is_news(found, reading->before, settings.safety.min_change)) continue;
    proposal.actions.push_back({.what = model::Advertise{.resource = reading->resource,
                                                         .factor = found.factor,
                                                         .capacity = found.factor * found.capacity,
                                                         .state = found.state},
                                .policy = "oversell",
                                .decision = {},
                                .reason = found.reason});
  }
  return proposal;
}

}  // namespace berth::policies
