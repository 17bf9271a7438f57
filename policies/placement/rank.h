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
// stood for it. Who fits nowhere takes nothing; GPUs that one was told are nobody else's.
std::map<std::string, model::BinRanking> take_best(Host& host,
                                                   const std::vector<model::PendingWorkload>& pending);

// As take_best(), of those who were let in: who finds no place at present keeps what he was promised.
void take_promised(Host& host, const std::vector<model::PendingWorkload>& awaited);

struct PlacementProposal {
  model::PlacementFindings findings;
  PendingBins bins;  // of everybody pending
};

// Places what is pending on the snapshot's host (docs/algorithms.md, placement). Pure.
PlacementProposal propose_places(const model::Snapshot& snapshot, const PolicySettings& settings);

}  // namespace berth::policies
