// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/snapshot.h"
#include "policies/oversell/settings.h"

#include <algorithm>
#include <cstdint>

namespace berth::policies {

// Bytes of the host's memory that work may use: `memory_cap`, or the host's memory where that is less or the
// cap is unset.
inline std::uint64_t memory_capacity(const model::MemoryState& memory, const OversellSettings& settings) {
  if (settings.memory_cap_bytes == 0) return memory.total_bytes;
  return std::min(settings.memory_cap_bytes, memory.total_bytes);
}

}  // namespace berth::policies
