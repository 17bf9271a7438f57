// SPDX-License-Identifier: Apache-2.0
// The best fixed pins of the batch, known afterwards. Ways that choose such pins beforehand are compared with
// them.
#pragma once

#include "tests/judge/rows.h"

#include <cstdint>
#include <vector>

namespace berth::judge {

// Fixed pins of the batch, at idle priority, beside services in the homes that berth gives them.
struct FixedPins {
  // So many vCPUs of each domain, its last ones; by domain and, within it, by group of the batch. All 0: the
  // last vCPU of the host.
  std::vector<int> vcpus;
  Figures figures;
};
// Those that were tried, of which the caller chooses. First come the same numbers for all, in steps of two
// vCPUs, or of four in domains of more than eight on a host of several. From the best of these, for some
// prices of a violation, it goes on by one step of one number while that is better.
std::vector<FixedPins> try_fixed_pins(const Host& host, const Alone& alone, const Rules& rules, Time length,
                                      std::uint64_t seed);

}  // namespace berth::judge
