// SPDX-License-Identifier: Apache-2.0
// Who gets how much of one resource, and from whom (docs/algorithms.md, decision [HUST]). Nothing here knows
// what the resource is; amounts are cores or bytes.
#pragma once

#include <string>
#include <vector>

namespace berth::policies {

struct Claim {
  std::string id;
  double deadline = 0;
  double extension = 0;
  double least = 0;    // a smaller part of it is of no use
  bool whole = false;  // only whole cores are
};

// A best-effort task that something may be taken from.
struct Source {
  std::string id;
  int priority = 0;
  double use = 0;           // mean over the window
  double reclaimable = 0;   // R_r
  double reclaim_most = 0;  // what of that may go without falling below the least limit
  double preempt_most = 0;  // what may go in all, down to the floor
};

struct Taken {
  std::size_t source = 0;  // index
  double amount = 0;
  bool preempted = false;  // else reclaimed
};

struct Division {
  double needed = 0;           // R_ne
  std::vector<Taken> taken;    // in the order of deciding; no source twice
  std::vector<double> grants;  // by claim
  double left = 0;             // of what was idle or taken, for the pending requests
};

// Grants the claims out of `idle` where that covers them and the `pending` requests; otherwise takes what is
// missing, and no more: reclaims from the redundant, largest R_r first, then preempts, lowest priority first
// and of these the one using least. Claims are served by deadline, before the pending requests. Ties by id.
Division divide(double idle, double pending, const std::vector<Claim>& claims,
                const std::vector<Source>& sources);

}  // namespace berth::policies
