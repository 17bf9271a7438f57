// SPDX-License-Identifier: Apache-2.0
#include "tests/fleet/moment.h"

#include "tests/fleet/day.h"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace berth::fleet {
namespace {

// A service of four vCPUs on a host of 32, beside jobs that want so many cores.
Moment beside(int cores) {
  Moment moment;
  moment.services.push_back({.software = 0, .vcpus = 4, .cores = 1.2});
  for (int job = 0; job < cores / 4; ++job)
    moment.jobs.push_back({.software = 0, .cores = 4, .use_cores = 4});
  return moment;
}

struct Outcome {
  double p99_ratio;
  double slowdown;
  double job_work;
};
Outcome outcome(const Moment& moment, Priority priority, std::uint64_t seed = 1) {
  const auto world = world_of({});
  const Served alone = served_alone(world, moment, seed)[0];
  const Shared found = shared(world, moment, priority, seed);
  return {.p99_ratio = found.services[0].p99_s / alone.p99_s,
          .slowdown = found.services[0].cpu_for_work / alone.cpu_for_work - 1,
          .job_work = found.job_work};
}

TEST(FleetMoment, AServiceBesideAFewJobsDoesNotWait) {
  EXPECT_NEAR(outcome(beside(8), Priority::request).p99_ratio, 1, 0.02);
}

TEST(FleetMoment, AServiceBesideAFullHostWaits) {
  const Outcome busy = outcome(beside(24), Priority::request);
  const Outcome full = outcome(beside(64), Priority::request);
  EXPECT_GT(full.p99_ratio, 3 * busy.p99_ratio);
  EXPECT_NEAR(full.slowdown, busy.slowdown, 0.05);
}

TEST(FleetMoment, IdlePriorityOfTheJobsCostsLessThanTheWeightOfTheirRequest) {
  const Outcome request = outcome(beside(64), Priority::request);
  const Outcome best_effort = outcome(beside(64), Priority::best_effort);
  const Outcome idle = outcome(beside(64), Priority::idle);
  EXPECT_LT(idle.p99_ratio, 0.3 * request.p99_ratio);
  EXPECT_LE(idle.p99_ratio, best_effort.p99_ratio);
  EXPECT_LT(best_effort.p99_ratio, request.p99_ratio);
  EXPECT_NEAR(idle.job_work, request.job_work, 0.02 * request.job_work);
}

TEST(FleetMoment, AServiceOnItsOwnVcpuWaitsForItself) {
  Moment moment;
  moment.services.push_back({.software = 0, .vcpus = 1, .cores = 0.6, .cpus = {5}});
  EXPECT_GT(outcome(moment, Priority::idle).p99_ratio, 1.5);
  moment.services[0].cpus = {};
  EXPECT_EQ(outcome(moment, Priority::idle).p99_ratio, 1);
}

TEST(FleetMoment, JobsDoWhatTheyWantAndWhatTheirPoolHolds) {
  Moment moment = beside(0);
  moment.jobs.push_back({.software = 1, .cores = 4, .use_cores = 2});
  EXPECT_NEAR(outcome(moment, Priority::idle).job_work, 2, 0.3);
  moment.jobs[0] = {.software = 1, .cores = 8, .use_cores = 8};
  moment.pool = {0, 1, 2};
  EXPECT_NEAR(outcome(moment, Priority::idle).job_work, 3, 0.3);
}

TEST(FleetMoment, TheSameSeedGivesTheSameFigures) {
  const auto once = outcome(beside(32), Priority::request, 1);
  const auto again = outcome(beside(32), Priority::request, 1);
  EXPECT_EQ(once.p99_ratio, again.p99_ratio);
  EXPECT_EQ(once.job_work, again.job_work);
  EXPECT_NE(once.p99_ratio, outcome(beside(32), Priority::request, 2).p99_ratio);
}

}  // namespace
}  // namespace berth::fleet
