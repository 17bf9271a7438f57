// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/snapshot.h"

#include <cstddef>
#include <vector>

namespace berth::policies {

// Seconds that an eviction takes in an emergency, from the first of its steps to the end of the last one.
double steps_take_s(double grace_s);

// Bytes by which the memory in use grows in `span_s`, if it goes on as in the last `span_s` of each
// workload's samples. A workload that is younger counts from 0. Workloads that are being evicted do not
// count. Never negative.
double memory_rise(const model::Snapshot& snapshot, double span_s);

// How many of `candidates`, first victim first, have to end at once, so that they free `bytes` together. 1 at
// least, `most` at most. A workload of unknown use is the last one, because nothing is known of its effect.
std::size_t evictions_at_once(const std::vector<const model::Workload*>& candidates, double bytes,
                              std::size_t most);

}  // namespace berth::policies
