// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/json_reader.h"
#include "model/snapshot.h"

namespace berth::model {

// Finds faults between members of a snapshot document. An id may be given twice, or a name have no object.
// The topology may lack a vCPU, a stage be its own ancestor, or samples be out of order. `snapshot` holds its
// lists in document order, so that the error names the JSON path.
void check_snapshot(const Snapshot& snapshot, ReadContext& context);

}  // namespace berth::model
