// SPDX-License-Identifier: Apache-2.0
// Any text is read as a plan or refused in one line; what was read survives being written.
#include "model/json.h"
#include "tests/fuzz/property.h"

namespace model = berth::model;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto plan = model::parse_plan(fuzz::text_of(data, size));
  if (!plan) {
    fuzz::require(plan.error().message().starts_with("$"), "a refusal names a JSON path");
    fuzz::require_line(plan.error().message());
    return 0;
  }
  const std::string text = model::to_json(*plan);
  const auto again = model::parse_plan(text);
  fuzz::require(again.has_value(), "what was written is read again");
  fuzz::require(*again == *plan, "the plan survives");
  fuzz::require(model::to_json(*again) == text, "the same plan is the same text");
  return 0;
}
