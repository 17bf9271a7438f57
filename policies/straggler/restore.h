// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policies/share.h"

#include <optional>
#include <string>
#include <vector>

namespace berth::policies {

// A limit that berth lowered and gives back in steps.
struct Lowered {
  std::string id;
  double limit = 0;                // at present
  std::optional<double> original;  // nullopt: none
  model::HeldLimit held;
};

struct GivenBack {
  std::size_t index = 0;  // into the input
  std::optional<double> limit;
  double amount = 0;
};

// Shares out `step`: preempted workloads before lent ones, those held longest first, then by id, none
// above its original. A limit without an original is lifted once it is as large as the host's `capacity`. A
// limit whose original is within reach gets it. Amounts in cores or bytes.
std::vector<GivenBack> give_back(const std::vector<Lowered>& lowered, double step, double capacity);

}  // namespace berth::policies
