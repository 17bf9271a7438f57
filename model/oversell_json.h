// SPDX-License-Identifier: Apache-2.0
// JSON of the parts of a snapshot and a plan that are about overselling. Only the *_json.cpp files of this
// directory include it.
#pragma once

#include "model/json_reader.h"
#include "model/json_writer.h"
#include "model/oversell.h"
#include "model/plan.h"

#include <array>

namespace berth::model {

inline constexpr std::array kResources{Resource::cpu, Resource::memory};
inline constexpr std::array kStates{SchedulingState::schedule, SchedulingState::no_schedule,
                                    SchedulingState::evict};

// "advertised" of a snapshot; errors go to the value's context.
Advertised read_advertised(const JsonValue& value);
void write_advertised(JsonWriter& out, const Advertised& advertised);

// "findings.oversell"; unknown members are ignored.
OversellFindings read_oversell(const JsonValue& value);
void write_oversell(JsonWriter& out, const OversellFindings& findings);

}  // namespace berth::model
