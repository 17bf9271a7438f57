// SPDX-License-Identifier: Apache-2.0
#include "policies/interference/borrowing/lender.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace berth::policies {

namespace {

using model::LendingState;
using model::Workload;

// Threads that did not run did not wait either. nullopt: not known.
std::optional<double> delay_of(const model::UsageSample& sample) {
  const std::optional<double> delay_us = sample.runq_latency_us;
  if (delay_us) return *delay_us * 1e-6;
  return sample.cpu_cores <= kIdleCores ? std::optional(0.0) : std::nullopt;
}

// The second largest of the last delays after `since`: one sample that stands out does not count. nullopt
// while there are fewer.
std::optional<double> usual_delay(const Workload& workload, double since) {
  std::vector<double> delays;
  auto sample = workload.usage.end();
  while (delays.size() < kLenderSamples && sample != workload.usage.begin()) {
    --sample;
    if (sample->time <= since) break;
    if (const auto delay = delay_of(*sample)) delays.push_back(*delay);
  }
  if (delays.size() < kLenderSamples) return std::nullopt;
  std::nth_element(delays.begin(), std::next(delays.begin()), delays.end(), std::greater<>());
  return delays[1];
}

// The number of vCPUs that an instance needs for so many cores; one at least.
std::size_t whole(double cores) { return static_cast<std::size_t>(std::max(1.0, std::ceil(cores - 1e-9))); }

std::size_t beyond(std::size_t all, std::size_t part) { return all > part ? all - part : 0; }

class Judgement {
 public:
  Judgement(const Workload& workload, const model::CpuSet& cpus, double now,
            const InterferenceSettings& settings)
      : workload_(workload), cpus_(cpus), now_(now), settings_(settings) {
    if (workload.lending) state_ = *workload.lending;
    state_.cpus = state_.cpus & cpus;
    if (state_.cpus.empty() && !state_.quiet_since) state_.quiet_since = now;
  }

  LenderNow judge(bool grown) {
    const RecentUse recent = recent_use(workload_, kLenderSamples);
    judged_.finding.use_cores = recent.mean_cores;
    take_newest();
    if (std::string why = closed(grown); !why.empty()) return lend_nothing(std::move(why));
    if (state_.paused_until && now_ - *state_.paused_until >= kForgiven_s) state_.pause_s = 0;
    if (fresh_ && !state_.cpus.empty() && misses()) return miss();
    if (state_.paused_until && now_ < *state_.paused_until)
      return lend_nothing(
          fmt::format("it missed its target, and pauses for another {:.0f} s", *state_.paused_until - now_));
    judged_.open = true;
    if (!measure()) {
      return lend_nothing(state_.usual_delay_s
                              ? "its usual delay is measured again, with nothing lent"
                              : "its usual delay is not known yet; it is measured with nothing lent");
    }
    judged_.finding.target_s = target();
    return lend(recent);
  }

 private:
  // The figures of the newest sample, if it is of a time after the last change.
  void take_newest() {
    if (workload_.usage.empty()) return;
    const auto newest = workload_.usage.back();
    judged_.finding.delay_s = delay_of(newest);
    fresh_ = !state_.changed_at || newest.time > *state_.changed_at;
    if (!workload_.cpi || !fresh_) return;
    state_.cpi = state_.cpi ? *state_.cpi + kNewestResponse * (*workload_.cpi - *state_.cpi) : *workload_.cpi;
  }

  // Why it takes no part now; empty where it does.
  std::string closed(bool grown) const {
    if (!workload_.borrow) return "borrow is false for it";
    if (workload_.cpu_idle) return "it runs at idle priority itself, and other work would not yield to it";
    if (grown || (workload_.straggled_at && now_ - *workload_.straggled_at < kStraggledLender_s))
      return "it is a straggler";
    if (now_ - workload_.created < kYoungLender_s)
      return fmt::format("it is younger than {:.0f} s", kYoungLender_s);
    if (workload_.cpus != cpus_) return "its pin changes now";
    return {};
  }

  std::optional<double> target() const {
    if (settings_.max_runq_latency_s > 0) return settings_.max_runq_latency_s;
    if (!state_.usual_delay_s) return std::nullopt;
    return std::max(kLeastTarget_s, kDelayRise * *state_.usual_delay_s);
  }

  bool response_above(double times) const {
    return state_.cpi && state_.usual_cpi && *state_.cpi > times * *state_.usual_cpi;
  }

  bool is_blind() const {
    if (workload_.usage.size() < kBlindSamples) return true;
    auto sample = workload_.usage.end();
    for (std::size_t i = 0; i < kBlindSamples; ++i) {
      if (delay_of(*--sample)) return false;
    }
    return true;
  }

  bool misses() const {
    const auto& delay = judged_.finding.delay_s;
    const auto most = target();
    return is_blind() || (delay && most && *delay > *most) || response_above(kDelayRise);
  }

  std::string describe_miss() const {
    const model::Lender& finding = judged_.finding;
    if (is_blind()) return "its run-queue delay is not known any more; only eBPF sampling tells it";
    if (response_above(kDelayRise))
      return fmt::format("its cycles per instruction rose from {:.3g} to {:.3g}", *state_.usual_cpi,
                         *state_.cpi);
    return fmt::format("its threads waited {:.3g} ms for a vCPU, above its target {:.3g} ms",
                       1000 * finding.delay_s.value_or(0), 1000 * finding.target_s.value_or(0));
  }

  LenderNow miss() {
    model::Lender& finding = judged_.finding;
    finding.missed = true;
    finding.target_s = target();
    state_.pause_s = next_pause_s(state_.pause_s);
    state_.paused_until = now_ + state_.pause_s;
    state_.measured_at.reset();  // the load may be another one now
    return lend_nothing(
        fmt::format("{}; it lends again in {:.0f} s at the earliest", describe_miss(), state_.pause_s));
  }

  // Whether its usual figures are known. Without a limit of the operator they are measured again at times,
  // and after each change of its pin. A document may tell of a measurement without its delay: that is none.
  bool measure() {
    const auto& at = state_.measured_at;
    const bool moved = at && workload_.pinned_at && *workload_.pinned_at > *at;
    const bool old = at && settings_.max_runq_latency_s <= 0 && now_ - *at >= kMeasuredAgain_s;
    if (at && state_.usual_delay_s && !moved && !old) return true;
    if (!state_.cpus.empty()) return false;
    const double since = std::max(state_.quiet_since.value_or(now_), workload_.pinned_at.value_or(0));
    const auto usual = usual_delay(workload_, since);
    if (!usual) return false;
    state_.usual_delay_s = usual;
    state_.usual_cpi = state_.cpi;
    state_.measured_at = now_;
    return true;
  }

  LenderNow lend_nothing(std::string why) {
    if (!state_.cpus.empty()) {
      judged_.finding.withdrawn = state_.cpus;
      state_.cpus = {};
      state_.changed_at = now_;
      state_.quiet_since = now_;
      state_.cpi.reset();  // of the time in which it lent
    }
    judged_.finding.reason = std::move(why);
    judged_.finding.state = std::move(state_);
    return std::move(judged_);
  }

  LenderNow lend(const RecentUse& recent) {
    model::Lender& finding = judged_.finding;
    judged_.most = beyond(cpus_.size(), whole(recent.mean_cores));
    judged_.most_to_grow = beyond(cpus_.size(), whole(recent.most_cores));
    const bool below = finding.delay_s && *finding.delay_s <= *finding.target_s;
    if (state_.cpus.size() >= judged_.most_to_grow) {
      finding.reason = fmt::format("it used up to {:.3g} of its {} vCPUs, and keeps as many",
                                   recent.most_cores, cpus_.size());
    } else if (!finding.delay_s) {
      finding.reason = "its run-queue delay is not known; only eBPF sampling tells it";
    } else if (!below) {
      finding.reason = fmt::format("its threads wait {:.3g} ms for a vCPU, above its target {:.3g} ms",
                                   1000 * *finding.delay_s, 1000 * *finding.target_s);
    } else if (response_above(kResponseRise)) {
      finding.reason = fmt::format("its cycles per instruction are {:.3g}, usually {:.3g}", *state_.cpi,
                                   *state_.usual_cpi);
    } else {
      judged_.may_grow = fresh_;
    }
    finding.state = std::move(state_);
    return std::move(judged_);
  }

  const Workload& workload_;
  const model::CpuSet& cpus_;
  double now_;
  const InterferenceSettings& settings_;
  LendingState state_;
  bool fresh_ = false;
  LenderNow judged_;
};

}  // namespace

RecentUse recent_use(const Workload& workload, std::size_t count) {
  RecentUse recent;
  if (workload.usage.without_cpu()) return recent;
  std::size_t taken = 0;
  auto sample = workload.usage.end();
  while (taken < count && sample != workload.usage.begin()) {
    --sample;
    ++taken;
    recent.mean_cores += sample->cpu_cores;
    recent.most_cores = std::max(recent.most_cores, sample->cpu_cores);
  }
  if (taken > 0) recent.mean_cores /= static_cast<double>(taken);
  return recent;
}

double next_pause_s(double pause_s) {
  return pause_s > 0 ? std::min(kLongestPause_s, 2 * pause_s) : kFirstPause_s;
}

LenderNow judge_lender(const Workload& workload, const model::CpuSet& cpus, bool grown, double now,
                       const InterferenceSettings& settings) {
  return Judgement(workload, cpus, now, settings).judge(grown);
}

}  // namespace berth::policies
