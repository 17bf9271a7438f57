// SPDX-License-Identifier: Apache-2.0
// Divides one resource among the claims, and chooses the sources to take from (docs/decisions/lending.md,
// taking [HUST]). The code is the same for both resources; amounts are cores or bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace berth::policies {

struct Claim {
  std::string id;
  double deadline = 0;
  double extension = 0;
  double least = 0;    // a smaller part is of no use
  bool whole = false;  // only whole cores are of use
};

// A best-effort task whose share may be taken.
struct Source {
  std::string_view id;
  int priority = 0;
  double use = 0;           // mean over the window
  double reclaimable = 0;   // R_r
  double reclaim_most = 0;  // the part of that above the least limit
  double preempt_most = 0;  // the most that may be taken in all, down to the floor
};

struct Taken {
  std::size_t source = 0;  // index
  double amount = 0;
  bool preempted = false;  // else lent
};

struct Division {
  double needed = 0;           // R_ne
  std::vector<Taken> taken;    // in the order of deciding; no source twice
  std::vector<double> grants;  // by claim
  double left = 0;             // of the idle and taken amount, for the pending requests
};

// Grants the claims out of `idle` where that covers them and the `pending` requests. Otherwise takes the
// missing part of what the claims can use, and no more. It reclaims from the redundant, largest R_r first.
// Then it preempts, lowest priority first and of these the one that can still give most. Claims are served by
// deadline, before the pending requests. Ties by id.
Division divide(double idle, double pending, const std::vector<Claim>& claims,
                const std::vector<Source>& sources);

}  // namespace berth::policies
