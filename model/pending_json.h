// SPDX-License-Identifier: Apache-2.0
// A workload that asks to be admitted, as snapshots list it and as a request of its own says it. Only the
// *_json.cpp files of this room include it.
#pragma once

#include "model/json_reader.h"
#include "model/json_writer.h"
#include "model/snapshot.h"

namespace berth::model {

// The members but `id` and `class` of an object that is open; errors go to its context.
void read_pending_members(JsonObject& object, PendingWorkload& pending);
// An element of "pending".
PendingWorkload read_pending(const JsonValue& value);
// All members, into an object that is open.
void write_pending_members(JsonWriter& out, const PendingWorkload& pending);

}  // namespace berth::model
