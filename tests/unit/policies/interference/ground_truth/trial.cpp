// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/policies/interference/ground_truth/trial.h"

#include <algorithm>

#include <fmt/core.h>

namespace berth::policies::testing {

namespace {

void add(Interference& sum, const Interference& one, int count) {
  sum.extra_cores += one.extra_cores / count;
  sum.slowdown += one.slowdown / count;
  sum.worst = std::max(sum.worst, one.worst);
}

}  // namespace

Trial run_trial(const TrialSettings& settings) {
  const World world = make_world({.shape = settings.shape,
                                  .llc_mib = settings.llc_mib,
                                  .alike = settings.alike,
                                  .services = 8,
                                  .seed = settings.seed});
  const Training training(world, settings.lesson, 1000 + settings.seed);
  Trial trial;
  trial.services = static_cast<int>(world.services.size());
  trial.accepted = training.accepted();
  trial.bounded = training.bounded();
  trial.changes = training.changes();
  Draws draws(2000 + settings.seed);
  for (int i = 0; i < settings.mixes; ++i) {
    const Mix mix = draw_mix(world, draws, fmt::format("new-{:04}", i));
    const auto measure = [&](const model::Snapshot& placed) { return interference_of(world, mix, placed); };
    for (const Search search : {Search::window, Search::optimal}) {
      Trial::Way& way = trial.by_search[search == Search::window ? 0 : 1];
      InterferenceSettings by = settings.lesson.settings;
      by.search = search;
      add(way.constants, measure(place(world, mix, {}, by)), settings.mixes);
      add(way.learned, measure(place(world, mix, training.services(), by)), settings.mixes);
    }
    add(trial.random, measure(place_at_random(world, mix, draws)), settings.mixes);
  }
  return trial;
}

}  // namespace berth::policies::testing
