// SPDX-License-Identifier: Apache-2.0
#include "policies/straggler/progress.h"

#include "model/count_text.h"

#include <algorithm>
#include <limits>
#include <string>

#include <fmt/core.h>

namespace berth::policies {

namespace {

using Reports = std::vector<model::ProgressReport>;

constexpr std::size_t kNeeded = 4;
// A task is silent once it has not reported for this many times its longest gap.
constexpr double kSilence = 2;
// A task without progress for so many times restore_hold, and so many times its longest gap, is given up.
constexpr double kPatience = 10;
constexpr double kPatientGaps = 4;
// The fractions of steady progress differ by rounding from report to report: that is no gain.
constexpr double kGain = 1 + 1e-9;

// The workload's progress, oldest first: the last four of its own reports where it has any, else from its
// usage samples.
Reports last_reports(const model::Workload& workload) {
  Reports reports;
  if (!workload.progress.empty()) {
    const auto kept = std::min(workload.progress.size(), kNeeded);
    reports.assign(workload.progress.end() - static_cast<std::ptrdiff_t>(kept), workload.progress.end());
    return reports;
  }
  if (workload.usage.without_progress()) return reports;
  for (auto it = workload.usage.rbegin(); it != workload.usage.rend() && reports.size() < kNeeded; ++it)
    if (it->progress) reports.push_back({.time = it->time, .fraction = *it->progress});
  std::reverse(reports.begin(), reports.end());
  return reports;
}

// Whether the silence after `reports` counts: the task would be late at its former speed, or was silent for
// `hold_s`. A pause for a checkpoint does not matter to a task that has hours left.
bool silence_counts(const Reports& reports, double now, double deadline, double hold_s) {
  const model::ProgressReport& last = reports.back();
  const model::ProgressReport& before = reports[reports.size() - 2];
  if (now - last.time >= hold_s) return true;
  const double gained = last.fraction - before.fraction;
  const double gap = last.time - before.time;
  if (gained <= 0 || gap <= 0) return true;
  return now + (1 - last.fraction) * gap / gained >= deadline;
}

double longest_gap(const Reports& reports) {
  double longest = 0;
  for (std::size_t i = 1; i < reports.size(); ++i)
    longest = std::max(longest, reports[i].time - reports[i - 1].time);
  return longest;
}

// The reports to judge by, of the last four: a silence counts as one.
Reports with_silence(Reports reports, double now, double deadline, double hold_s) {
  if (reports.size() < 2 || reports.back().fraction >= 1) return reports;
  if (now - reports.back().time <= kSilence * longest_gap(reports)) return reports;
  if (!silence_counts(reports, now, deadline, hold_s)) return reports;
  reports.push_back({.time = now, .fraction = reports.back().fraction});
  if (reports.size() > kNeeded) reports.erase(reports.begin());
  return reports;
}

// Seconds since the progress of a task with these last reports last moved.
double stands_for(const model::Workload& workload, const Reports& reports, double now) {
  double since = reports.back().time;
  for (auto it = reports.rbegin(); it != reports.rend() && it->fraction == reports.back().fraction; ++it)
    since = it->time;
  return now - std::min(since, workload.progressed_at.value_or(since));
}

// Why these reports cannot be judged; empty where they can.
std::string unfit(const Reports& reports) {
  if (reports.size() < kNeeded) {
    return fmt::format("not judged: {} of progress, four are needed",
                       model::count_text(reports.size(), "report"));
  }
  for (std::size_t i = 1; i < reports.size(); ++i) {
    const model::ProgressReport& before = reports[i - 1];
    const model::ProgressReport& after = reports[i];
    if (after.fraction < before.fraction) {
      return fmt::format("not judged: progress fell from {:.4g} to {:.4g}", before.fraction, after.fraction);
    }
    if (after.time <= before.time) return "not judged: two reports of the same time";
  }
  return {};
}

// Seconds as text, to a tenth.
std::string seconds(double amount) { return fmt::format("{:.1f} s", amount); }

std::string verdict(const model::StragglerTask& task, double last) {
  if (last >= 1) return "done";
  const double deadline = *task.deadline;
  if (*task.v2 > *task.v1 * kGain) {
    return fmt::format("{:.3g}/s now is faster than {:.3g}/s before", *task.v2, *task.v1);
  }
  const std::string speed = fmt::format("{:.3g}/s now, {:.3g}/s before", *task.v2, *task.v1);
  if (!task.finish) return fmt::format("it stands still at {:.4g} ({})", last, speed);
  const double spare = deadline - *task.finish;
  if (!task.straggler) return fmt::format("finishes {} before its deadline ({})", seconds(spare), speed);
  return fmt::format("finishes {} after its deadline ({})", seconds(-spare), speed);
}

}  // namespace

std::optional<double> last_progress(const model::Workload& workload) {
  if (!workload.progress.empty()) return workload.progress.back().fraction;
  if (workload.usage.without_progress()) return std::nullopt;
  for (auto it = workload.usage.rbegin(); it != workload.usage.rend(); ++it)
    if (it->progress) return *it->progress;
  return std::nullopt;
}

std::optional<model::StragglerTask> judge(const model::Workload& workload, double now,
                                          const StragglerSettings& settings) {
  if (workload.workload_class != model::WorkloadClass::latency_sensitive) return std::nullopt;
  const Reports said = last_reports(workload);
  if (!workload.deadline && said.empty()) return std::nullopt;
  model::StragglerTask task;
  task.deadline = workload.deadline;
  task.samples = with_silence(said, now, workload.deadline.value_or(std::numeric_limits<double>::infinity()),
                              settings.restore_hold_s);
  if (!workload.deadline) {
    task.reason = "not judged: no deadline";
    return task;
  }
  task.reason = unfit(task.samples);
  if (!task.reason.empty()) return task;

  const model::ProgressReport& s1 = task.samples[0];
  const model::ProgressReport& s2 = task.samples[1];
  const model::ProgressReport& s3 = task.samples[2];
  const model::ProgressReport& s4 = task.samples[3];
  const double v1 = (s2.fraction - s1.fraction) / (s2.time - s1.time);
  const double v2 = (s4.fraction - s3.fraction) / (s4.time - s3.time);
  const double deadline = *workload.deadline;
  task.v1 = v1;
  task.v2 = v2;
  if (v2 > 0) task.finish = (1 - s4.fraction) / v2 + s4.time;
  const bool in_time = task.finish && *task.finish < deadline;
  task.straggler = s4.fraction < 1 && !(v2 > v1 * kGain) && !in_time;
  task.reason = verdict(task, s4.fraction);
  if (!task.straggler) return task;
  const double stands = stands_for(workload, said, now);
  if (stands > std::max(kPatience * settings.restore_hold_s, kPatientGaps * longest_gap(said))) {
    task.straggler = false;
    task.reason = fmt::format("given up until it moves again: it has stood at {:.4g} for {}", s4.fraction,
                              seconds(stands));
    return task;
  }
  const bool hopeless = v2 <= 0 || deadline <= s4.time;
  const double rho = hopeless ? settings.max_growth
                              : std::min((1 - s4.fraction) / (deadline - s4.time) / v2, settings.max_growth);
  task.growth = std::max(1.0, rho);  // exactly on its deadline, rounding may say a little less
  return task;
}

}  // namespace berth::policies
