// SPDX-License-Identifier: Apache-2.0
// The samples of the snapshot document. They are most of its text where each workload has a whole window of
// them. Only the *_json.cpp files of this directory include it.
#pragma once

#include "model/json_fields.h"
#include "model/workload.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth::model {

inline constexpr double kMaxUsedCores = kMaxCpu + 1;
inline constexpr double kMaxMicroseconds = 1e15;
inline constexpr double kMaxMpki = 1e6;

template <typename Io>
void fields(Io& io, Of<Io, UsageSample>& sample) {
  io.required("time", sample.time, as::time);
  io.optional("cpu", sample.cpu_cores, as::number{0, kMaxUsedCores});
  io.nullable_if_set("memory_bytes", sample.memory_bytes, as::bytes);
  io.nullable_if_set("progress", sample.progress, as::fraction);
  io.nullable_if_set("runq_latency_us", sample.runq_latency_us, as::number{0, kMaxMicroseconds});
  io.nullable_if_set("runq_latency_p50_us", sample.runq_latency_p50_us, as::number{0, kMaxMicroseconds});
  io.nullable_if_set("llc_mpki", sample.llc_mpki, as::number{0, kMaxMpki});
}

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
