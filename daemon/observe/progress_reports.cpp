// SPDX-License-Identifier: Apache-2.0
#include "daemon/observe/progress_reports.h"

#include <algorithm>

#include <fmt/core.h>

namespace berth::daemon {

model::Result<void> ProgressReports::add(const std::string& workload, std::uint64_t cgroup_id, double time,
                                         double fraction, Source source) {
  // Written so that NaN, which compares with nothing, is refused.
  if (!(fraction >= 0 && fraction <= 1)) {
    return model::fail(model::ErrorKind::invalid_input,
                       fmt::format("progress {}: must be from 0 to 1", fraction));
  }
  Run& run = runs_[workload];
  const bool known = run.cgroup_id == cgroup_id;
  if (known && run.source == Source::own && source == Source::counted) return {};
  const bool first = !known || run.source != source;
  if (first) run = {.cgroup_id = cgroup_id, .source = source, .reports = {}, .newest = 0, .since = time};
  run.since = first || run.newest != fraction ? time : std::min(run.since, time);
  run.newest = fraction;
  auto& reports = run.reports;
  std::erase_if(reports, [time](const model::ProgressReport& report) { return report.time > time; });
  const bool done = fraction == 1 && (reports.empty() || reports.back().fraction < 1);
  if (!reports.empty()) {
    if (reports.back().time == time) {
      reports.back().fraction = fraction;
      return {};
    }
    if (time - reports.back().time < kShortestGap_s && !done) return {};
  }
  if (reports.size() == kKept) reports.erase(reports.begin());
  reports.push_back({time, fraction});
  return {};
}

void ProgressReports::keep_if(const std::function<bool(const std::string&, std::uint64_t)>& lives) {
  std::erase_if(runs_, [&](const auto& item) { return !lives(item.first, item.second.cgroup_id); });
}

void ProgressReports::keep_counted_of(const std::set<std::string>& workloads) {
  std::erase_if(runs_, [&](const auto& item) {
    return item.second.source == Source::counted && workloads.count(item.first) == 0;
  });
}

const ProgressReports::Run* ProgressReports::find(const std::string& workload,
                                                  std::uint64_t cgroup_id) const {
  const auto run = runs_.find(workload);
  return run == runs_.end() || run->second.cgroup_id != cgroup_id ? nullptr : &run->second;
}

void ProgressReports::pass_over(double slept_s, double now) {
  const auto shift = [&](double& time) {
    if (time + slept_s <= now) time += slept_s;  // otherwise it came afterwards
  };
  for (auto& [id, run] : runs_) {
    shift(run.since);
    for (auto& report : run.reports) shift(report.time);
  }
}

std::vector<model::ProgressReport> ProgressReports::of(const std::string& workload,
                                                       std::uint64_t cgroup_id) const {
  const auto* run = find(workload, cgroup_id);
  return run == nullptr ? std::vector<model::ProgressReport>() : run->reports;
}

std::optional<double> ProgressReports::newest(const std::string& workload, std::uint64_t cgroup_id) const {
  const auto* run = find(workload, cgroup_id);
  return run == nullptr ? std::nullopt : std::optional(run->newest);
}

std::optional<double> ProgressReports::unchanged_since(const std::string& workload,
                                                       std::uint64_t cgroup_id) const {
  const auto* run = find(workload, cgroup_id);
  return run == nullptr ? std::nullopt : std::optional(run->since);
}

}  // namespace berth::daemon
