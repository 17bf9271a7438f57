// SPDX-License-Identifier: Apache-2.0
// The samples of the snapshot document. They are most of its text where each workload has a whole window of
// them. Only the *_json.cpp files of this directory include it.
#pragma once

#include "model/json_reader.h"
#include "model/workload.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth::model {

// An element of a workload's "usage"; errors go to the value's context.
UsageSample read_sample(const JsonValue& value);

// A snapshot's text without its samples.
struct TextWithoutUsage {
  std::string text;                                        // each "usage" of a workload is []
  std::vector<std::pair<std::size_t, UsageWindow>> usage;  // by the workload's place in its list
};

// Reads the samples straight from the text, at a fraction of the cost of building values of them. If the
// result's `text` is a valid snapshot, then the given text is one too, with the same samples. Returns nullopt
// where a sample is not as plain as to_json() writes it, or where the values might exceed kMaxJsonValues.
// Then the caller uses the general reader, which also finds the fault.
std::optional<TextWithoutUsage> take_usage(std::string_view text);

}  // namespace berth::model
