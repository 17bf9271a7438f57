// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/learning.h"

namespace berth::policies {

// Everything that adds up, times `factor`.
void scale(model::LearnedSums& sums, double factor);

// Adds the sums of other observations of the same service and response. The newer time counts. Of the rest,
// which does not add up, that of `into` stays.
void merge(model::LearnedSums& into, const model::LearnedSums& other);
// Of each service and response.
void merge(model::Profiles& into, const model::Profiles& others);

// Sums with the prior beside them, as far as it counts. It counts as at most ten times `min_samples`
// observations, so that the host's own outweigh it in time. `prior` may be null.
model::LearnedSums with_prior(const model::LearnedSums& own, const model::LearnedSums* prior,
                              int min_samples);

// nullptr where there is none.
inline const model::LearnedSums* find(const model::Profiles& profiles, const model::ProfileKey& key) {
  const auto found = profiles.find(key);
  return found == profiles.end() ? nullptr : &found->second;
}

}  // namespace berth::policies
