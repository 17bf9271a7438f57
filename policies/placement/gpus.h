// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policies/placement/host.h"

#include <cstddef>
#include <string>
#include <vector>

namespace berth::policies {

// The GPUs of a bin that a request would get, as indices, ascending. Fewer than it asks for where there are
// no more. It takes the suitable ones with the least free memory. A request that shares GPUs takes shared
// ones first. Of a set of nodes it takes them node by node, from the node with the most suitable ones on
// (docs/decisions/placement.md).
std::vector<std::size_t> choose_gpus(const Bin& bin, const model::PendingWorkload& request);

// Why the request does not get the other GPUs, in words.
std::string describe_missing_gpus(const Bin& bin, const model::PendingWorkload& request);

}  // namespace berth::policies
