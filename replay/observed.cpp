// SPDX-License-Identifier: Apache-2.0
#include "replay/observed.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/core.h>

namespace berth::replay {

using model::Observation;
using model::ProfileKey;
using model::Response;
using model::Workload;

namespace {

constexpr std::size_t kMostNames = 5;

// Samples of the window later than `since`, without the newest tick's.
std::uint64_t samples_between(const model::UsageWindow& usage, double since, double now) {
  std::uint64_t count = 0;
  for (const double* time = usage.times().end(); time != usage.times().begin() && *(time - 1) > since;
       --time) {
    if (*(time - 1) < now) ++count;
  }
  return count;
}

bool used_cpu(const Workload& workload, double now) {
  return !workload.usage.empty() && workload.usage.times().back() == now &&
         workload.usage.back().cpu_cores > 0;
}

// "a, b and 3 more".
std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMostNames); ++i) {
    if (i > 0) text += ", ";
    text += names[i];
  }
  return names.size() > kMostNames ? fmt::format("{} and {} more", text, names.size() - kMostNames) : text;
}

std::string times(std::uint64_t count) { return count == 1 ? "once" : fmt::format("{} times", count); }

}  // namespace

std::vector<Observation> Observed::take(const model::Snapshot& snapshot, model::DomainKind shared_domain) {
  look_at(snapshot);
  auto tick = observations_of_.take(snapshot, shared_domain);
  throttled_ += tick.throttled;
  fallen_ += tick.fallen.size();
  for (const Observation& seen : tick.seen) {
    if (const auto service = services_.find(seen.service); service != services_.end())
      service->second.made = true;
  }
  std::erase_if(tick.seen, [this](const Observation& seen) {
    const auto fault = model::fault_of(seen);
    if (!fault) return false;
    ++set_aside_;
    if (!first_set_aside_)
      first_set_aside_ =
          fmt::format("{} by {} at {:.3f}: {}", seen.instance, to_string(seen.response), seen.time, *fault);
    return true;
  });
  count(tick.seen);
  return std::move(tick.seen);
}

void Observed::look_at(const model::Snapshot& snapshot) {
  std::uint64_t between = 0;
  for (const Workload& workload : snapshot.workloads) {
    if (workload.workload_class != model::WorkloadClass::latency_sensitive) continue;
    if (ticks_ > 0) between = std::max(between, samples_between(workload.usage, ended_, snapshot.time));
    if (services_.size() >= kMostServices && services_.count(workload.service) == 0) continue;
    Service& service = services_[workload.service];
    if (workload.vcpus.value_or(0) <= 0) continue;
    service.asks_for_vcpus = true;
    service.used_cpu = service.used_cpu || used_cpu(workload, snapshot.time);
    service.cycles = service.cycles || workload.cpi;
    service.progress = service.progress || !workload.progress.empty();
  }
  missing_ += between;
  if (ticks_++ == 0) begun_ = snapshot.time;
  ended_ = snapshot.time;
  host_ = snapshot.host;
}

void Observed::count(const std::vector<Observation>& seen) {
  std::map<ProfileKey, std::size_t> at_once;
  for (const Observation& one : seen) {
    ++observations_;
    if (const auto service = services_.find(one.service); service != services_.end())
      service->second.observed = true;
    const ProfileKey key{one.service, one.response};
    if (counts_.size() >= kMostServices && counts_.count(key) == 0) continue;
    Count& of = counts_[key];
    ++of.observations;
    if (one.llc) ++of.with_llc;
    of.at_once = std::max(of.at_once, ++at_once[key]);
  }
}

std::vector<std::string> Observed::reasons_of_services() const {
  using Test = std::function<bool(const Service&)>;
  // The first that holds of a service is the reason that it has no observation.
  const std::vector<std::pair<const char*, Test>> without{
      {"no instance requests vCPUs", [](const Service& of) { return !of.asks_for_vcpus; }},
      {"no instance used CPU", [](const Service& of) { return !of.used_cpu; }},
      {"all its observations had impossible figures", [](const Service& of) { return of.made; }},
      {"no rise of its progress was seen over ticks without a gap",
       [](const Service& of) { return of.progress; }},
      {"its own quota throttled it, or its first sample was its last", [](const Service&) { return true; }}};
  std::vector<std::string> reasons;
  std::vector<std::vector<std::string>> names(without.size());
  for (const auto& [name, service] : services_) {
    if (service.observed) continue;
    const auto found = std::find_if(without.begin(), without.end(),
                                    [&of = service](const auto& reason) { return reason.second(of); });
    names[static_cast<std::size_t>(found - without.begin())].push_back(name);
  }
  for (std::size_t i = 0; i < without.size(); ++i) {
    if (!names[i].empty())
      reasons.push_back(fmt::format("nothing of {}: {}", listed(names[i]), without[i].first));
  }
  const auto observed_without = [this](const Test& test) {
    std::vector<std::string> list;
    for (const auto& [name, service] : services_) {
      if (service.observed && test(service)) list.push_back(name);
    }
    return listed(list);
  };
  if (const auto list = observed_without([](const Service& of) { return !of.cycles; }); !list.empty())
    reasons.push_back(fmt::format("no cpi of {}: no performance counter was read", list));
  if (const auto list = observed_without([](const Service& of) { return !of.cycles && !of.progress; });
      !list.empty())
    reasons.push_back(fmt::format("no cost of {}: no instance reported progress", list));
  return reasons;
}

std::vector<std::string> Observed::lacks() const {
  std::vector<std::string> reasons;
  if (services_.empty()) reasons.emplace_back("no workload was latency-sensitive");
  for (auto& reason : reasons_of_services()) reasons.push_back(std::move(reason));
  std::vector<std::string> alone;
  bool any_llc = false;
  for (const auto& [key, of] : counts_) {
    if (key.response == Response::cpu && of.at_once < 2) alone.push_back(key.service);
    any_llc = any_llc || of.with_llc > 0;
  }
  if (!alone.empty())
    reasons.push_back(
        fmt::format("{} by cpu teaches nothing: there were never two instances in one tick", listed(alone)));
  if (!counts_.empty() && !any_llc)
    reasons.emplace_back("no llc: the cache misses of some workload were not known at any tick");
  if (throttled_ > 0)
    reasons.push_back(
        fmt::format("a quota throttled an instance {}, which hides its use", times(throttled_)));
  if (fallen_ > 0)
    reasons.push_back(fmt::format("a progress fell {}, so that work was left out", times(fallen_)));
  if (set_aside_ > 0)
    reasons.push_back(
        fmt::format("{} left out for an impossible figure, first {}",
                    set_aside_ == 1 ? "1 observation was" : fmt::format("{} observations were", set_aside_),
                    *first_set_aside_));
  if (missing_ > 0)
    reasons.push_back(fmt::format("{} tick{} missing: berthd took samples there, but no recorder read them",
                                  missing_, missing_ == 1 ? " is" : "s are"));
  return reasons;
}

}  // namespace berth::replay
