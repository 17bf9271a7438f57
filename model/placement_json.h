// SPDX-License-Identifier: Apache-2.0
// The plan's findings of the placement policy. Only the *_json.cpp files of this directory include it.
#pragma once

#include "model/json_reader.h"
#include "model/json_writer.h"
#include "model/placement_findings.h"

namespace berth::model {

// "findings.placement"; errors go to the value's context, unknown members are ignored.
PlacementFindings read_placement(const JsonValue& value);
void write_placement(JsonWriter& out, const PlacementFindings& findings);

}  // namespace berth::model
