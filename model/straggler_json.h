// SPDX-License-Identifier: Apache-2.0
// The plan's findings of the straggler policy, and those parts of them that other documents show too. Only
// the *_json.cpp files of this directory include it.
#pragma once

#include "model/json_reader.h"
#include "model/json_writer.h"
#include "model/straggler_findings.h"

#include <vector>

namespace berth::model {

// "findings.straggler"; errors go to the value's context, unknown members are ignored.
StragglerFindings read_straggler(const JsonValue& value);
void write_straggler(JsonWriter& out, const StragglerFindings& findings);

// An element of "tasks", one of "redundant", and all of "moves".
void write_task(JsonWriter& out, const StragglerTask& task);
void write_redundant(JsonWriter& out, const RedundantTask& task);
void write_moves(JsonWriter& out, const std::vector<LimitMove>& moves);
// {"cpu", "memory"}
void write_resources(JsonWriter& out, const Resources& resources);

}  // namespace berth::model
