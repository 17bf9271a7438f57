// SPDX-License-Identifier: Apache-2.0
// The simulated machine, and whether learned models place better on it than the constants do. It is the small
// form of tests/bench/interference.
#include "tests/unit/policies/interference/ground_truth/machine.h"
#include "tests/unit/policies/interference/ground_truth/trial.h"

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace berth::policies::testing {

namespace {

// Two sockets, each with two last-level caches of two cores.
class Machine : public ::testing::Test {
 protected:
  static constexpr double kEndless = 1e18;

  Running busy(int cpu, const Software& software) const {
    return {.software = software, .where = {cpu}, .load = kEndless, .threads = 0};
  }
  Software compute() const {
    return {.core_cpi = 0.4,
            .reuse = 0.0001,
            .alpha = 0.5,
            .working_set_mib = 0.5,
            .compulsory = 0.00001,
            .overlap = 2};
  }
  Software hungry() const {
    return {.core_cpi = 0.6,
            .reuse = 0.02,
            .alpha = 0.5,
            .working_set_mib = 24,
            .compulsory = 0.0005,
            .overlap = 2};
  }
  std::vector<Figures> run(const std::vector<Running>& running) const {
    return steady_state(hardware_, topology_, running);
  }
  double cpi_beside(const Software& software, const std::vector<Running>& others) const {
    std::vector<Running> all{busy(0, software)};
    all.insert(all.end(), others.begin(), others.end());
    return run(all)[0].cpi;
  }

  Hardware hardware_;
  model::Topology topology_ =
      host({.sockets = 2, .llcs_per_socket = 2, .cores_per_llc = 2, .threads_per_core = 2});
};

TEST_F(Machine, CyclesOfAnInstructionAddUp) {
  const Software it = hungry();
  const auto figures = run({busy(0, it)})[0];
  const double rho = figures.misses * hardware_.line_bytes / hardware_.memory_bytes_s;
  const double memory = hardware_.memory_cycles * (1 + hardware_.queueing * rho / (1 - rho));
  // The only one has the whole cache.
  const double expected =
      0.6 + (it.misses_per_instruction(1) * 40 + it.misses_per_instruction(16) * memory) / 2;
  EXPECT_NEAR(figures.cpi, expected, 1e-3);
  EXPECT_DOUBLE_EQ(figures.cores, 1);
  EXPECT_NEAR(figures.instructions, 3e9 / expected, 1e7);
}

TEST_F(Machine, MissesFallWithTheCacheDownToTheCompulsoryOnes) {
  const Software it = hungry();
  EXPECT_NEAR(it.misses_per_instruction(1) - it.misses_per_instruction(4), 0.02 * (1 - 0.5), 1e-12);
  EXPECT_DOUBLE_EQ(it.misses_per_instruction(24), 0.0005);
  EXPECT_DOUBLE_EQ(it.misses_per_instruction(100), 0.0005);
}

TEST_F(Machine, ASiblingTakesIssueSlotsAndTheEffectSaturates) {
  const double alone = cpi_beside(compute(), {});
  const auto beside = [&](double share) {
    Running sibling = busy(8, compute());
    sibling.load = share * 3e9 / alone;
    return cpi_beside(compute(), {sibling}) / alone - 1;
  };
  // Both want 1 / (4 * 0.4) of the slots: together 1 - 0.375^2 of them.
  EXPECT_NEAR(beside(1e9), 1.25 / (1 - 0.375 * 0.375) - 1, 0.01);
  EXPECT_GT(beside(0.5), 0.15);
  // The load keeps the sibling busy for longer than its own speed alone would need.
  EXPECT_GT(beside(0.5), 0.5 * beside(1e9));
  EXPECT_NEAR(beside(2), beside(1e9), 1e-9);
}

TEST_F(Machine, NeighboursOfACacheTakeLinesAsTheyMiss) {
  const double alone = cpi_beside(hungry(), {});
  const double one = cpi_beside(hungry(), {busy(1, hungry())}) / alone - 1;
  EXPECT_GT(one, 0.1);
  // Another core's work that hardly misses takes almost nothing.
  EXPECT_LT(cpi_beside(hungry(), {busy(1, compute())}) / alone - 1, 0.02);
  EXPECT_LT(cpi_beside(compute(), {busy(1, hungry())}) / cpi_beside(compute(), {}) - 1, 0.01);
}

TEST_F(Machine, MemoryIsSharedByASocketAndNotByTwo) {
  hardware_.memory_bytes_s = 6e8;
  const double alone = cpi_beside(hungry(), {});
  // vCPU 2 has the socket's other cache, vCPU 4 is on the other socket.
  EXPECT_GT(cpi_beside(hungry(), {busy(2, hungry())}), alone * 1.05);
  EXPECT_NEAR(cpi_beside(hungry(), {busy(4, hungry())}), alone, 1e-6);
}

TEST_F(Machine, EndlessWorkSharesItsVcpusEvenly) {
  const Running half{.software = compute(), .where = {0, 1, 2, 3}, .load = std::nullopt, .threads = 2};
  EXPECT_NEAR(run({half})[0].cores, 2, 1e-9);
  const Running much{.software = compute(), .where = {0, 1, 2, 3}, .load = std::nullopt, .threads = 6};
  const auto both = run({half, much});
  EXPECT_NEAR(both[0].cores, 1, 1e-9);
  EXPECT_NEAR(both[1].cores, 3, 1e-9);
}

constexpr int kSeeds = 4;
constexpr HostShape kHost{.sockets = 1, .llcs_per_socket = 4, .cores_per_llc = 8, .threads_per_core = 2};

// Of all seeds together.
double ratio(bool alike) {
  double learned = 0;
  double constants = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Trial trial = run_trial(
        {.shape = kHost, .llc_mib = 32, .alike = alike, .lesson = {.mixes = 40}, .mixes = 4, .seed = seed});
    EXPECT_GT(trial.accepted + trial.bounded, trial.services / 2);
    learned += trial.by_search[1].learned.extra_cores;
    constants += trial.by_search[1].constants.extra_cores;
  }
  fmt::print("services {}: interference by learned models is {:.3f} of that by constants\n",
             alike ? "alike" : "differ", learned / constants);
  return learned / constants;
}

TEST(GroundTruth, LearnedModelsPlaceBetterWhereServicesDiffer) { EXPECT_LE(ratio(false), 0.8); }

TEST(GroundTruth, LearnedModelsPlaceNoWorseWhereServicesAreAlike) { EXPECT_LE(ratio(true), 1.02); }

// A model says something of its own service: those of others place worse.
TEST(GroundTruth, ModelsOfOtherServicesPlaceWorse) {
  double own = 0;
  double others = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const World world =
        make_world({.shape = kHost, .llc_mib = 32, .alike = false, .services = 8, .seed = seed});
    const Lesson lesson{.mixes = 40};
    const Training training(world, lesson, 1000 + seed);
    std::map<std::string, model::ServiceProfile> turned;
    for (std::size_t i = 0; i < world.services.size(); ++i) {
      const auto& from = world.services[(i + 1) % world.services.size()].name;
      turned[world.services[i].name] = training.services().at(from);
    }
    InterferenceSettings settings;
    settings.search = Search::optimal;
    Draws draws(seed);
    for (int i = 0; i < 4; ++i) {
      const Mix mix = draw_mix(world, draws, "new");
      own += interference_of(world, mix, place(world, mix, training.services(), settings)).extra_cores;
      others += interference_of(world, mix, place(world, mix, turned, settings)).extra_cores;
    }
  }
  fmt::print("models of other services: {:.3f} of the interference by their own\n", others / own);
  EXPECT_GT(others, 1.1 * own);
}

TEST(GroundTruth, TheSameSeedGivesTheSameFigures) {
  const TrialSettings settings{
      .shape = {.sockets = 1, .llcs_per_socket = 1, .cores_per_llc = 4, .threads_per_core = 2},
      .llc_mib = 8,
      .alike = false,
      .lesson = {.mixes = 20},
      .mixes = 2,
      .seed = 3};
  const Trial a = run_trial(settings);
  const Trial b = run_trial(settings);
  EXPECT_EQ(a.accepted, b.accepted);
  EXPECT_EQ(a.by_search[1].learned.extra_cores, b.by_search[1].learned.extra_cores);
}

}  // namespace

}  // namespace berth::policies::testing
