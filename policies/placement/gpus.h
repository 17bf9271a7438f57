// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policies/placement/host.h"

#include <cstddef>
#include <string>
#include <vector>

namespace berth::policies {

// The GPUs of a bin that a request would get, as indices, ascending; fewer than it asks for where there are
// no more. The smallest that do are taken, and a request that shares GPUs takes those that are shared
// already first (docs/algorithms.md, placement).
std::vector<std::size_t> choose_gpus(const Bin& bin, const model::PendingWorkload& request);

// What keeps the request from the GPUs that it does not get, in words.
std::string describe_missing_gpus(const Bin& bin, const model::PendingWorkload& request);

}  // namespace berth::policies
