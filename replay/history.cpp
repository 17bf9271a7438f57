// SPDX-License-Identifier: Apache-2.0
#include "replay/history.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace berth::replay {

namespace {

double cpu_in_use(const model::Snapshot& seen) {
  double cores = 0;
  for (const model::Workload& workload : seen.workloads) {
    if (!workload.usage.empty()) cores += workload.usage.back().cpu_cores;
  }
  return cores;
}

Series::Point point_of(const model::Plan& plan, const model::Snapshot& seen) {
  const auto& memory = seen.memory;
  Series::Point point{.time = plan.time, .psi_full = memory.psi_full_avg10, .cpu_cores = cpu_in_use(seen)};
  if (memory.total_bytes > 0)
    point.memory_share =
        1 - static_cast<double>(memory.available_bytes) / static_cast<double>(memory.total_bytes);
  if (plan.findings.interference) point.score = plan.findings.interference->score_node;
  if (seen.advertised.cpu) point.cpu_factor = seen.advertised.cpu->factor;
  if (seen.advertised.memory) point.memory_factor = seen.advertised.memory->factor;
  return point;
}

}  // namespace

Series::Point Series::merged(const Point& first, double ticks, const Point& second) {
  const auto mean = [ticks](double a, double b) { return (a * ticks + b) / (ticks + 1); };
  return {.time = first.time,
          .psi_full = std::max(first.psi_full, second.psi_full),
          .cpu_cores = mean(first.cpu_cores, second.cpu_cores),
          .memory_share = mean(first.memory_share, second.memory_share),
          .score = mean(first.score, second.score),
          .cpu_factor = mean(first.cpu_factor, second.cpu_factor),
          .memory_factor = mean(first.memory_factor, second.memory_factor)};
}

void Series::add(const Point& point) {
  if (pending_ > 0) {
    points_.back() = merged(points_.back(), static_cast<double>(pending_), point);
  } else {
    points_.push_back(point);
  }
  pending_ = (pending_ + 1) % every_;
  if (pending_ > 0 || points_.size() < kMostPoints) return;
  for (std::size_t i = 0; i < points_.size() / 2; ++i)
    points_[i] = merged(points_[2 * i], 1, points_[2 * i + 1]);
  points_.resize(points_.size() / 2);
  every_ *= 2;
}

bool History::has_room(std::size_t count) {
  if (count < kMost) return true;
  ++dropped_;
  return false;
}

void History::add(const model::Plan& plan, const model::Snapshot& seen) {
  before_ = time_;
  time_ = plan.time;
  series_.add(point_of(plan, seen));
  add_pins(seen);
  add_quotas(seen);
  add_stragglers(plan);
  for (const model::Action& action : plan.actions) {
    if (!std::holds_alternative<model::Evict>(action.what)) continue;
    const auto* workload = find_workload(seen, *action.workload());
    if (workload != nullptr && !workload->evicted_at && has_room(evictions_.size()))
      evictions_.push_back({plan.time, workload->id, action.policy, action.reason});
  }
}

void History::add_pins(const model::Snapshot& seen) {
  const auto close = [this](PinSpan& span) {
    span.to = time_;
    if (has_room(pins_.size())) pins_.push_back(std::move(span));
  };
  for (auto open = open_pins_.begin(); open != open_pins_.end();) {
    const auto* workload = find_workload(seen, open->first);
    const bool stands = workload != nullptr && workload->cpus == open->second.cpus;
    if (!stands) close(open->second);
    open = stands ? std::next(open) : open_pins_.erase(open);
  }
  for (const model::Workload& workload : seen.workloads) {
    if (workload.cpus.empty() || open_pins_.contains(workload.id)) continue;
    // A service owns its vCPUs; the pool of the rest is no place of its own.
    if (workload.workload_class != model::WorkloadClass::latency_sensitive) continue;
    PinSpan span;
    span.from = time_;
    span.workload = workload.id;
    span.service = workload.service;
    span.cpus = workload.cpus;
    open_pins_.emplace(workload.id, std::move(span));
  }
}

void History::add_quotas(const model::Snapshot& seen) {
  for (const model::Workload& workload : seen.workloads) {
    const auto known = quotas_.find(workload.id);
    if (!workload.held_cpu && known == quotas_.end()) continue;
    if (known != quotas_.end() && known->second.back().to >= before_) {
      QuotaSpan& newest = known->second.back();
      newest.to = time_;
      if (newest.cores == workload.cpu_quota_cores) continue;
    }
    if (!has_room(quota_spans_)) continue;
    ++quota_spans_;
    QuotaSpan span;
    span.from = span.to = time_;
    span.cores = workload.cpu_quota_cores;
    quotas_[workload.id].push_back(span);
  }
}

void History::add_stragglers(const model::Plan& plan) {
  if (!plan.findings.straggler) return;
  for (const auto& [id, task] : plan.findings.straggler->tasks) {
    if (!task.straggler) continue;
    const auto known = stragglers_.find(id);
    if (known != stragglers_.end() && known->second.back().to >= before_) {
      known->second.back().to = time_;
    } else if (has_room(straggler_spans_)) {
      ++straggler_spans_;
      stragglers_[id].push_back({time_, time_});
    }
  }
}

void History::finish() {
  for (auto& [id, span] : open_pins_) {
    span.to = time_;
    if (has_room(pins_.size())) pins_.push_back(std::move(span));
  }
  open_pins_.clear();
}

}  // namespace berth::replay
