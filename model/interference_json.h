// SPDX-License-Identifier: Apache-2.0
// A part of the findings of interference as JSON, for plans and explanations.
#pragma once

#include "model/json_writer.h"
#include "model/plan.h"

#include <vector>

namespace berth::model {

void write_warnings(JsonWriter& out, const std::vector<ServiceWarning>& warnings);
void write_waiting(JsonWriter& out, const WaitingInstance& waiting);

}  // namespace berth::model
