// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/cpu_set.h"
#include "model/plan.h"
#include "model/snapshot.h"
#include "replay/standing.h"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace berth::replay {

// Figures of the host over time, for plots. It keeps a limited number of points: when they are too many, two
// neighbours become their mean, the pressure their larger one.
class Series {
 public:
  static constexpr std::size_t kMostPoints = 1200;

  struct Point {
    double time = 0;           // epoch seconds, the earliest of its ticks
    double psi_full = 0;       // percent, of memory
    double cpu_cores = 0;      // in use by workloads
    double memory_share = 0;   // of the host, in use, 0..1
    double score = 0;          // of the node
    double cpu_factor = 1;     // advertised
    double memory_factor = 1;  // likewise
  };

  void add(const Point& point);
  const std::vector<Point>& points() const { return points_; }

 private:
  // `ticks`: of the first point, for each tick of the second.
  static Point merged(const Point& first, double ticks, const Point& second);

  std::vector<Point> points_;
  std::size_t every_ = 1;    // ticks of a point
  std::size_t pending_ = 0;  // ticks of the last point, if it may have more
};

// A value that held for some time.
struct Span {
  double from = 0;  // epoch seconds
  double to = 0;
};

struct PinSpan : Span {
  std::string workload;
  std::string service;
  model::CpuSet cpus;
};

struct QuotaSpan : Span {
  std::optional<double> cores;  // nullopt: no limit
};

struct Eviction {
  double time = 0;
  std::string workload;
  std::string policy;
  std::string reason;
};

// The course of one side of a replay.
class History {
 public:
  // Of each list. A replay that has more drops the later ones, and says so.
  static constexpr std::size_t kMost = 20'000;

  // Takes a plan, made of `seen`, before it is carried out.
  void add(const model::Plan& plan, const model::Snapshot& seen);
  // Ends what still holds; call it after the last tick.
  void finish();

  const Series& series() const { return series_; }
  const std::vector<PinSpan>& pins() const { return pins_; }
  // By workload whose quota berth held at any time.
  const std::map<std::string, std::vector<QuotaSpan>>& quotas() const { return quotas_; }
  const std::vector<Eviction>& evictions() const { return evictions_; }
  // By task.
  const std::map<std::string, std::vector<Span>>& stragglers() const { return stragglers_; }
  std::size_t dropped() const { return dropped_; }

 private:
  void add_pins(const model::Snapshot& seen);
  void add_quotas(const model::Snapshot& seen);
  void add_stragglers(const model::Plan& plan);
  bool has_room(std::size_t count);

  Series series_;
  std::map<std::string, PinSpan> open_pins_;  // by workload
  std::vector<PinSpan> pins_;
  std::map<std::string, std::vector<QuotaSpan>> quotas_;
  std::size_t quota_spans_ = 0;
  std::vector<Eviction> evictions_;
  std::map<std::string, std::vector<Span>> stragglers_;
  std::size_t straggler_spans_ = 0;
  double before_ = 0;  // time of the tick before
  double time_ = 0;    // of the newest tick
  std::size_t dropped_ = 0;
};

}  // namespace berth::replay
