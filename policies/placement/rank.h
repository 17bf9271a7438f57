// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/placement_findings.h"
#include "policies/pins.h"
#include "policies/placement/host.h"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace berth::policies {

// Ranks every NUMA node of every host for one request, best first. On a host where no single node holds it,
// the best set of nodes is a bin too. Bins that do not fit come with their lack
// (docs/decisions/placement.md). Pure.
model::BinRanking rank_bins(const model::PendingWorkload& request, std::span<const Host> hosts);

// The best bin of one host for a request, or the reason why none fits.
struct HostPlace {
  struct Best {
    PlaceOrder order{};  // of two hosts the lesser one is better; equal ones go by name
    Spot spot;
  };
  std::optional<Best> best;
  std::string rejection;  // in words
};

// The host alone, so that hosts which did not change need not be ranked again. The hosts' best places in
// their order have the same order as in rank_bins(). Pure.
HostPlace best_place(const model::PendingWorkload& request, const Host& host);

// Gives each of `pending`, in this order, its best bin of the host. Returns by id the ranking of the bins. A
// workload that fits in no bin takes nothing; GPUs named in its admission still stay its own.
std::map<std::string, model::BinRanking> take_best(Host& host,
                                                   const std::vector<model::PendingWorkload>& pending);

// As take_best(), for admitted workloads: one without a place at present keeps its promised resources.
void take_promised(Host& host, const std::vector<model::PendingWorkload>& awaited);

struct PlacementProposal {
  model::PlacementFindings findings;
  PendingBins bins;  // of all pending workloads
};

// Places the pending workloads on the snapshot's host (docs/decisions/placement.md). Pure.
PlacementProposal propose_places(const model::Snapshot& snapshot, const PolicySettings& settings);

}  // namespace berth::policies
