// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace berth::policies {

// How the work in a stage's completed tasks is measured. pooled: by their run time. mean_of_ratios, as
// published: by their input times their mean seconds per byte.
enum class Complexity { pooled, mean_of_ratios };

// How the cheapest victim is found. loss_per_byte: the executor that loses the least for each byte it frees,
// of any application. The others take the application that costs the least, for each byte or, as published,
// in all.
enum class EvictionRank { loss_per_byte, cost_per_byte, cost };

// How the services' demand for memory is forecast. learned: from what it did on this node. published: by mean
// and standard deviation.
enum class ForecastRule { learned, published };

// The [eviction] table; defaults and meaning in berth.toml(5), docs/decisions/eviction-cost.md and
// docs/decisions/eviction-order.md.
struct EvictionSettings {
  Complexity complexity = Complexity::pooled;
  EvictionRank rank = EvictionRank::loss_per_byte;
  double alpha = 1.0;
  double beta_s_per_byte = 8e-9;  // 1 Gbit/s
  double gamma = 1.0;
  ForecastRule forecast = ForecastRule::learned;
  double horizon_s = 30.0;  // of the learned forecast, until an eviction tells how long freeing takes
  double confidence = 0.9;  // share of its errors that its margin covers
  double delta_weight = 0;  // of the demand's variation against an application's remaining time
  double z = 2.0;           // published: standard deviations of memory demand to keep free
  int window = 60;          // published: samples of it
  double reserve = 0.05;    // of the host's memory
  double psi_full = 10.0;   // percent of 10 s in which all tasks stall for memory
  bool evict = false;       // the plan ends work where memory is wanted
  double grace_s = 30.0;    // time for an evicted workload to end by itself, after each step
  double hold_s = 60.0;     // how long a replacement of an evicted executor is held; 0: not at all
};

inline const char* to_string(Complexity complexity) {
  return complexity == Complexity::pooled ? "pooled" : "mean-of-ratios";
}
inline const char* to_string(EvictionRank rank) {
  if (rank == EvictionRank::loss_per_byte) return "loss-per-byte";
  return rank == EvictionRank::cost_per_byte ? "cost-per-byte" : "cost";
}

inline const char* to_string(ForecastRule rule) {
  return rule == ForecastRule::learned ? "learned" : "published";
}

}  // namespace berth::policies
