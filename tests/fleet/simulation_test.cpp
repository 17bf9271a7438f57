// SPDX-License-Identifier: Apache-2.0
#include "tests/fleet/simulation.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace berth::fleet {
namespace {

// Binds each pod to the node with the most cores that no pod asked for; the rest is refused.
class Scheduler {
 public:
  explicit Scheduler(Simulation& simulation, int cores = 32) : simulation_(simulation), cores_(cores) {}

  Answers answer(const Orders& orders) {
    Answers answers;
    std::map<std::string, double> asked;
    for (std::size_t host = 0; host < simulation_.hosts(); ++host) {
      double& sum = asked[simulation_.node_name(host)];
      for (const std::string& name : simulation_.pods_on(host))
        sum += simulation_.pods().at(name).arrival.cores;
    }
    for (const Pod* pod : orders.create) {
      const auto least = std::min_element(asked.begin(), asked.end(),
                                          [](const auto& a, const auto& b) { return a.second < b.second; });
      if (least->second + pod->arrival.cores > cores_) continue;
      least->second += pod->arrival.cores;
      answers.bound[pod->arrival.name] = {.node = least->first, .uid = uid_of(pod->arrival.name)};
    }
    return answers;
  }

 private:
  std::string uid_of(const std::string& name) {
    return fmt::format("{:08x}-0000-4000-8000-{:012x}", ++uids_,
                       std::hash<std::string>()(name) & 0xffffffffffffU);
  }

  Simulation& simulation_;
  double cores_;
  int uids_ = 0;
};

Settings settings_of(bool berth, int hosts = 3) {
  Settings settings;
  settings.day.hosts = hosts;
  settings.day.seed = 7;
  settings.berth = berth;
  return settings;
}

// Each pod waits, or is on one host, or is over.
void expect_each_pod_once(const Simulation& simulation) {
  std::map<std::string, std::size_t> place;
  for (std::size_t host = 0; host < simulation.hosts(); ++host) {
    EXPECT_TRUE(std::is_sorted(simulation.pods_on(host).begin(), simulation.pods_on(host).end()));
    for (const std::string& name : simulation.pods_on(host))
      EXPECT_TRUE(place.emplace(name, host).second) << name << " is on two hosts";
  }
  for (const auto& [name, pod] : simulation.pods()) {
    const auto found = place.find(name);
    EXPECT_EQ(pod.state == Pod::State::running, found != place.end()) << name;
    if (found != place.end()) {
      EXPECT_EQ(pod.host, found->second) << name;
    }
  }
}

class EachWay : public testing::TestWithParam<bool> {};

TEST_P(EachWay, APodIsInOnePlaceAndNoWorkIsLost) {
  Settings settings = settings_of(GetParam());
  settings.measure_every = 12;
  Simulation simulation(settings);
  Scheduler scheduler(simulation);
  Orders orders = simulation.advance({});
  std::set<std::string> known;  // pods that the cluster has
  std::size_t ended = 0;
  for (int step = 0; step < 36; ++step) {
    for (const Pod* pod : orders.create)
      EXPECT_TRUE(known.insert(pod->arrival.name).second) << pod->arrival.name;
    const Answers answers = scheduler.answer(orders);
    // A refused pod leaves the cluster until it is tried again.
    for (const Pod* pod : orders.create) {
      if (answers.bound.count(pod->arrival.name) == 0) known.erase(pod->arrival.name);
    }
    orders = simulation.advance(answers);
    expect_each_pod_once(simulation);
    for (const std::string& name : orders.remove) {
      EXPECT_EQ(known.erase(name), 1U) << name;
      ++ended;
    }
    std::size_t running = 0;
    for (std::size_t host = 0; host < simulation.hosts(); ++host) running += simulation.pods_on(host).size();
    EXPECT_EQ(known.size(), running);
  }
  EXPECT_DOUBLE_EQ(orders.time_s, 36 * 300);
  const Figures& figures = simulation.figures();
  EXPECT_GT(ended, 10U);
  EXPECT_EQ(figures.host_steps, 36 * 3);
  std::size_t finished = 0;
  std::size_t rejected = 0;
  double done = 0;
  for (const auto& [name, pod] : simulation.pods()) {
    if (pod.arrival.latency_sensitive) continue;
    finished += pod.state == Pod::State::finished ? 1 : 0;
    rejected += pod.state == Pod::State::rejected ? 1 : 0;
    if (pod.state == Pod::State::running || pod.state == Pod::State::finished) done += pod.done_core_s;
    EXPECT_LE(pod.done_core_s, pod.arrival.use_cores * pod.arrival.duration_s * 1.000001);
  }
  EXPECT_EQ(figures.jobs_finished, finished);
  EXPECT_EQ(figures.jobs_rejected, rejected);
  EXPECT_NEAR(figures.job_core_s, done + figures.lost_core_s, 1e-6 * figures.job_core_s);
  for (const Interference& it : {figures.interference, figures.idle_anywhere}) {
    EXPECT_GT(it.p99_ratios.size(), 20U);
    EXPECT_GT(it.service_cores, figures.service_cores_alone);
    EXPECT_GT(it.job_work, 0.2 * figures.job_cores);
    EXPECT_LT(it.job_work, figures.job_cores);
  }
}

INSTANTIATE_TEST_SUITE_P(All, EachWay, testing::Values(false, true));

TEST(FleetDay, UseFollowsTheTide) {
  const DaySettings settings{.hosts = 2};
  const auto world = world_of(settings);
  Day day(settings, world);
  for (std::size_t service = 0; service < world.services.size(); ++service) {
    double low = 1e9;
    double high = 0;
    for (int hour = 0; hour < 24; ++hour) {
      const double cores = day.service_cores(service, 2, hour * kHour_s);
      low = std::min(low, cores);
      high = std::max(high, cores);
      EXPECT_EQ(cores, day.service_cores(service, 2, hour * kHour_s + kDay_s));
    }
    // load_at() swings by a factor of five; use is limited to the vCPUs.
    EXPECT_GT(high / low, 3) << service;
    EXPECT_LE(high, 2);
  }
}

TEST(FleetDay, TheSameSeedBringsTheSameWork) {
  const DaySettings settings{.hosts = 4, .seed = 3};
  const auto world = world_of(settings);
  Day one(settings, world);
  Day other(settings, world);
  double vcpus = 0;
  int jobs = 0;
  for (int step = 0; step < 288; ++step) {
    const auto first = one.arrivals(step * 300.0);
    const auto second = other.arrivals(step * 300.0);
    ASSERT_EQ(first.size(), second.size());
    for (std::size_t i = 0; i < first.size(); ++i) {
      EXPECT_EQ(first[i].name, second[i].name);
      EXPECT_EQ(first[i].memory_use_bytes, second[i].memory_use_bytes);
      EXPECT_EQ(first[i].duration_s, second[i].duration_s);
      if (step == 0 && first[i].latency_sensitive) vcpus += first[i].cores;
      jobs += first[i].latency_sensitive ? 0 : 1;
    }
  }
  EXPECT_GE(vcpus, 0.5 * 4 * 32);
  EXPECT_LT(vcpus, 0.5 * 4 * 32 + 8);
  EXPECT_GT(jobs, 100);
}

TEST(FleetSimulation, AServiceAloneOnAStockHostIsAsFastAsAlone) {
  Simulation simulation(settings_of(false, 1));
  const Arrival arrival = simulation.advance({}).create.front()->arrival;
  ASSERT_TRUE(arrival.latency_sensitive);
  simulation.advance({.bound = {{arrival.name, {.node = "n0000", .uid = "u"}}}, .gone = {}});
  const Figures& figures = simulation.figures();
  EXPECT_EQ(figures.interference.p99_ratios, std::vector<double>{1});
  EXPECT_DOUBLE_EQ(figures.interference.service_cores, figures.service_cores_alone);
  EXPECT_EQ(figures.interference.violations(), 0);
}

// An hour of hosts on which pods may ask for so many cores.
Figures hour_of(const Settings& settings, int cores) {
  Simulation simulation(settings);
  Scheduler scheduler(simulation, cores);
  Orders orders = simulation.advance({});
  for (int step = 0; step < 12; ++step) orders = simulation.advance(scheduler.answer(orders));
  return simulation.figures();
}

TEST(FleetSimulation, OversoldHostsMakeServicesWait) {
  Settings settings = settings_of(false, 2);
  settings.day.best_effort = 4;
  settings.measure_every = 11;
  const Figures fits = hour_of(settings, 32);
  const Figures oversold = hour_of(settings, 96);
  EXPECT_GT(oversold.interference.violations(), fits.interference.violations() + 0.2);
  EXPECT_LT(oversold.idle_anywhere.violations(), oversold.interference.violations() - 0.2);
  EXPECT_GT(oversold.interference.job_work, fits.interference.job_work);
}

TEST(FleetSimulation, TheSameSeedGivesTheSameFigures) {
  for (const bool berth : {false, true}) {
    const Figures once = hour_of(settings_of(berth, 2), 32);
    const Figures again = hour_of(settings_of(berth, 2), 32);
    EXPECT_FALSE(once.interference.p99_ratios.empty());
    EXPECT_EQ(once.interference.p99_ratios, again.interference.p99_ratios);
    EXPECT_EQ(once.idle_anywhere.job_work, again.idle_anywhere.job_work);
  }
}

TEST(FleetSimulation, ServicesAreAtHomeInOneCache) {
  Simulation simulation(settings_of(true));
  Scheduler scheduler(simulation);
  Orders orders = simulation.advance({});
  EXPECT_EQ(orders.nodes.size(), 3U);  // the first publication
  for (const NodeChange& change : orders.nodes) {
    EXPECT_EQ(change.wanted.cpu_millis, 32'000U);
    EXPECT_EQ(change.wanted.closed, "");
  }
  for (int step = 0; step < 4; ++step) orders = simulation.advance(scheduler.answer(orders));
  int pinned = 0;
  for (std::size_t host = 0; host < simulation.hosts(); ++host) {
    for (const std::string& name : simulation.pods_on(host)) {
      const Pod& pod = simulation.pods().at(name);
      if (!pod.arrival.latency_sensitive || pod.cpus.empty()) continue;
      ++pinned;
      EXPECT_EQ(pod.home.size(), 1U);
      EXPECT_EQ(pod.cpus.size(), 16U);
    }
  }
  EXPECT_GT(pinned, 5);
}

TEST(FleetSimulation, APreemptedJobStartsAnew) {
  Simulation simulation(settings_of(false, 1));
  Scheduler scheduler(simulation);
  Orders orders = simulation.advance({});
  Answers answers;
  std::string job;
  for (int step = 0; step < 20 && job.empty(); ++step) {
    answers = scheduler.answer(orders);
    orders = simulation.advance(answers);
    for (const std::string& name : simulation.pods_on(0)) {
      const Pod& pod = simulation.pods().at(name);
      if (!pod.arrival.latency_sensitive && pod.done_core_s > 0) job = name;
    }
  }
  ASSERT_FALSE(job.empty());
  const double done = simulation.pods().at(job).done_core_s;
  orders = simulation.advance({.bound = {}, .gone = {job}});
  EXPECT_EQ(simulation.figures().evicted_for_room, 1);
  EXPECT_DOUBLE_EQ(simulation.figures().lost_core_s, done);
  EXPECT_NE(simulation.pods().at(job).state, Pod::State::running);
  expect_each_pod_once(simulation);
}

TEST(FleetSimulation, RefusesAnswersThatCannotBe) {
  Simulation simulation(settings_of(false));
  const Orders orders = simulation.advance({});
  ASSERT_FALSE(orders.create.empty());
  const std::string pod = orders.create.front()->arrival.name;
  EXPECT_THROW(simulation.advance({.bound = {{pod, {.node = "other", .uid = "u"}}}, .gone = {}}),
               std::runtime_error);
  EXPECT_THROW(simulation.advance({.bound = {{"other", {.node = "n0000", .uid = "u"}}}, .gone = {}}),
               std::runtime_error);
  EXPECT_THROW(simulation.advance({.bound = {}, .gone = {pod}}), std::runtime_error);
}

}  // namespace
}  // namespace berth::fleet
