// SPDX-License-Identifier: Apache-2.0
// JSON of a workload that asks to be admitted, both in a snapshot's list and as a request of its own. Only
// the *_json.cpp files of this directory include it.
#pragma once

#include "model/json_reader.h"
#include "model/json_writer.h"
#include "model/snapshot.h"

namespace berth::model {

// Reads all members but `id` and `class`, of an object that is open. Errors go to its context.
void read_pending_members(JsonObject& object, PendingWorkload& pending);
// An element of "pending".
PendingWorkload read_pending(const JsonValue& value);
// Writes all members, into an object that is open.
void write_pending_members(JsonWriter& out, const PendingWorkload& pending);

}  // namespace berth::model
