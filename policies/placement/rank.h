// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/placement_findings.h"
#include "policies/interference/policy.h"
#include "policies/placement/host.h"

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace berth::policies {

// Ranks every bin of every host for one request, best first. Bins that do not fit come with their lack
// (docs/decisions/placement.md). Pure.
model::BinRanking rank_bins(const model::PendingWorkload& request, std::span<const Host> hosts);

// The best bin of one host for a request, or the reason why none fits.
struct HostPlace {
  struct Best {
    std::array<double, 6> order{};  // of two hosts the lesser one is better; equal ones go by name
    std::size_t bin = 0;            // index
    model::CpuSet cpus;
    std::vector<std::size_t> gpus;  // indices into the bin's
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
