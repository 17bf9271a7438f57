// SPDX-License-Identifier: Apache-2.0
// The plan's findings of the Spark policy. Only the *_json.cpp files of this directory include it.
#pragma once

#include "model/json_reader.h"
#include "model/json_writer.h"
#include "model/spark_findings.h"

namespace berth::model {

// "findings.spark"; errors go to the value's context, unknown members are ignored.
SparkFindings read_spark(const JsonValue& value);
void write_spark(JsonWriter& out, const SparkFindings& findings);
void write_app_figures(JsonWriter& out, const SparkAppFigures& app);
void write_candidate(JsonWriter& out, const EvictionCandidate& candidate);

}  // namespace berth::model
