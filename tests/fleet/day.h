// SPDX-License-Identifier: Apache-2.0
// The work that comes to a simulated fleet over a day (docs/evaluation.md, A fleet of many hosts). The same
// settings give the same work, whatever the fleet does with it.
#pragma once

#include "tests/unit/policies/draws.h"
#include "tests/unit/policies/interference/ground_truth/fleet.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace berth::fleet {

inline constexpr double kHour_s = 3600;
inline constexpr double kDay_s = 86400;
inline constexpr double kGiB = 1024.0 * 1024 * 1024;

struct DaySettings {
  int hosts = 100;
  double step_s = 300;
  // vCPUs that services ask for, as a share of the fleet's. They use 18 % of these on average [Cortez et al.,
  // "Resource Central", SOSP 2017; Jiang et al., IEEE TCC 2022].
  double latency_sensitive = 0.5;
  double best_effort = 0.6;  // cores that batch jobs would ask for if all ran at once, likewise
  std::uint64_t seed = 1;
};

// A pod as it comes. Best-effort pods are batch jobs with an end.
struct Arrival {
  std::string name;
  bool latency_sensitive = false;
  std::size_t software = 0;  // index into the services of the world, or into its batch software
  int cores = 1;             // asked for
  double memory_bytes = 0;   // asked for
  double memory_use_bytes = 0;
  double use_cores = 0;   // a batch job keeps so many busy if it can
  double duration_s = 0;  // of a service: its life; of a batch job: if it gets all CPU that it can use
  double time_s = 0;      // of arrival, since the beginning
  double deadline_s = 0;  // of a batch job
};

// Hosts of 32 vCPUs (16 cores, two last-level caches), and the software on them.
policies::testing::World world_of(const DaySettings& settings);
inline constexpr double kHostMemory_bytes = 128 * kGiB;

// The time of the day, 0..1.
double day_of(double time_s);

class Day {
 public:
  Day(const DaySettings& settings, const policies::testing::World& world);

  // The arrivals of the step that begins at `time_s`. The first step has the services that run already. Call
  // it once a step, in order.
  std::vector<Arrival> arrivals(double time_s);
  // The cores that an instance of a service uses on a host of its own.
  double service_cores(std::size_t service, int vcpus, double time_s);

 private:
  int count_of(double mean);
  Arrival service(double time_s);
  Arrival job(double time_s);

  DaySettings settings_;
  const policies::testing::World& world_;
  policies::testing::Draws draws_;
  double vcpus_ = 0;  // of the fleet
  int services_ = 0;
  int jobs_ = 0;
  std::map<std::pair<std::size_t, std::pair<int, int>>, double> cores_;
};

}  // namespace berth::fleet
