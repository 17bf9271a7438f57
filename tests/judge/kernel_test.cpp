// SPDX-License-Identifier: Apache-2.0
// The simulated kernel against queueing theory, and against what the kernel's documentation promises.
#include "tests/judge/loads.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace berth::judge {
namespace {

CpuMask mask_of(std::initializer_list<int> cpus) {
  CpuMask mask;
  for (const int cpu : cpus) mask.set(static_cast<std::size_t>(cpu));
  return mask;
}

Group group_on(CpuMask mask, bool idle = false) {
  Group group;
  group.per_thread = true;
  group.idle = idle;
  group.mask = mask;
  return group;
}

Rules without_costs(Version version) {
  Rules rules;
  rules.version = version;
  rules.switch_cost = 0;
  return rules;
}

ServiceLoad service_of(double cores, int threads) {
  ServiceLoad load;
  load.cores = cores;
  load.threads = threads;
  return load;
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

class EachVersion : public testing::TestWithParam<Version> {};
INSTANTIATE_TEST_SUITE_P(Kernels, EachVersion, testing::Values(Version::cfs, Version::eevdf),
                         [](const auto& it) { return it.param == Version::cfs ? "Cfs" : "Eevdf"; });

// M/M/1: the time in the system is exponential with the mean 1 / (1 / work - arrivals).
TEST_P(EachVersion, OneThreadAloneIsAQueueOfOneServer) {
  for (const double use : {0.2, 0.5, 0.8}) {
    Simulation run(shape(1, 1, 1, 1), without_costs(GetParam()), {group_on(mask_of({0}))},
                   {service_of(use, 1)}, {}, 3);
    run.run(600 * kSecond, 5 * kSecond);
    const double expected_s = 1e-3 / (1 - use);
    EXPECT_NEAR(mean(run.answers(0).times_s), expected_s, 0.05 * expected_s) << use;
    EXPECT_NEAR(quantile(run.answers(0).times_s, 0.99), std::log(100.0) * expected_s,
                0.1 * std::log(100.0) * expected_s)
        << use;
  }
}

// M/M/2, Erlang C: the mean wait is C / (2 / work - arrivals), with C = 2 rho^2 / (1 + rho).
TEST_P(EachVersion, TwoThreadsOnTwoVcpusAreAQueueOfTwoServers) {
  const double use = 1.4;
  const double rho = use / 2;
  Simulation run(shape(1, 1, 2, 1), without_costs(GetParam()), {group_on(mask_of({0, 1}))},
                 {service_of(use, 2)}, {}, 5);
  run.run(600 * kSecond, 5 * kSecond);
  const double waits = 2 * rho * rho / (1 + rho);
  const double expected_s = 1e-3 + waits * 1e-3 / (2 * (1 - rho));
  EXPECT_NEAR(mean(run.answers(0).times_s), expected_s, 0.06 * expected_s);
}

TEST_P(EachVersion, EndlessThreadsShareByTheirWeights) {
  Group heavy = group_on(mask_of({0}));
  heavy.weight = 2048;
  Simulation run(shape(1, 1, 1, 1), without_costs(GetParam()), {heavy, group_on(mask_of({0}))}, {},
                 {{.group = 0, .threads = 1}, {.group = 1, .threads = 1}}, 1);
  run.run(60 * kSecond);
  EXPECT_NEAR(run.kernel().used(0).cpu_s, 40, 1);
  EXPECT_NEAR(run.kernel().used(1).cpu_s, 20, 1);
}

TEST_P(EachVersion, AGroupsWeightIsThatOfAllItsThreads) {
  Group one = group_on(mask_of({0}));
  one.per_thread = false;
  Simulation run(shape(1, 1, 1, 1), without_costs(GetParam()), {one, one}, {},
                 {{.group = 0, .threads = 1}, {.group = 1, .threads = 3}}, 1);
  run.run(60 * kSecond);
  EXPECT_NEAR(run.kernel().used(0).cpu_s, 30, 1.5);
}

TEST_P(EachVersion, BusyVcpusShareThreadsThatDoNotDivideEvenly) {
  const Group group = group_on(mask_of({0, 1}));
  std::vector<BatchLoad> each;
  for (int i = 0; i < 3; ++i) each.push_back({.group = i, .threads = 1});
  Simulation run(shape(1, 1, 2, 1), without_costs(GetParam()), {group, group, group}, {}, each, 1);
  run.run(60 * kSecond);
  // Two of them on one vCPU for good would get 30 s each.
  for (int i = 0; i < 3; ++i) EXPECT_GT(run.kernel().used(i).cpu_s, 33) << i;
}

TEST(Eevdf, ShortWorkBesideTheIdleClassTakesAsLongAsAlone) {
  const CpuMask both = mask_of({0, 1});
  ServiceLoad load = service_of(0.2, 1);
  load.work_s = 0.2e-3;
  const auto p99_s = [&](const std::vector<BatchLoad>& others) {
    Simulation run(shape(1, 1, 2, 1), {}, {group_on(both), group_on(both, true)}, {load}, others, 1);
    run.run(120 * kSecond, kSecond);
    return quantile(run.answers(0).times_s, 0.99);
  };
  EXPECT_LT(p99_s({{.group = 1, .threads = 4}}), 1.15 * p99_s({}));
}

// A vCPU has looked for threads 100,000 times, and `success` is the share of these looks that found one.
// Returns how many of its next 1000 looks it makes.
int searches(double success) {
  NewIdle it;
  std::mt19937 random(1);
  std::bernoulli_distribution finds(success);
  int made = 0;
  for (int i = 0; i < 101'000; ++i) {
    if (!it.looks(random() % 1024)) continue;
    if (i >= 100'000) ++made;
    it.found(finds(random));
  }
  return made;
}

TEST(NewIdle, SearchesAreMadeAsOftenAsTheyFindAThread) {
  EXPECT_GT(searches(1), 950);
  EXPECT_NEAR(searches(0.5), 500, 150);
  EXPECT_LT(searches(0.01), 50);
}

// A host without loads; `timer` wakes threads.
class Bare : public testing::Test {
 protected:
  Kernel kernel(int cpus) {
    return {shape(1, 1, cpus, 1), without_costs(Version::eevdf), [](int, int, int) { return 1.0; },
            [](int) { return std::nullopt; }, [this](std::int64_t what) { timer(what); }};
  }
  std::function<void(std::int64_t)> timer = [](std::int64_t) {};
};

TEST_F(Bare, RealTimeWorkTakesTheVcpuForItsTime) {
  Kernel it = kernel(1);
  const int group = it.add_group(group_on(mask_of({0})));
  it.wake(it.add_thread(group), 10 * kMillisecond);
  it.take(0, 2 * kMillisecond, 0);
  it.take(0, 1 * kMillisecond, 0);
  it.run_until(1 * kMillisecond);
  EXPECT_EQ(it.running(0), -1);
  it.run_until(5 * kMillisecond);
  EXPECT_EQ(it.running(0), group);
  EXPECT_NEAR(it.used(group).cpu_s, 2e-3, 1e-6);
}

TEST_F(Bare, RealTimeWorkHasNothingToDoWithOtherVcpus) {
  Kernel it = kernel(2);
  const int group = it.add_group(group_on(mask_of({1})));
  it.wake(it.add_thread(group), 10 * kMillisecond);
  it.take(0, 2 * kMillisecond, 0);
  it.run_until(1 * kMillisecond);
  EXPECT_EQ(it.running(1), group);
}

TEST_F(Bare, AThreadThatRealTimeWorkWakesGoesToTheVcpuThatIdles) {
  Kernel it = kernel(2);
  const int group = it.add_group(group_on(mask_of({0, 1})));
  const int thread = it.add_thread(group);
  it.wake(thread, 1 * kMillisecond);
  it.run_until(3 * kMillisecond);
  timer = [&](std::int64_t) { it.wake(thread, 1 * kMillisecond); };
  it.take(0, 10 * kMicrosecond, 0);
  it.run_until(3 * kMillisecond + 20 * kMicrosecond);
  EXPECT_EQ(it.running(0), -1);
  EXPECT_EQ(it.running(1), group);
}

TEST_F(Bare, AThreadThatRealTimeWorkWakesBesideABusyVcpuGoesToThatOfLessLoad) {
  // The other vCPU runs a thread without end, and the waker's vCPU runs nothing but the waker.
  Kernel it = kernel(2);
  const int endless = it.add_group(group_on(mask_of({1})));
  const int group = it.add_group(group_on(mask_of({1})));
  it.wake(it.add_thread(endless), kSecond);
  const int thread = it.add_thread(group);
  it.wake(thread, 1 * kMillisecond);
  it.run_until(300 * kMillisecond);
  it.set_group(group, group_on(mask_of({0, 1})));
  timer = [&](std::int64_t) { it.wake(thread, 1 * kMillisecond); };
  it.take(0, 10 * kMicrosecond, 0);
  it.run_until(300 * kMillisecond + 20 * kMicrosecond);
  EXPECT_EQ(it.running(0), group);
}

TEST_P(EachVersion, NoVcpuIdlesWhileAThreadWaits) {
  const CpuMask all = mask_of({0, 1, 2, 3});
  Simulation run(shape(1, 1, 2, 2), without_costs(GetParam()), {group_on(all), group_on(all, true)},
                 {service_of(1.5, 6)}, {{.group = 1, .threads = 7}}, 1);
  run.run(60 * kSecond);
  EXPECT_NEAR(run.kernel().used(0).cpu_s + run.kernel().used(1).cpu_s, 240, 0.5);
}

TEST_P(EachVersion, TheIdleClassGivesWayAtOnce) {
  const auto p99_s = [](bool others) {
    Simulation run(shape(1, 1, 1, 1), without_costs(GetParam()),
                   {group_on(mask_of({0})), group_on(mask_of({0}), true)}, {service_of(0.5, 1)},
                   others ? std::vector<BatchLoad>{{.group = 1, .threads = 3}} : std::vector<BatchLoad>{}, 2);
    run.run(120 * kSecond, kSecond);
    return quantile(run.answers(0).times_s, 0.99);
  };
  // CFS leaves an idle thread that has waited long a turn now and then.
  EXPECT_LT(p99_s(true), (GetParam() == Version::cfs ? 1.8 : 1.3) * p99_s(false));
}

TEST_P(EachVersion, AtTheSamePriorityAServiceWaits) {
  const auto p99_s = [](bool idle) {
    Simulation run(shape(1, 1, 2, 1), without_costs(GetParam()),
                   {group_on(mask_of({0, 1})), group_on(mask_of({0, 1}), idle)}, {service_of(0.4, 4)},
                   {{.group = 1, .threads = 4}}, 2);
    run.run(120 * kSecond, kSecond);
    return quantile(run.answers(0).times_s, 0.99);
  };
  EXPECT_GT(p99_s(false), 1.8 * p99_s(true));
}

TEST_P(EachVersion, AQuotaIsKept) {
  Group limited = group_on(mask_of({0, 1}));
  limited.quota_cores = 0.7;
  Simulation run(shape(1, 1, 2, 1), without_costs(GetParam()), {limited}, {}, {{.group = 0, .threads = 3}},
                 1);
  run.run(60 * kSecond);
  EXPECT_NEAR(run.kernel().used(0).cpu_s, 42, 0.5);
}

TEST_P(EachVersion, ThreadsKeepToTheirMasksAlsoToNewOnes) {
  Simulation run(shape(1, 1, 4, 1), without_costs(GetParam()),
                 {group_on(mask_of({0, 1})), group_on(mask_of({2, 3}))}, {},
                 {{.group = 0, .threads = 3}, {.group = 1, .threads = 3}}, 1);
  const auto where = [&](int group) {
    CpuMask found;
    for (int step = 0; step < 500; ++step) {
      run.run(2 * kMillisecond);
      for (int cpu = 0; cpu < 4; ++cpu) {
        if (run.kernel().running(cpu) == group) found.set(static_cast<std::size_t>(cpu));
      }
    }
    return found;
  };
  EXPECT_EQ(where(0), mask_of({0, 1}));
  run.kernel().set_group(0, group_on(mask_of({3})));
  EXPECT_EQ(where(0), mask_of({3}));
  run.kernel().set_group(1, group_on(mask_of({0, 1, 2})));
  EXPECT_EQ(where(1), mask_of({0, 1, 2}));
}

TEST_P(EachVersion, AWakingThreadPrefersAnIdleCoreToTheSiblingOfABusyOne) {
  const CpuMask all = mask_of({0, 1, 2, 3});
  Simulation run(shape(1, 1, 2, 2), without_costs(GetParam()), {group_on(all)}, {},
                 {{.group = 0, .threads = 2}}, 1);
  run.run(kSecond);
  EXPECT_NE(run.kernel().running(0) < 0, run.kernel().running(1) < 0);
  EXPECT_NE(run.kernel().running(2) < 0, run.kernel().running(3) < 0);
}

TEST_P(EachVersion, ProgressFollowsTheSpeedBesideTheSibling) {
  const auto speed = [](int, int, int sibling) { return sibling < 0 ? 1.0 : 0.6; };
  Simulation run(shape(1, 1, 1, 2), without_costs(GetParam()),
                 {group_on(mask_of({0})), group_on(mask_of({1}))}, {service_of(0.3, 1)},
                 {{.group = 1, .threads = 1}}, 1, speed);
  run.run(300 * kSecond);
  // The service works 0.3 of the time, at 0.6 of its speed beside the other.
  EXPECT_NEAR(run.kernel().used(0).work_s, 90, 3);
  EXPECT_NEAR(run.kernel().used(0).cpu_s, 150, 5);
  EXPECT_NEAR(run.kernel().used(1).work_s, 150 + 0.6 * 150, 5);
}

TEST_P(EachVersion, TheSameSeedGivesTheSameFigures) {
  const auto times = [](std::uint64_t seed) {
    const CpuMask all = mask_of({0, 1, 2, 3});
    Simulation run(shape(1, 2, 1, 2), {.version = GetParam()}, {group_on(all), group_on(all)},
                   {service_of(1, 4)}, {{.group = 1, .threads = 3, .run_s = 0.02, .pause_s = 0.01}}, seed);
    run.run(20 * kSecond);
    return run.answers(0).times_s;
  };
  EXPECT_EQ(times(7), times(7));
  EXPECT_NE(times(7), times(8));
}

TEST(Loads, WorkHasItsMeanAndItsSpread) {
  ServiceLoad load = service_of(0.1, 50);
  load.work = ServiceLoad::Work::lognormal;
  load.spread = 2;
  Simulation run(shape(1, 1, 8, 1), without_costs(Version::eevdf),
                 {group_on(CpuMask().set() >> (kMostCpus - 8))}, {load}, {}, 4);
  run.run(3'000 * kSecond);
  const auto& times_s = run.answers(0).times_s;
  EXPECT_NEAR(mean(times_s), 1e-3, 0.03e-3);
  double squares = 0;
  for (const double time_s : times_s) squares += (time_s - 1e-3) * (time_s - 1e-3);
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(times_s.size())), 2e-3, 0.3e-3);
}

TEST(Loads, ARequestWaitsForNoThreadThatHasNoVcpu) {
  // Each of four threads is woken beside a batch of the same priority, but one that runs takes the next
  // request.
  const auto mean_s = [](int threads) {
    Simulation run(shape(1, 1, 1, 1), without_costs(Version::eevdf),
                   {group_on(mask_of({0})), group_on(mask_of({0}))}, {service_of(0.2, threads)},
                   {{.group = 1, .threads = 1}}, 4);
    run.run(300 * kSecond);
    return mean(run.answers(0).times_s);
  };
  EXPECT_LT(mean_s(4), 1.1 * mean_s(1));
}

TEST(Loads, AThreadThatBringsRequestsDelaysThem) {
  ServiceLoad load = service_of(0.1, 4);
  const auto mean_s = [&] {
    Simulation run(shape(1, 1, 2, 1), without_costs(Version::eevdf), {group_on(mask_of({0, 1}))}, {load}, {},
                   4);
    run.run(300 * kSecond);
    EXPECT_GT(run.answers(0).times_s.size(), 25'000);
    return mean(run.answers(0).times_s);
  };
  const double without_s = mean_s();
  load.bringer = 0;
  load.bringing = 100 * kMicrosecond;
  EXPECT_NEAR(mean_s() - without_s, 100e-6, 40e-6);
}

TEST(Loads, BurstsComeTogetherAndLeaveTheUse) {
  ServiceLoad load = service_of(0.4, 1);
  load.burst = 5;
  Simulation run(shape(1, 1, 1, 1), without_costs(Version::eevdf), {group_on(mask_of({0}))}, {load}, {}, 4);
  run.run(600 * kSecond);
  EXPECT_NEAR(run.kernel().used(0).cpu_s, 240, 10);
  Simulation steady(shape(1, 1, 1, 1), without_costs(Version::eevdf), {group_on(mask_of({0}))},
                    {service_of(0.4, 1)}, {}, 4);
  steady.run(600 * kSecond);
  EXPECT_GT(quantile(run.answers(0).times_s, 0.99), 2 * quantile(steady.answers(0).times_s, 0.99));
}

TEST(Loads, ABatchWithPausesRunsItsShare) {
  Simulation run(shape(1, 1, 2, 1), without_costs(Version::eevdf), {group_on(mask_of({0, 1}))}, {},
                 {{.group = 0, .threads = 2, .run_s = 0.03, .pause_s = 0.01}}, 4);
  run.run(300 * kSecond);
  EXPECT_NEAR(run.kernel().used(0).cpu_s / 300, 1.5, 0.05);
}

TEST(Quantile, IsTheLeastValueThatCoversTheShare) {
  EXPECT_EQ(quantile({}, 0.99), 0);
  EXPECT_EQ(quantile({3, 1, 2}, 0.5), 2);
  EXPECT_EQ(quantile({3, 1, 2}, 0.99), 3);
  EXPECT_EQ(quantile({5}, 0), 5);
}

// One fast core and two slow ones.
std::vector<CpuPlace> hybrid() {
  auto places = shape(1, 1, 3, 1);
  places[1].capacity = places[2].capacity = 0.5;
  return places;
}

TEST_P(EachVersion, OnAHybridProcessorAThreadWithoutEndMovesToTheFastCore) {
  Simulation run(hybrid(), without_costs(GetParam()), {group_on(mask_of({0, 1, 2})), group_on(mask_of({0}))},
                 {}, {{.group = 0, .threads = 1}, {.group = 1, .threads = 1, .run_s = 1e-3, .pause_s = 1e9}},
                 1);
  run.run(kSecond);
  const double before_s = run.kernel().used(0).work_s;
  run.run(kSecond);
  EXPECT_NEAR(run.kernel().used(0).work_s - before_s, 1, 0.01);
}

TEST_P(EachVersion, OnAHybridProcessorASlowCoreDoesSoMuchLess) {
  Simulation run(hybrid(), without_costs(GetParam()), {group_on(mask_of({1}))}, {},
                 {{.group = 0, .threads = 1}}, 1);
  run.run(kSecond);
  EXPECT_NEAR(run.kernel().used(0).cpu_s, 1, 0.01);
  EXPECT_NEAR(run.kernel().used(0).work_s, 0.5, 0.01);
}

TEST_P(EachVersion, OnAHybridProcessorAThreadThatFitsStaysOnASlowCore) {
  // It sleeps most of the time, so its use is small. It has run on the slow core before.
  Simulation run(hybrid(), without_costs(GetParam()), {group_on(mask_of({1}))}, {service_of(0.05, 1)}, {}, 1);
  run.run(kSecond);
  run.kernel().set_group(0, group_on(mask_of({0, 1, 2})));
  const double cpu_s = run.kernel().used(0).cpu_s;
  const double work_s = run.kernel().used(0).work_s;
  run.run(10 * kSecond);
  EXPECT_NEAR((run.kernel().used(0).work_s - work_s) / (run.kernel().used(0).cpu_s - cpu_s), 0.5, 0.01);
}

TEST_P(EachVersion, OnAHybridProcessorABusyThreadWakesUpOnTheFastCore) {
  Simulation run(hybrid(), without_costs(GetParam()), {group_on(mask_of({0, 1, 2}))}, {service_of(0.7, 1)},
                 {}, 1);
  run.run(10 * kSecond);
  EXPECT_GT(run.kernel().used(0).work_s, 0.8 * run.kernel().used(0).cpu_s);
}

TEST_P(EachVersion, OnAHybridProcessorABusyFastCoreKeepsMoreThreads) {
  auto places = shape(1, 1, 2, 1);
  places[1].capacity = 0.5;
  const Group group = group_on(mask_of({0, 1}));
  Simulation run(places, without_costs(GetParam()), {group, group, group}, {},
                 {{.group = 0, .threads = 1}, {.group = 1, .threads = 1}, {.group = 2, .threads = 1}}, 1);
  run.run(10 * kSecond);
  std::vector<double> cpu_s;
  for (int i = 0; i < 3; ++i) cpu_s.push_back(run.kernel().used(i).cpu_s);
  // The one on the slow core has it for itself.
  EXPECT_NEAR(*std::max_element(cpu_s.begin(), cpu_s.end()), 10, 0.5);
}

TEST_P(EachVersion, EachDispatchIsOneWait) {
  Simulation run(shape(1, 1, 2, 1), without_costs(GetParam()),
                 {group_on(mask_of({0})), group_on(mask_of({1}))}, {service_of(0.3, 1)},
                 {{.group = 1, .threads = 2}}, 1);
  run.run(10 * kSecond);
  const Used& alone = run.kernel().used(0);
  EXPECT_EQ(alone.delay[0], alone.switches);
  const Used& crowded = run.kernel().used(1);
  EXPECT_EQ(std::accumulate(crowded.delay.begin(), crowded.delay.end(), std::uint64_t{0}), crowded.switches);
  const double mean_us = 1e6 * crowded.wait_s / static_cast<double>(crowded.switches);
  const double median_us = model::delay_quantile_us({}, crowded.delay, 0.5).value();
  EXPECT_GT(median_us, mean_us / 2);
  EXPECT_LT(median_us, mean_us * 2);
}

}  // namespace
}  // namespace berth::judge
