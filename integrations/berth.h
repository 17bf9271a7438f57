// SPDX-License-Identifier: Apache-2.0
// The state of berthd, for programs beside it.
#pragma once

#include "model/node_state.h"

#include <optional>
#include <string>

namespace berth::integrations {

// The state that the host's berthd published, or why none can be believed.
struct Berth {
  std::optional<model::NodeState> state;
  std::string silence;  // "berthd does not run"; empty with a state
};

// The state that berthd published in the file, if it can be believed at the time `now` (epoch seconds). The
// file is opened like one that any user made, so a FIFO or a file server holds nothing up.
Berth read_berth(const std::string& state_file, double now, double max_age_s);

}  // namespace berth::integrations
