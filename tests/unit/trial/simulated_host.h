// SPDX-License-Identifier: Apache-2.0
// A host whose figures drift, spread and answer to a change of settings late, on a clock of its own.
#pragma once

#include "trial/driver.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace berth::trial::test {

class SimulatedHost final : public Host {
 public:
  // The share by which side b changes the waits of all services.
  explicit SimulatedHost(std::uint64_t seed, double effect = 0, double tick_s = 1)
      : random_(seed), effect_(effect), tick_s_(tick_s) {}

  model::Result<void> use(Side side, double lease_s) override {
    if (refuses_at && uses.size() == *refuses_at)
      return model::fail(model::ErrorKind::gone, "the trial has ended: the configuration was reloaded");
    uses.emplace_back(now_, side);
    leases.push_back(lease_s);
    side_ = side;
    used_at_ = now_;
    return {};
  }
  model::Result<model::Snapshot> look() override {
    looks.push_back(now_);
    model::Snapshot snapshot;
    snapshot.time = now_;
    if (empty) return snapshot;
    for (const char* name : {"batch", "db", "web"}) {
      model::Workload workload;
      workload.id = workload.service = name;
      const bool batch = workload.id == "batch";
      workload.workload_class =
          batch ? model::WorkloadClass::best_effort : model::WorkloadClass::latency_sensitive;
      workload.usage = batch ? batch_ : workload.id == "db" ? db_ : web_;
      if (!batch) workload.cpi = cpi_;
      if (batch) workload.progress = {{now_, progress_}};
      snapshot.workloads.push_back(std::move(workload));
    }
    return snapshot;
  }
  double now() override { return now_; }
  bool wait(double seconds) override {
    const double until = now_ + seconds;
    while (next_tick_ <= until + 1e-9) {
      now_ = next_tick_;
      tick();
      next_tick_ += tick_s_;
    }
    now_ = until;
    return !(ends_at && now_ >= *ends_at);
  }
  void begin_metric(double seconds) override { metric_s.push_back(seconds); }
  std::optional<model::Result<double>> end_metric() override {
    if (!metric) return std::nullopt;
    if (metric_fails) return model::Result<double>(model::fail(model::ErrorKind::io, "it printed no number"));
    return model::Result<double>(*metric * (side_ == Side::b ? 2 : 1));
  }
  void show(std::size_t windows, std::size_t of, Side, double left_s) override {
    shown.emplace_back(windows, left_s);
    all_windows = of;
  }

  std::vector<std::pair<double, Side>> uses;
  std::vector<double> leases;
  std::vector<double> looks;
  std::vector<double> metric_s;
  std::vector<std::pair<std::size_t, double>> shown;
  std::size_t all_windows = 0;
  std::optional<std::size_t> refuses_at;  // number of the call
  std::optional<double> ends_at;          // the user's Ctrl-C
  std::optional<double> metric;
  bool metric_fails = false;
  bool empty = false;

 private:
  double normal() { return normal_(random_); }
  // Noise that lasts: its steps are a two-hundredth of its length.
  static void drift(double& value, double spread, double step) {
    constexpr double kStays = 0.995;
    value = value * kStays + spread * std::sqrt(1 - kStays * kStays) * step;
  }
  void tick() {
    drift(load_, 0.3, normal());
    drift(own_, 0.15, normal());
    // Ten seconds until the new settings have all of their effect.
    const double settled = 1 - std::exp(-(now_ - used_at_) / 4);
    const double aim = side_ == Side::b ? 1 + effect_ : 1;
    effect_now_ += (aim - effect_now_) * settled;
    const double load = std::exp(load_ + 0.2 * std::sin(now_ / 1800));
    add(web_, 0.8 * load, 300 * load * std::exp(0.5 * normal()) * effect_now_);
    add(db_, 0.5 * load, 90 * load * std::exp(own_ + 0.5 * normal()) * effect_now_);
    add(batch_, 3 / load * std::exp(0.1 * normal()), std::nullopt);
    cpi_ = 1.1 + 0.1 * load + 0.05 * normal();
    progress_ += 0.00002 / load * std::exp(0.3 * normal());
  }
  void add(model::UsageWindow& window, double cores, std::optional<double> p99) {
    model::UsageSample sample;
    sample.time = now_;
    sample.cpu_cores = cores;
    if (p99) {
      sample.runq_latency_us = *p99;
      sample.runq_latency_p50_us = *p99 / 20;
    }
    window.add(sample, 60);
  }

  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  double effect_;
  double tick_s_;
  double now_ = 1000;
  double next_tick_ = 1000;
  Side side_ = Side::a;
  double used_at_ = 0;
  double effect_now_ = 1;
  double load_ = 0;
  double own_ = 0;
  double cpi_ = 1;
  double progress_ = 0.01;
  model::UsageWindow web_;
  model::UsageWindow db_;
  model::UsageWindow batch_;
};

}  // namespace berth::trial::test
