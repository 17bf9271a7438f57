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
// All pins that were tried; the caller chooses. The search begins with the same number everywhere, in steps
// of two vCPUs, or of four in domains of more than eight on a host of several. A violation then has a price,
// one of a few. From the best pins by that price, the search changes one number by one step, while that is
// better.
std::vector<FixedPins> try_fixed_pins(const Host& host, const Alone& alone, const Rules& rules, Time length,
                                      std::uint64_t seed);

}  // namespace berth::judge
