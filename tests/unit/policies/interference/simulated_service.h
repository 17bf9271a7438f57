// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/learning.h"
#include "tests/unit/policies/draws.h"

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <vector>

namespace berth::policies::testing {

// Observations of a service whose dependence on its neighbours is known. The load swings by a factor of five,
// as over a day, and is the same for all instances of a tick.
class SimulatedService {
 public:
  struct Truth {
    double slow_sc = 1.5;  // share by which a response rises with a full neighbour on the core
    double slow_ss = 0.8;  // and in the domain
    double noise = 0.05;   // standard deviation, as a share of the response
    // By `cpu`: neighbours cost a share of the load. Else they cost that share of the mean load.
    bool of_load = false;
    int period = 25;  // ticks from one peak of the load to the next
  };
  static Truth slowed(double sc, double ss, double noise) {
    Truth truth;
    truth.slow_sc = sc;
    truth.slow_ss = ss;
    truth.noise = noise;
    return truth;
  }
  static constexpr double kTick_s = 5;
  static constexpr double kSwing = 5;
  static constexpr double kMeanLoad = 0.3;

  SimulatedService(model::Response response, Truth truth, std::uint64_t seed, std::string name = "web")
      : response_(response), truth_(truth), draws_(seed), name_(std::move(name)) {}

  void change(Truth truth) { truth_ = truth; }
  void jump(double seconds) { time_ += seconds; }
  double time() const { return time_; }

  // One observation for each of the instances.
  std::vector<model::Observation> tick(int instances) {
    time_ += kTick_s;
    // From 0.1 to 0.5 cores per vCPU.
    const double wave = std::sin(2 * std::numbers::pi * ++ticks_ / truth_.period);
    const double load = 0.1 * (1 + (kSwing - 1) * (1 + wave) / 2);
    std::vector<model::Observation> seen;
    for (int i = 0; i < instances; ++i) {
      model::Observation one;
      one.service = name_;
      one.instance = name_ + "-" + std::to_string(i);
      one.time = time_;
      one.response = response_;
      one.sc = draws_.fraction();
      one.ss = draws_.fraction();
      const double cost = truth_.slow_sc * one.sc + truth_.slow_ss * one.ss;
      const double noise = 1 + truth_.noise * normal();
      const double slowed = (1 + cost) * noise;
      const bool adds = response_ == model::Response::cpu && !truth_.of_load;
      one.u = adds ? (load + kMeanLoad * cost) * noise : load * slowed;
      one.y = response_ == model::Response::cpu ? one.u : alone() * slowed;
      seen.push_back(one);
    }
    return seen;
  }

  // The response without neighbours; of cpu it is the load.
  double alone() const { return response_ == model::Response::cpi ? 1.2 : 0.004; }
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - 0.999999 * draws_.fraction()));
    return radius * std::cos(2 * std::numbers::pi * draws_.fraction());
  }

 private:
  model::Response response_;
  Truth truth_;
  Draws draws_;
  std::string name_;
  double time_ = 1790000000;
  int ticks_ = 0;
};

}  // namespace berth::policies::testing
