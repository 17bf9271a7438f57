// SPDX-License-Identifier: Apache-2.0
// An attribute's value as a member of an action, and of a workload that has it in Workload::others.
#pragma once

#include "model/attribute.h"
#include "model/json_reader.h"
#include "model/json_writer.h"

#include <array>

namespace berth::model {

inline constexpr std::array kLowPriorities{LowPriority::idle, LowPriority::weight};

// Errors go to the value's context.
AttributeValue read_value(const JsonValue& value, Attribute attribute);
// Null stands for no limit.
void write_value(JsonWriter& out, const AttributeValue& value);

// For a list of fields (json_fields.h).
struct AsAttribute {
  Attribute attribute;

  void read(const JsonValue& value, AttributeValue& field) const { field = read_value(value, attribute); }
  static void write(JsonWriter& out, const AttributeValue& field) { write_value(out, field); }
};

}  // namespace berth::model
