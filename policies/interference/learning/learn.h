// SPDX-License-Identifier: Apache-2.0
// Learning as a function from sums and observations to sums (docs/decisions/learning.md).
#pragma once

#include "model/learning.h"
#include "policies/interference/learning/fit.h"

#include <optional>
#include <string>
#include <vector>

namespace berth::policies {

// An observation that was not learned, and the reason.
struct SetAside {
  std::string instance;
  std::string why;
};

struct Learned {
  model::LearnedSums sums;
  std::vector<SetAside> set_aside;
  // Why everything older was forgotten, in words; nullopt where nothing was.
  std::optional<std::string> changed;
};

// Learns one tick: `tick` has all observations of one service by one response at one time. Each is predicted
// before any is learned. `prior` may be null. Of the response `cpu`, a tick with one instance teaches
// nothing.
Learned learn(const model::ProfileKey& key, const model::LearnedSums& sums, const model::LearnedSums* prior,
              const std::vector<model::Observation>& tick, const LearningSettings& settings);

// The result of many observations.
struct LearnedAll {
  model::Profiles profiles;  // of services that taught anything
  std::size_t learned = 0;
  // At most 100: of those set aside, of changes of a service, and of services that taught nothing.
  std::vector<std::string> messages;
};
// Learns observations in any order, oldest first.
LearnedAll learn_all(std::vector<model::Observation> observations, const LearningSettings& settings);

}  // namespace berth::policies
