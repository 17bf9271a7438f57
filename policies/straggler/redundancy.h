// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policies/share.h"

#include <optional>

namespace berth::policies {

// Whether a best-effort task leaves a part of its share unused (docs/decisions/lending.md, redundancy
// [HUST]).
struct Redundancy {
  double utilisation = 0;  // U_c: largest use in the window / allocation
  double reclaimable = 0;  // R_r: cores or bytes; 0 where it is not redundant
};
// nullopt where the allocation or the use is not known.
std::optional<Redundancy> redundancy_of(const Share& share, model::Resource resource,
                                        double expected_utilisation);

// Whether a task wants its lent share back: its quota keeps it from running, or its last use comes near
// its limit.
bool presses(const model::Workload& workload, const Share& share, model::Resource resource);

}  // namespace berth::policies
