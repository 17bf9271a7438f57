// SPDX-License-Identifier: Apache-2.0
#include "policies/oversell/demand.h"

#include "policies/victim.h"
#include "policies/workload_index.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace berth::policies {

namespace {

std::optional<double> use_in(const model::UsageSample& sample, model::Resource resource) {
  if (resource == model::Resource::cpu) return sample.cpu_cores;
  if (!sample.memory_bytes) return std::nullopt;
  return static_cast<double>(*sample.memory_bytes);
}

std::optional<double> mean_use(const model::Workload& workload, model::Resource resource) {
  double sum = 0;
  int known = 0;
  for (const model::UsageSample& sample : workload.usage) {
    const auto use = use_in(sample, resource);
    if (!use) continue;
    sum += *use;
    ++known;
  }
  if (known == 0) return std::nullopt;
  return sum / known;
}

// The limit as its owner set it, whatever berth's own value is.
std::optional<double> own_limit(const model::Workload& workload, model::Resource resource) {
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
  void add(const model::Workload& workload, model::Resource resource) {
    std::size_t kept = 0;
    std::size_t next = 0;  // of the points that are there
    for (auto sample = workload.usage.begin(); sample != workload.usage.end(); ++sample) {
      const auto use = use_in(*sample, resource);
      // Of several samples at one time the last one counts.
      const auto following = std::next(sample);
      const bool replaced = following != workload.usage.end() && following->time == sample->time;
      if (!use || (replaced && use_in(*following, resource))) continue;
      if (first_) {
        points_.push_back({sample->time, *use});
        continue;
      }
      while (next < points_.size() && points_[next].time < sample->time) ++next;
      if (next == points_.size() || points_[next].time != sample->time) continue;
      points_[kept++] = {points_[next].time, points_[next].use + *use};
      ++next;
    }
    if (!first_) points_.resize(kept);
    first_ = false;
  }

  std::vector<double> take() const {
    std::vector<double> series;
    series.reserve(points_.size());
    for (const Point& point : points_) series.push_back(point.use);
    return series;
  }

 private:
  struct Point {
    double time = 0;
    double use = 0;
  };
  std::vector<Point> points_;
  bool first_ = true;
};

}  // namespace

Demand demand_of(const model::Snapshot& snapshot, model::Resource resource, double capacity,
                 double warmup_s) {
  Demand demand;
  CommonSeries series;
  for (const model::Workload* workload : workloads_by_id(snapshot)) {
    const double request = request_of(*workload, resource, capacity);
    const double latest = latest_use(*workload, resource).value_or(0);
    demand.request += request;
    demand.latest += latest;
    if (is_warming(*workload, resource, snapshot.time, warmup_s)) {
      demand.warming += request;
      demand.warming_use += latest;
    } else {
      series.add(*workload, resource);
    }
  }
  // An admitted workload that does not run yet will want its request.
  for (const model::PendingWorkload& pending : snapshot.pending) {
    const double request = std::min(capacity, resource == model::Resource::cpu
                                                  ? pending.vcpus.value_or(0)
                                                  : static_cast<double>(pending.memory_request_bytes));
    demand.request += request;
    demand.warming += request;
  }
  demand.series = series.take();
  return demand;
}

}  // namespace berth::policies
