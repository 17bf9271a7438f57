// SPDX-License-Identifier: Apache-2.0
// The plan's findings of the straggler policy. Only the *_json.cpp files of this room include it.
#pragma once

#include "model/json_reader.h"
#include "model/json_writer.h"
#include "model/straggler_findings.h"

namespace berth::model {

// "findings.straggler"; errors go to the value's context, unknown members are ignored.
StragglerFindings read_straggler(const JsonValue& value);
void write_straggler(JsonWriter& out, const StragglerFindings& findings);

}  // namespace berth::model
