// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/learning.h"
#include "tests/unit/policies/draws.h"
#include "tests/unit/policies/interference/shared_host.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <string>
#include <vector>

namespace berth::policies::testing {

// A host with two caches of two cores. Each has an instance of a service "web", batch work on the sibling of
// its vCPU, and more on the other core. How much the service suffers from them is known.
class SimulatedHost {
 public:
  // Shares by which the response rises with a full neighbour on the core, and with a domain that is full of
  // them.
  static constexpr double kSlowSc = 0.8;
  static constexpr double kSlowSs = 1.5;
  static constexpr double kLoad = 0.3;     // cores of an instance, on average
  static constexpr double kTask_s = 4000;  // CPU seconds of a task without neighbours

  explicit SimulatedHost(model::Response response, std::uint64_t seed = 1)
      : response_(response), draws_(seed) {
    constexpr auto kLs = model::WorkloadClass::latency_sensitive;
    constexpr auto kBe = model::WorkloadClass::best_effort;
    std::vector<model::Cpu> cpus;
    for (int cpu = 0; cpu < 8; ++cpu)
      cpus.push_back({.cpu = cpu, .core = cpu % 4, .llc = cpu % 4 / 2, .efficiency = {}});
    host_.snapshot.topology = *model::Topology::make(cpus);
    host_.add("batch-1", kBe, {4});
    host_.add("batch-2", kBe, {6});
    host_.add("noise-1", kBe, {1, 5});
    host_.add("noise-2", kBe, {3, 7});
    host_.add("web-1", kLs, {0});
    host_.add("web-2", kLs, {2});
  }

  // The snapshot of the next tick.
  const model::Snapshot& tick() {
    host_.next();
    // From 0.1 to 0.5 cores, the same for both.
    const double load = kLoad + 0.2 * std::sin(2 * std::numbers::pi * ++ticks_ / 25);
    std::array<double, 2> used{};
    std::array<double, 2> slow{};
    for (std::size_t i = 0; i < 2; ++i) {
      const std::string number = std::to_string(i + 1);
      const double batch = draws_.fraction();
      const double noise = draws_.fraction();
      host_.use("batch-" + number, batch);
      host_.use("noise-" + number, 2 * noise);  // on two vCPUs
      slow[i] = kSlowSc * batch + kSlowSs * noise + 0.02 * (draws_.fraction() - 0.5);
      used[i] = response_ == model::Response::cpu ? load + kLoad * slow[i] : load;
      host_.use("web-" + number, used[i]);
    }
    for (std::size_t i = 0; i < 2; ++i) {
      auto& web = host_.of("web-" + std::to_string(i + 1));
      if (response_ == model::Response::cpi) web.cpi = 1.2 * (1 + slow[i]);
      if (response_ != model::Response::cost) continue;
      done_[i] += used[i] * kTick_s / (kTask_s * (1 + slow[i]));
      web.progress = {{.time = host_.snapshot.time, .fraction = done_[i]}};
    }
    return host_.snapshot;
  }
  SharedHost& host() { return host_; }

 private:
  static constexpr double kTick_s = 5;

  model::Response response_;
  Draws draws_;
  SharedHost host_;
  int ticks_ = 0;
  std::array<double, 2> done_{};
};

}  // namespace berth::policies::testing
