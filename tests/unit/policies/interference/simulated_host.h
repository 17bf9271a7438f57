// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/learning.h"
#include "tests/unit/policies/draws.h"
#include "tests/unit/policies/interference/shared_host.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace berth::policies::testing {

// A shared host with a service "web" of two instances, each beside batch work on its sibling vCPU, and more
// batch work elsewhere in the cache. How much the service suffers from them is known.
class SimulatedHost {
 public:
  static constexpr double kSlowSc =
      0.8;  // share by which the response rises with a full neighbour on the core
  static constexpr double kSlowSs = 1.5;   // and in the whole domain
  static constexpr double kLoad = 0.3;     // cores of an instance, on average
  static constexpr double kTask_s = 4000;  // CPU seconds of a task without neighbours

  explicit SimulatedHost(model::Response response, std::uint64_t seed = 1)
      : response_(response), draws_(seed) {
    constexpr auto kLs = model::WorkloadClass::latency_sensitive;
    constexpr auto kBe = model::WorkloadClass::best_effort;
    host_.add("batch-1", kBe, {4});
    host_.add("batch-2", kBe, {5});
    host_.add("noise-1", kBe, {2, 3, 6, 7});
    host_.add("web-1", kLs, {0});
    host_.add("web-2", kLs, {1});
  }

  // The snapshot of the next tick.
  const model::Snapshot& tick() {
    host_.next();
    const double noise = 4 * draws_.fraction();
    const double batch[] = {draws_.fraction(), draws_.fraction()};
    host_.use("batch-1", batch[0]);
    host_.use("batch-2", batch[1]);
    host_.use("noise-1", noise);
    // From 0.1 to 0.5 cores, the same for both.
    const double load = kLoad + 0.2 * std::sin(2 * std::numbers::pi * ++ticks_ / 25);
    double used[2];
    double slow[2];
    for (int i = 0; i < 2; ++i) {
      // The other instance counts with its load alone, which is an error of the simulation.
      slow[i] = kSlowSc * batch[i] + kSlowSs * (noise + batch[1 - i] + load) / 6;
      slow[i] += 0.02 * (draws_.fraction() - 0.5);
      used[i] = response_ == model::Response::cpu ? load + kLoad * slow[i] : load;
      host_.use(i == 0 ? "web-1" : "web-2", used[i]);
    }
    for (int i = 0; i < 2; ++i) {
      auto& web = host_.of(i == 0 ? "web-1" : "web-2");
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
  double done_[2] = {0, 0};
};

}  // namespace berth::policies::testing
