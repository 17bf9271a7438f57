// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

namespace berth::kubernetes {

enum class Level { info, warning };

// The part of the world besides the API server that a test replaces.
struct Surroundings {
  std::function<double()> clock;   // seconds that never step
  std::function<double()> random;  // 0 to 1, without 1
  std::function<void(Level, const std::string&)> say;
};

}  // namespace berth::kubernetes
