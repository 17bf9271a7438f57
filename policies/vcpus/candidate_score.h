// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policies/settings.h"
#include "policies/vcpus/occupancy.h"

#include <memory>
#include <vector>

namespace berth::policies {

// Scores nearer than this are a tie.
inline constexpr double kTie = 1e-9;

// Scores one tenant's candidates in one region: score_domain with the candidate placed, as evaluate() would
// give it. The cost depends on the candidate's size only. The constructor does the work that all candidates
// share; the occupancy must not change after it.
class CandidateScorer {
 public:
  CandidateScorer() = default;
  CandidateScorer(const CandidateScorer&) = delete;
  CandidateScorer& operator=(const CandidateScorer&) = delete;
  virtual ~CandidateScorer() = default;

  // `cpus`: positions, free and usable, exactly the tenant's number, all in the region.
  virtual double score(const std::vector<int>& cpus) = 0;
};

// `tenant` is not placed yet, and need not be one of the occupancy's; both must outlive the scorer.
std::unique_ptr<CandidateScorer> make_scorer(const Occupancy& occupancy, Weighting weighting,
                                             const BestEffortDemand& demand, const Tenant& tenant,
                                             int region);

}  // namespace berth::policies
