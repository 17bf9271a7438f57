// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/departures.h"

#include "model/plain_text.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace berth::daemon {

namespace {

using Kind = model::Departure::Kind;

bool begins_an_eviction(const LogEntry& entry) {
  return entry.kind == "evict" && entry.result == "applied" && entry.attribute != "end";
}

bool is_found(const model::Plan& plan, const std::string& workload) {
  const auto& findings = plan.findings.straggler;
  if (!findings) return false;
  return std::any_of(findings->relocate.begin(), findings->relocate.end(),
                     [&](const model::Relocation& found) { return found.workload == workload; });
}

}  // namespace

void Departures::add(model::Departure departure) {
  departure.reason = model::plain_text(departure.reason, kMostReasonBytes);
  all_.insert(all_.begin(), std::move(departure));
  if (all_.size() > model::kMaxDepartures) all_.pop_back();
}

void Departures::take(const std::vector<LogEntry>& entries, double wall_ahead_s) {
  for (const LogEntry& entry : entries) {
    if (!begins_an_eviction(entry)) continue;
    const auto is_known = [&](const model::Departure& it) {
      return it.kind == Kind::evict && it.workload == entry.workload && it.decision == entry.decision;
    };
    // A later step of it.
    if (std::any_of(all_.begin(), all_.end(), is_known)) continue;
    add({.kind = Kind::evict,
         .time = entry.time + wall_ahead_s,
         .workload = entry.workload,
         .decision = entry.decision,
         .reason = entry.reason});
  }
}

void Departures::take(const std::vector<StragglerNews>& relocate, const model::Plan& plan, bool enforces) {
  const double now = plan.time + plan.wall_ahead_s;
  for (const StragglerNews& news : relocate) {
    // Another run of it, or the same one after a quiet time.
    std::erase_if(all_, [&](const model::Departure& it) {
      return it.kind == Kind::relocate && it.workload == news.workload;
    });
    add({.kind = Kind::relocate,
         .time = now,
         .workload = news.workload,
         .decision = news.decision,
         .reason = news.reason});
  }
  for (model::Departure& departure : all_)
    departure.wanted = enforces && departure.kind == Kind::relocate && is_found(plan, departure.workload);
  // The wall clock may have been set.
  std::erase_if(
      all_, [now](const model::Departure& it) { return !it.wanted && std::abs(now - it.time) > kKept_s; });
}

}  // namespace berth::daemon
