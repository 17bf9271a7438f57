// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace berth::cli {

// Seconds since the epoch.
inline double wall_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace berth::cli
