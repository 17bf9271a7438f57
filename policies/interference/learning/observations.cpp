// SPDX-License-Identifier: Apache-2.0
#include "policies/interference/learning/observations.h"

#include "policies/victim.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace berth::policies {

namespace {

using model::Workload;

// Work that takes longer than this has seen too many neighbours.
constexpr double kLongestWork_s = 600;
// More work than this is kept only of workloads that use CPU at the moment.
constexpr std::size_t kMostWork = 20'000;
// A quota that throttles for a larger share of the time hides the use that the instance wants, so u is wrong.
constexpr double kMostThrottled = 0.01;

// Seconds that the newest sample covers; nullopt where it is not of this snapshot, or the first.
std::optional<double> fresh_interval(const Workload& workload, double now) {
  const auto& times = workload.usage.times();
  if (times.size() < 2 || times.back() != now) return std::nullopt;
  const double interval_s = now - *std::prev(times.end(), 2);
  return interval_s > 0 ? std::optional(interval_s) : std::nullopt;
}

bool is_observed(const Workload& workload) {
  return workload.workload_class == model::WorkloadClass::latency_sensitive && workload.vcpus.value_or(0) > 0;
}

const model::CpuSet& may_run_on(const model::CpuSet& pin, const Workload& workload,
                                const model::Topology& topology) {
  if (!pin.empty()) return pin;
  return workload.allowed_cpus ? *workload.allowed_cpus : topology.usable();
}

const model::CpuSet& may_run_on(const Workload& workload, const model::Topology& topology) {
  return may_run_on(workload.cpus, workload, topology);
}

// Whether the workload used CPU between the time and its newest sample.
bool used_cpu_since(const Workload& workload, double since) {
  auto sample = std::next(workload.usage.rbegin());
  for (; sample != workload.usage.rend() && (*sample).time > since; ++sample) {
    if ((*sample).cpu_cores > 0) return true;
  }
  return false;
}

Use use_of(const Workload& workload) {
  return {.cores = workload.usage.back().cpu_cores, .misses_per_s = workload.llc_misses_per_s};
}

Use part_of(const Use& use, double share) {
  return {.cores = use.cores * share,
          .misses_per_s = use.misses_per_s ? std::optional(*use.misses_per_s * share) : std::nullopt};
}

// Workloads that may run on the same vCPUs.
struct Crowd {
  const model::CpuSet* where;
  Use use;
};

// Adds where the workload ran in the interval before the snapshot. Its use was even over that time, as far as
// anybody knows.
void add_places(std::vector<Crowd>& places, const Workload& workload, double interval_s,
                const model::Snapshot& snapshot, const Moves& moves) {
  double left = 1;  // the share of the interval after the stays
  const auto moved = moves.find(workload.id);
  if (moved != moves.end() && interval_s > 0) {
    for (const Stay& stay : moved->second) {
      const double after = std::clamp((snapshot.time - stay.until) / interval_s, 0.0, left);
      if (after == left) continue;
      places.push_back({.where = &may_run_on(stay.cpus, workload, snapshot.topology),
                        .use = part_of(use_of(workload), left - after)});
      left = after;
    }
  }
  places.push_back(
      {.where = &may_run_on(workload, snapshot.topology), .use = part_of(use_of(workload), left)});
}

// Unpinned workloads may run on all vCPUs, and are spread once for all of them. Sets that differ from the
// last few stand alone, so that a host with many sets is not searched for each workload.
std::vector<Crowd> crowds_of(const std::vector<Crowd>& places) {
  constexpr std::ptrdiff_t kLastFew = 8;
  std::vector<Crowd> crowds;
  for (const auto& [place, use] : places) {
    const model::CpuSet& where = *place;
    const auto last_few = crowds.rbegin() + std::min<std::ptrdiff_t>(kLastFew, std::ssize(crowds));
    const auto crowd = std::find_if(crowds.rbegin(), last_few,
                                    [&where](const Crowd& known) { return *known.where == where; });
    if (crowd == last_few) {
      crowds.push_back({.where = &where, .use = use});
      continue;
    }
    crowd->use.cores += use.cores;
    if (crowd->use.misses_per_s && use.misses_per_s)
      *crowd->use.misses_per_s += *use.misses_per_s;
    else
      crowd->use.misses_per_s.reset();
  }
  return crowds;
}

}  // namespace

void add_move(Moves& moves, const model::Snapshot& snapshot, const std::string& workload, double now) {
  if (const Workload* found = model::find_workload(snapshot, workload))
    moves[workload].push_back({.cpus = found->cpus, .until = now});
}

Observations::Tick Observations::take(const model::Snapshot& snapshot, model::DomainKind shared_domain,
                                      const Moves& moves) {
  std::vector<std::pair<const Workload*, double>> active;  // and the interval
  bool any = false;
  for (const Workload& workload : snapshot.workloads) {
    if (workload.usage.without_cpu()) continue;
    auto interval_s = fresh_interval(workload, snapshot.time);
    // A neighbour that is read in turn goes on as it was read last, as far as anybody knows.
    if (!is_use_current(workload, snapshot.time) && !is_observed(workload)) interval_s = 0;
    if (!interval_s || !(workload.usage.back().cpu_cores > 0)) continue;
    active.emplace_back(&workload, *interval_s);
    any = any || is_observed(workload);
  }
  Tick tick;
  if (!any) return tick;
  Neighbours neighbours(snapshot.topology, shared_domain);
  std::vector<Crowd> places;
  places.reserve(active.size());
  for (const auto& [workload, interval_s] : active)
    add_places(places, *workload, interval_s, snapshot, moves);
  for (const Crowd& crowd : crowds_of(places)) neighbours.add(*crowd.where, crowd.use);
  for (auto& [id, work] : work_) work.fresh = false;
  for (const auto& [workload, interval_s] : active) {
    if (!is_observed(*workload) || moves.contains(workload->id)) continue;
    const auto around =
        neighbours.around(may_run_on(*workload, snapshot.topology), *workload->vcpus, use_of(*workload));
    if (around) observe(*workload, *around, interval_s, tick);
  }
  std::erase_if(work_, [&snapshot, many = work_.size() > kMostWork](const auto& entry) {
    return !entry.second.fresh && (many || entry.second.created + kLongestWork_s < snapshot.time);
  });
  return tick;
}

void Observations::observe(const Workload& workload, const Surroundings& around, double interval_s,
                           Tick& tick) {
  const auto newest = workload.usage.back();
  model::Observation seen{.service = workload.service,
                          .instance = workload.id,
                          .time = newest.time,
                          .response = model::Response::cpu,
                          .y = 0,
                          .sc = around.sc,
                          .ss = around.ss,
                          .llc = around.llc,
                          .u = newest.cpu_cores / *workload.vcpus};
  if (workload.cpi) {
    seen.response = model::Response::cpi;
    seen.y = *workload.cpi;
    tick.seen.push_back(std::move(seen));
  } else if (!workload.progress.empty()) {
    seen.response = model::Response::cost;
    add_work(workload, workload.progress.back().fraction, around, interval_s, seen, tick);
  } else if (workload.cpu_throttled.value_or(0) > kMostThrottled) {
    ++tick.throttled;
  } else {
    seen.y = seen.u;
    tick.seen.push_back(std::move(seen));
  }
}

// Adds up until the progress rises. Then the sums make one observation.
void Observations::add_work(const Workload& workload, double fraction, const Surroundings& around,
                            double interval_s, model::Observation& seen, Tick& tick) {
  const auto anew = [&](bool whole) {
    return Work{.created = workload.created,
                .seen_at = seen.time,
                .fraction = fraction,
                .whole = whole,
                .cpu_s = 0,
                .time_s = 0,
                .sc = 0,
                .ss = 0,
                .llc = 0,
                .llc_known = true,
                .fresh = true};
  };
  const auto [entry, first] = work_.try_emplace(workload.id, anew(false));
  Work& work = entry->second;
  if (first) return;
  // The neighbours of a sample that no tick showed are not known.
  if (work.created != workload.created || used_cpu_since(workload, work.seen_at)) {
    work = anew(false);
    return;
  }
  work.fresh = true;
  work.seen_at = seen.time;
  if (fraction < work.fraction) {
    tick.fallen.push_back(
        {workload.id, fmt::format("its progress fell from {} to {}, so nothing is learned from it",
                                  work.fraction, fraction)});
    work = anew(true);
    return;
  }
  work.cpu_s += workload.usage.back().cpu_cores * interval_s;
  work.time_s += interval_s;
  work.sc += around.sc * interval_s;
  work.ss += around.ss * interval_s;
  work.llc += around.llc.value_or(0) * interval_s;
  work.llc_known = work.llc_known && around.llc.has_value();
  if (fraction > work.fraction && !work.whole) {
    work = anew(true);
  } else if (fraction > work.fraction) {
    seen.y = work.cpu_s / (fraction - work.fraction);
    seen.sc = work.sc / work.time_s;
    seen.ss = work.ss / work.time_s;
    seen.llc = work.llc_known ? std::optional(work.llc / work.time_s) : std::nullopt;
    seen.u = work.cpu_s / work.time_s / *workload.vcpus;
    tick.seen.push_back(std::move(seen));
    work = anew(true);
  } else if (work.time_s > kLongestWork_s) {
    work = anew(false);
  }
}

}  // namespace berth::policies
