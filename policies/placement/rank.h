// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/placement_findings.h"
#include "policies/interference/policy.h"
#include "policies/placement/host.h"

#include <map>
#include <span>
#include <string>
#include <vector>

namespace berth::policies {

// Every bin of every host for one request, best first, and those that do not fit with what they lack
// (docs/algorithms.md, placement). Pure.
model::BinRanking rank_bins(const model::PendingWorkload& request, std::span<const Host> hosts);

// Lets each of `pending`, in this order, have its best bin of the host, and takes it; by id, how the bins
// stood for it. Who fits nowhere takes nothing.
std::map<std::string, model::BinRanking> take_best(Host& host,
                                                   const std::vector<model::PendingWorkload>& pending);

struct PlacementProposal {
  model::PlacementFindings findings;
  PendingBins bins;  // of everybody pending
};

// Places what is pending on the snapshot's host (docs/algorithms.md, placement). Pure.
PlacementProposal propose_places(const model::Snapshot& snapshot, const PolicySettings& settings);

}  // namespace berth::policies
