// SPDX-License-Identifier: Apache-2.0
#include "policies/oversell/demand.h"

#include "model/ground.h"
#include "model/json.h"
#include "policies/victim.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace berth::policies {

namespace {

// Up to here, sums of whole numbers are exact in any order.
constexpr double kExactBytes = static_cast<double>(model::kMaxBytes);

std::optional<double> use_in(const model::UsageSample& sample, model::Resource resource) {
  if (resource == model::Resource::cpu) return sample.cpu_cores;
  if (!sample.memory_bytes) return std::nullopt;
  return static_cast<double>(*sample.memory_bytes);
}

std::optional<double> mean_use(const model::Workload& workload, model::Resource resource) {
  return resource == model::Resource::cpu ? workload.usage.cpu().mean() : workload.usage.memory().mean();
}

// The limit as its owner set it, whatever berth's own value is. One that a user could set asks for nothing.
std::optional<double> own_limit(const model::Workload& workload, model::Resource resource) {
  if (!model::may_favour_itself({.user = workload.user}, model::Word::limit)) return std::nullopt;
  const bool cpu = resource == model::Resource::cpu;
  const bool held = workload.original && (cpu ? workload.held_cpu : workload.held_memory).has_value();
  if (cpu) return held ? workload.original->cpu_quota_cores : workload.cpu_quota_cores;
  const auto bytes = held ? workload.original->memory_high_bytes : workload.memory_high_bytes;
  if (!bytes) return std::nullopt;
  return static_cast<double>(*bytes);
}

std::optional<double> asked_for(const model::Workload& workload, model::Resource resource) {
  const auto limit = own_limit(workload, resource);
  if (resource == model::Resource::cpu) {
    if (limit || !workload.vcpus) return limit;
    return *workload.vcpus;
  }
  if (workload.memory_request_bytes > 0) return static_cast<double>(workload.memory_request_bytes);
  return limit;
}

}  // namespace

double request_of(const model::Workload& workload, model::Resource resource, double capacity) {
  auto request = asked_for(workload, resource);
  if (!request) request = mean_use(workload, resource);
  return std::min(request.value_or(0), capacity);
}

double known_since(const model::Workload& workload) {
  // The use of an executor before it had a cgroup of its own is not known.
  return std::max(workload.created, workload.leaf_since.value_or(workload.created));
}

bool is_warming(const model::Workload& workload, model::Resource resource, double now, double warmup_s) {
  return now - known_since(workload) < warmup_s || !latest_use(workload, resource);
}

namespace {

// The times common to all added workloads, ascending, and the sum of their use at each.
class CommonSeries {
 public:
  explicit CommonSeries(model::Resource resource) : resource_(resource) {}

  void add(const model::Workload& workload) {
    if (first_ == nullptr) {
      first_ = &workload.usage;
      for_each_use(workload.usage, [this](double time, double use) { points_.push_back({time, use}); });
    } else if (!add_level(workload.usage)) {
      add_each(workload.usage);
    }
  }

  // Of work that may be read in turn: it has times of its own, and must not thin out those of others. So it
  // comes after them. A sample is the mean since the one before, and the last one stands until the next.
  void add_in_turn(const model::Workload& workload) {
    if (first_ == nullptr || workload.usage.at_times_of(*first_)) return add(workload);
    std::size_t next = 0;  // of the points
    double last = 0;
    for_each_use(workload.usage, [&](double time, double use) {
      for (; next < points_.size() && points_[next].time <= time; ++next) points_[next].use += use;
      last = use;
    });
    for (; next < points_.size(); ++next) points_[next].use += last;
  }

  std::vector<double> take() const {
    std::vector<double> series;
    series.reserve(points_.size());
    for (const Point& point : points_) series.push_back(point.use + level_);
    return series;
  }

 private:
  struct Point {
    double time = 0;
    double use = 0;
  };

  // Most workloads of a large host are idle: the same amount at each of the times that all have. Such a sum
  // of whole bytes is exact in any order. Returns whether the workload was one of these.
  bool add_level(const model::UsageWindow& usage) {
    if (!usage.at_times_of(*first_)) return false;
    if (resource_ == model::Resource::cpu) return usage.without_cpu();
    if (!usage.with_steady_memory()) return false;
    const double sum = level_ + usage.memory().max;
    if (sum > kExactBytes / 2) return false;
    level_ = sum;
    return true;
  }

  void add_each(const model::UsageWindow& usage) {
    std::size_t kept = 0;
    std::size_t next = 0;  // of the points that are there
    for_each_use(usage, [&](double time, double use) {
      while (next < points_.size() && points_[next].time < time) ++next;
      if (next == points_.size() || points_[next].time != time) return;
      points_[kept++] = {time, points_[next].use + use};
      ++next;
    });
    points_.resize(kept);
  }

  template <typename Take>
  void for_each_use(const model::UsageWindow& usage, Take take) const {
    for (auto sample = usage.begin(); sample != usage.end(); ++sample) {
      const auto use = use_in(*sample, resource_);
      // Of several samples at one time the last one counts.
      const auto following = std::next(sample);
      const bool replaced = following != usage.end() && following->time == sample->time;
      if (use && !(replaced && use_in(*following, resource_))) take(sample->time, *use);
    }
  }

  model::Resource resource_;
  const model::UsageWindow* first_ = nullptr;  // of the first workload
  std::vector<Point> points_;
  double level_ = 0;  // to be added to each point
};

}  // namespace

Demand demand_of(const model::Snapshot& snapshot, const std::vector<const model::Workload*>& workloads,
                 model::Resource resource, double capacity, double warmup_s) {
  constexpr auto best_effort = model::WorkloadClass::best_effort;
  Demand demand;
  CommonSeries series(resource);
  std::vector<const model::Workload*> in_turn;
  for (const model::Workload* workload : workloads) {
    // It has vCPUs that are no part of the capacity.
    if (resource == model::Resource::cpu && workload->left_alone) continue;
    const double request = request_of(*workload, resource, capacity);
    const double latest = latest_use(*workload, resource).value_or(0);
    demand.request += request;
    if (workload->workload_class != best_effort) demand.latency_sensitive_request += request;
    demand.latest += latest;
    if (is_warming(*workload, resource, snapshot.time, warmup_s)) {
      demand.warming += request;
      demand.warming_use += latest;
    } else if (workload->user) {
      in_turn.push_back(workload);
    } else {
      series.add(*workload);
    }
  }
  for (const model::Workload* workload : in_turn) series.add_in_turn(*workload);
  // An admitted workload that does not run yet will want its request.
  for (const model::PendingWorkload& pending : snapshot.pending) {
    const double request = std::min(capacity, resource == model::Resource::cpu
                                                  ? pending.vcpus.value_or(0)
                                                  : static_cast<double>(pending.memory_request_bytes));
    demand.request += request;
    if (pending.workload_class != best_effort) demand.latency_sensitive_request += request;
    demand.warming += request;
  }
  demand.series = series.take();
  return demand;
}

}  // namespace berth::policies
