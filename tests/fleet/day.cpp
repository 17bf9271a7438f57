// SPDX-License-Identifier: Apache-2.0
#include "tests/fleet/day.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/core.h>

namespace berth::fleet {

namespace {

using policies::testing::World;

constexpr double kServiceLife_s = kDay_s;
// Tirmazi et al., "Borg: the Next Generation", EuroSys 2020.
constexpr double kMedianJob_s = 2400;
constexpr double kJobSpread = 1.1;  // of the logarithm: the mean is 1.8 times the median
constexpr double kShortestJob_s = 300;
constexpr double kLongestJob_s = 12 * kHour_s;
constexpr double kMeanServiceVcpus = 0.25 * 1 + 0.35 * 2 + 0.25 * 4 + 0.15 * 8;
constexpr double kMeanJobCores = 0.4 * 1 + 0.35 * 2 + 0.25 * 4;
constexpr double kJobTide = 0.3;  // more jobs come by day than by night
// Times of the day at which the use of a service is computed.
constexpr double kTide_s = 300;

double mean_job_s() {
  // Of the log-normal one; the limits change it little.
  return kMedianJob_s * std::exp(kJobSpread * kJobSpread / 2);
}

}  // namespace

double day_of(double time_s) { return std::fmod(time_s / kDay_s, 1.0); }

World world_of(const DaySettings& settings) {
  return policies::testing::make_world(
      {.shape = {.sockets = 1, .llcs_per_socket = 2, .cores_per_llc = 8, .threads_per_core = 2},
       .llc_mib = 32,
       .alike = false,
       .services = 16,
       .seed = settings.seed});
}

Day::Day(const DaySettings& settings, const World& world)
    : settings_(settings),
      world_(world),
      draws_(5000 + settings.seed),
      vcpus_(static_cast<double>(world.topology.usable().size()) * settings.hosts) {}

// Poisson; the means here are small enough for the plain way.
int Day::count_of(double mean) {
  int count = 0;
  for (double at = exponential(draws_, 1); at < mean; at += exponential(draws_, 1)) ++count;
  return count;
}

Arrival Day::service(double time_s) {
  Arrival arrival;
  arrival.name = fmt::format("service-{:06}", services_++);
  arrival.latency_sensitive = true;
  arrival.software = static_cast<std::size_t>(draws_.number(0, static_cast<int>(world_.services.size()) - 1));
  const double which = draws_.fraction();
  arrival.cores = which < 0.25 ? 1 : which < 0.6 ? 2 : which < 0.85 ? 4 : 8;
  arrival.memory_bytes = std::round(arrival.cores * log_uniform(draws_, 1.5, 5)) * kGiB;
  arrival.memory_use_bytes = arrival.memory_bytes * (0.4 + 0.5 * draws_.fraction());
  arrival.duration_s = exponential(draws_, kServiceLife_s);
  arrival.time_s = time_s;
  return arrival;
}

Arrival Day::job(double time_s) {
  Arrival arrival;
  arrival.name = fmt::format("job-{:07}", jobs_++);
  arrival.software = static_cast<std::size_t>(draws_.number(0, static_cast<int>(world_.batch.size()) - 1));
  const double which = draws_.fraction();
  arrival.cores = which < 0.4 ? 1 : which < 0.75 ? 2 : 4;
  arrival.use_cores = arrival.cores * (0.3 + 0.6 * draws_.fraction());
  arrival.memory_bytes = std::max(1.0, std::round(arrival.cores * log_uniform(draws_, 1, 4))) * kGiB;
  // A few take more than they ask for.
  const bool exceeds = draws_.chance(0.03);
  const double share = draws_.fraction();
  arrival.memory_use_bytes = arrival.memory_bytes * (exceeds ? 1.2 + 0.8 * share : 0.4 + 0.6 * share);
  arrival.duration_s =
      std::clamp(kMedianJob_s * std::exp(kJobSpread * normal(draws_)), kShortestJob_s, kLongestJob_s);
  arrival.time_s = time_s;
  arrival.deadline_s = time_s + 2 * arrival.duration_s + kHour_s / 2;
  return arrival;
}

std::vector<Arrival> Day::arrivals(double time_s) {
  std::vector<Arrival> arrivals;
  const double wanted = settings_.latency_sensitive * vcpus_;
  if (services_ == 0) {
    double vcpus = 0;
    while (vcpus < wanted) {
      arrivals.push_back(service(time_s));
      vcpus += arrivals.back().cores;
    }
  } else {
    const int came = count_of(wanted / kMeanServiceVcpus * settings_.step_s / kServiceLife_s);
    for (int i = 0; i < came; ++i) arrivals.push_back(service(time_s));
  }
  const double tide = 1 + kJobTide * std::sin(2 * std::numbers::pi * day_of(time_s));
  const double jobs = settings_.best_effort * vcpus_ / kMeanJobCores * settings_.step_s / mean_job_s() * tide;
  const int came = count_of(jobs);
  for (int i = 0; i < came; ++i) arrivals.push_back(job(time_s));
  return arrivals;
}

double Day::service_cores(std::size_t service, int vcpus, double time_s) {
  const int tide = static_cast<int>(std::fmod(time_s, kDay_s) / kTide_s);
  const auto [found, fresh] = cores_.try_emplace({service, {vcpus, tide}});
  if (fresh) {
    const auto& it = world_.services[service];
    const double load = it.load * policies::testing::load_at(it, day_of(tide * kTide_s));
    found->second = policies::testing::alone(world_, it, vcpus, load).cores;
  }
  return found->second;
}

}  // namespace berth::fleet
