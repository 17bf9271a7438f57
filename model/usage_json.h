// SPDX-License-Identifier: Apache-2.0
// The samples of the snapshot document: most of its text where a workload carries a whole window of them.
// Only the *_json.cpp files of this room include it.
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
  std::string text;                                                     // each "usage" of a workload is []
  std::vector<std::pair<std::size_t, std::vector<UsageSample>>> usage;  // by the workload's place in its list
};

// Reads the samples straight from the text, at a fraction of what values of their own cost. Where `text` of
// the result is a snapshot, so is the given one, and of the same samples. nullopt where any sample is not as
// plain as to_json() writes it, or where all might be more than kMaxJsonValues: what else it may be, and what
// is wrong with it, the general reader says.
std::optional<TextWithoutUsage> take_usage(std::string_view text);

}  // namespace berth::model
