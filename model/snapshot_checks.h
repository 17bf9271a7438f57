// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/json_reader.h"
#include "model/snapshot.h"

namespace berth::model {

// What no single member of a snapshot document shows: ids given twice, names of things that are not there,
// vCPUs that the topology lacks, stages that are their own ancestors, samples out of order. `snapshot` holds
// its lists in document order, so that the error names the JSON path.
void check_snapshot(const Snapshot& snapshot, ReadContext& context);

}  // namespace berth::model
