// SPDX-License-Identifier: Apache-2.0
// The state file as its readers take it: it is refused in one line, or its figures are within their limits.
#include "model/bounds.h"
#include "model/node_state.h"
#include "tests/fuzz/property.h"

#include <cmath>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto state = berth::model::parse_node_state(fuzz::text_of(data, size));
  if (!state) {
    fuzz::require_line(state.error().message());
    return 0;
  }
  fuzz::require(state->score >= 0 && state->score <= 1, "the score is a fraction");
  fuzz::require(std::isfinite(state->cpu.for_best_effort()) && state->cpu.for_best_effort() >= 0,
                "an amount is finite");
  fuzz::require(state->departures.size() <= berth::model::kMaxDepartures, "departures are few");
  for (const auto& departure : state->departures) {
    fuzz::require(departure.reason.size() <= 4096, "a reason is short");
    fuzz::require(!departure.workload.empty(), "a departure is of a workload");
    fuzz::require(departure.time >= 0 && departure.time <= berth::model::kLastTime_s, "a time is one");
  }
  fuzz::require(std::isfinite(state->memory.for_best_effort()), "an amount is finite");
  return 0;
}
