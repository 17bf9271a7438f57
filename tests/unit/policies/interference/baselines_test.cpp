// SPDX-License-Identifier: Apache-2.0
// The baselines of tests/bench/placement, and the day that they play.
#include "tests/unit/policies/interference/ground_truth/baselines.h"

#include "tests/unit/policies/interference/ground_truth/day.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace berth::policies::testing {

namespace {

// vCPU c and vCPU c + 16 are on core c. Cores 0-3, 4-7, 8-11 and 12-15 have a cache each, two a socket.
const HostShape kShape{.sockets = 2, .llcs_per_socket = 2, .cores_per_llc = 4, .threads_per_core = 2};

model::CpuSet all() { return cpus("0-31"); }

bool has_whole_cores(const model::Topology& topology, const model::CpuSet& taken) {
  for (const int cpu : taken) {
    if (!topology.core_threads(cpu).is_subset_of(taken)) return false;
  }
  return true;
}

TEST(Packed, FillsCoresOneAfterTheOther) {
  const model::Topology topology = host(kShape);
  EXPECT_EQ(take_packed(topology, all(), 2), cpus("0,16"));
  EXPECT_EQ(take_packed(topology, all() - cpus("0,16"), 4), cpus("1-2,17-18"));
  EXPECT_EQ(take_packed(topology, all() - cpus("0,16"), 3), cpus("1-2,17-18"));
}

TEST(Packed, PrefersTheFullerSocketAndContinuesInTheOther) {
  const model::Topology topology = host(kShape);
  const model::CpuSet free = all() - cpus("8-13,24-29");
  EXPECT_EQ(take_packed(topology, free, 4), cpus("14-15,30-31"));
  EXPECT_EQ(take_packed(topology, free, 6), cpus("0,14-15,16,30-31"));
}

TEST(Packed, RefusesWhatFitsOnlyOnHalfCores) {
  const model::Topology topology = host(kShape);
  EXPECT_EQ(take_packed(topology, cpus("0-15"), 1), cpus(""));
  EXPECT_EQ(take_packed(topology, cpus("0-15,16"), 2), cpus("0,16"));
  EXPECT_EQ(take_packed(topology, cpus("0-15,16"), 3), cpus(""));
}

TEST(Packed, NeverSplitsACore) {
  const model::Topology topology = host(kShape);
  Draws draws(1);
  for (int round = 0; round < 2000; ++round) {
    model::CpuSet free;
    for (const int cpu : all()) {
      if (draws.chance(0.7)) free.insert(cpu);
    }
    const int vcpus = draws.number(1, 8);
    const model::CpuSet taken = take_packed(topology, free, vcpus);
    ASSERT_TRUE(taken.is_subset_of(free));
    ASSERT_TRUE(has_whole_cores(topology, taken));
    if (taken.empty()) continue;
    ASSERT_EQ(taken.size(), static_cast<std::size_t>(vcpus + vcpus % 2));
  }
}

TEST(Spread, TakesTheEmptiestCacheAndItsIdleCores) {
  const model::Topology topology = host(kShape);
  EXPECT_EQ(take_spread(topology, all(), 2), cpus("0-1"));
  EXPECT_EQ(take_spread(topology, all() - cpus("0-1"), 2), cpus("4-5"));
  // Caches 0 to 2 have lost three vCPUs each, the last one two.
  const model::CpuSet free = all() - cpus("0-2,4-6,8-10,12-13");
  EXPECT_EQ(take_spread(topology, free, 2), cpus("14-15"));
  EXPECT_EQ(take_spread(topology, free, 3), cpus("14-15,28"));
}

TEST(Spread, TakesTheRestFromTheNextCache) {
  const model::Topology topology = host(kShape);
  EXPECT_EQ(take_spread(topology, all(), 10), cpus("0-3,16-19") | cpus("4-5"));
  EXPECT_EQ(take_spread(topology, cpus("3,9"), 3), cpus(""));
}

TEST(Random, StaysInOneCacheWhereOneHasEnough) {
  const model::Topology topology = host(kShape);
  const auto& caches = topology.domains(model::DomainKind::llc);
  Draws draws(2);
  std::set<std::string> seen;
  for (int round = 0; round < 200; ++round) {
    const model::CpuSet taken = take_random(topology, all() - cpus("0-2"), 6, draws);
    ASSERT_EQ(taken.size(), 6U);
    ASSERT_FALSE(taken.intersects(cpus("0-2")));
    int in = 0;
    for (const model::Domain& cache : caches) in += taken.is_subset_of(cache.cpus) ? 1 : 0;
    ASSERT_EQ(in, 1);
    ASSERT_FALSE(taken.intersects(caches[0].cpus));  // which has five
    seen.insert(taken.to_string());
  }
  EXPECT_GT(seen.size(), 50U);
  EXPECT_EQ(take_random(topology, cpus("3,9"), 2, draws), cpus("3,9"));
  EXPECT_EQ(take_random(topology, cpus("3,9"), 3, draws), cpus(""));
}

// A small host and what runs on it.
class Floating : public ::testing::Test {
 protected:
  Mix mix() const {
    Mix mix;
    for (const auto& [service, vcpus] : std::vector<std::pair<int, int>>{{0, 2}, {1, 1}, {0, 2}, {2, 4}}) {
      Mix::Instance instance;
      instance.id = fmt::format("web-{}", mix.instances.size());
      instance.service = static_cast<std::size_t>(service);
      instance.vcpus = vcpus;
      mix.instances.push_back(instance);
    }
    mix.batch_threads = {1.5, 0.5, 3};
    return mix;
  }
  // Of one socket.
  World world(int llcs) const {
    return make_world({.shape = {.sockets = 1, .llcs_per_socket = llcs, .cores_per_llc = 8 / llcs},
                       .llc_mib = 8,
                       .alike = false,
                       .services = 4,
                       .seed = 5});
  }
};

// The short way, by one core for each part, against all vCPUs of the host.
TEST_F(Floating, OneCoreStandsForItsPart) {
  const World it = world(2);
  const std::vector<Figures> short_way = truth_of_floating(it, mix(), Roams::host, {0, 0, 0, 0}, {}, 0.3);
  const std::vector<Figures> long_way = truth_of(it, mix(), {}, 0.3);
  ASSERT_EQ(short_way.size(), long_way.size());
  for (std::size_t i = 0; i < short_way.size(); ++i) {
    EXPECT_NEAR(short_way[i].cpi, long_way[i].cpi, 0.001 * long_way[i].cpi) << i;
    EXPECT_NEAR(short_way[i].cores, long_way[i].cores, 0.001 * long_way[i].cores) << i;
    EXPECT_NEAR(short_way[i].instructions, long_way[i].instructions, 0.001 * long_way[i].instructions) << i;
    EXPECT_NEAR(short_way[i].misses, long_way[i].misses, 0.001 * long_way[i].misses) << i;
  }
}

TEST_F(Floating, EachPartHasItsOwnInstances) {
  const World it = world(2);
  const std::vector<Figures> short_way = truth_of_floating(it, mix(), Roams::llc, {0, 1, 1, 0}, {}, 0.3);
  Places places;
  for (const auto& [id, in] :
       std::map<std::string, int>{{"web-0", 0}, {"web-1", 1}, {"web-2", 1}, {"web-3", 0}})
    places[id] = it.topology.domains(model::DomainKind::llc)[static_cast<std::size_t>(in)].cpus;
  // Batch work is in both parts alike: the long way would move it to the emptier one.
  Mix without = mix();
  without.batch_threads = {0, 0, 0};
  const std::vector<Figures> alone_short = truth_of_floating(it, without, Roams::llc, {0, 1, 1, 0}, {}, 0.3);
  const std::vector<Figures> alone_long = truth_of(it, without, places, 0.3);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(alone_short[i].cpi, alone_long[i].cpi, 0.001 * alone_long[i].cpi) << i;
    EXPECT_GT(short_way[i].cpi, alone_short[i].cpi) << i;
  }
}

// Two threads on eight cores: this kernel keeps them apart, and does nothing else.
TEST_F(Floating, IdleCoreFirstSharesNoCoreBeforeItMust) {
  const World it = world(1);
  Mix two;
  two.batch_threads = {2, 0, 0};
  const double apart = truth_of(it, two, {{"batch-0", cpus("0-1")}}, 0)[0].instructions;
  const auto floating = [&](double threads, const Kernel& kernel) {
    Mix some = two;
    some.batch_threads[0] = threads;
    return truth_of_floating(it, some, Roams::host, {}, kernel, 0)[0].instructions;
  };
  const Kernel idle_first{.searched_vcpus = 16};
  EXPECT_NEAR(floating(2, idle_first), apart, 0.02 * apart);
  EXPECT_LT(floating(2, {}), 0.99 * floating(2, idle_first));
  // When every vCPU is busy, no kernel can help.
  EXPECT_NEAR(floating(16, idle_first), floating(16, {}), 1e-6 * floating(16, {}));
}

class ADay : public ::testing::Test {
 protected:
  World world_ = make_world({.shape = kShape, .llc_mib = 8, .alike = false, .services = 4, .seed = 7});
};

TEST_F(ADay, ComesAndGoesAtTheLoadThatIsAskedFor) {
  const Day day = draw_day(world_, {.least = 0.3, .most = 0.95, .stay_h = 4, .seed = 1});
  ASSERT_EQ(day.hours.size(), 25U);
  std::map<std::string, int> running;
  int gone = 0;
  int owned = 0;
  double time = 0;
  std::vector<int> loads;
  for (const Day::Hour& hour : day.hours) {
    for (const Day::Change& change : hour.changes) {
      EXPECT_GE(change.time_s, time);
      time = change.time_s;
      if (change.leaves) {
        ASSERT_EQ(running.erase(change.instance.id), 1U);
        owned -= change.instance.vcpus;
        ++gone;
      } else {
        ASSERT_TRUE(running.emplace(change.instance.id, change.instance.vcpus).second);
        owned += change.instance.vcpus;
      }
      EXPECT_LT(owned, 32);
    }
    EXPECT_EQ(hour.mix.instances.size(), running.size());
    loads.push_back(owned);
  }
  EXPECT_GT(gone, 20);
  EXPECT_NEAR(loads[1], 0.3 * 32, 2);
  EXPECT_NEAR(loads[13], 0.95 * 32, 2);
}

TEST_F(ADay, EveryBaselineServesTheLoad) {
  const Day day = draw_day(world_, {.least = 0.6, .most = 0.6, .seed = 2});
  Judge judge(world_);
  std::map<Baseline, Score> scores;
  for (const Baseline baseline : kBaselines) {
    const auto method = make_method(world_, baseline, 1);
    const Score score = judge.play(day, *method);
    scores[baseline] = score;
    EXPECT_GT(score.slowdown, 0) << to_string(baseline);
    EXPECT_GT(score.batch, 0.2) << to_string(baseline);
    EXPECT_LT(score.undone, 0.02) << to_string(baseline);
    EXPECT_EQ(score.moves, 0) << to_string(baseline);
    // Whole cores alone may leave an instance without any.
    if (baseline == Baseline::packed) continue;
    EXPECT_EQ(score.unplaced, 0) << to_string(baseline);
  }
  EXPECT_LT(scores[Baseline::idle_core_first].slowdown, scores[Baseline::all_on_all].slowdown);
}

TEST_F(ADay, BerthPlacesTheDayAndTheSameSeedGivesTheSameFigures) {
  const Day day = draw_day(world_, {.least = 0.6, .most = 0.6, .seed = 3});
  Judge judge(world_);
  const auto play = [&](Search search) {
    InterferenceSettings settings;
    settings.search = search;
    return judge.play(day, *make_method(world_, settings, {}, 1));
  };
  const Score window = play(Search::window);
  const Score optimal = play(Search::optimal);
  EXPECT_EQ(window.moves, 0);
  EXPECT_GT(optimal.moves, 0);
  EXPECT_EQ(window.unplaced, 0);
  EXPECT_LT(optimal.extra_cores, window.extra_cores);
  EXPECT_EQ(optimal.extra_cores, play(Search::optimal).extra_cores);
}

TEST_F(ADay, PackedSharesTheRestWhereCoresAreMissing) {
  const Day day = draw_day(world_, {.least = 0.95, .most = 0.95, .seed = 4});
  Judge judge(world_);
  const Score packed = judge.play(day, *make_method(world_, Baseline::packed, 1));
  EXPECT_GT(packed.unplaced, 0.02);
  EXPECT_GT(packed.undone, 0);
}

}  // namespace

}  // namespace berth::policies::testing
