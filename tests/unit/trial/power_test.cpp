// SPDX-License-Identifier: Apache-2.0
// Whole trials in simulated time: what they find, and how often they find what is not there.
#include "simulated_host.h"

#include <algorithm>
#include <iostream>

#include <gtest/gtest.h>

namespace berth::trial {
namespace {

using test::SimulatedHost;

Result trial_of(std::uint64_t seed, double effect, double length_s) {
  SimulatedHost host(1000 + seed, effect);
  const Measured measured = run(host, *make_pace(length_s, 0, 1), seed);
  return evaluate(measured, seed);
}

// The part of so many trials that showed the effect on the waits of the host, the right way round.
double found(int trials, double effect, double length_s) {
  int shown = 0;
  for (int i = 0; i < trials; ++i)
    shown +=
        better_side(trial_of(static_cast<std::uint64_t>(i), effect, length_s), Figure::runq_p99) == Side::a;
  return static_cast<double>(shown) / trials;
}

TEST(TrialPower, AmongAHundredTrialsOfEqualSettingsAtMostFiveShowADifference) {
  for (const double length_s : {3600.0, 600.0}) {
    int shown = 0;
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      const Result result = trial_of(seed, 0, length_s);
      EXPECT_GE(result.rows.size(), 10U);
      shown +=
          std::any_of(result.rows.begin(), result.rows.end(), [](const Row& it) { return it.change.shown; });
    }
    std::cout << "equal settings, " << length_s << " s: " << shown << " of 100 trials show a difference\n";
    EXPECT_LE(shown, 5) << length_s;
  }
}

TEST(TrialPower, ALargeDifferenceIsFoundNearlyAlways) {
  constexpr int kTrials = 40;
  for (const double length_s : {3600.0, 600.0}) {
    for (const double effect : {0.05, 0.10, 0.30}) {
      const double share = found(kTrials, effect, length_s);
      std::cout << effect * 100 << " % more waits, " << length_s << " s: found in " << share * 100 << " %\n";
      if (effect > 0.2) {
        EXPECT_GE(share, 0.95);
      }
    }
  }
}

}  // namespace
}  // namespace berth::trial
