// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policies/straggler/share.h"

#include <optional>
#include <string>
#include <vector>

namespace berth::policies {

// A limit that berth lowered and that goes back in steps.
struct Lowered {
  std::string id;
  double limit = 0;                // at present
  std::optional<double> original;  // nullopt: none
  model::HeldLimit held;
};

struct GivenBack {
  std::size_t index = 0;  // into what was given
  std::optional<double> limit;
  double amount = 0;
};

// What `step` in all gives back: preempted ones before reclaimed ones, those held longest first, then by id,
// none above its original. Where there was no limit before, one as large as the node's `capacity` is lifted;
// so is one that would end within it of the original. Amounts in cores or bytes.
std::vector<GivenBack> give_back(const std::vector<Lowered>& lowered, double step, double capacity);

}  // namespace berth::policies
