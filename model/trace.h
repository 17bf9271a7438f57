// SPDX-License-Identifier: Apache-2.0
// The lines of a trace (docs/contract/trace.md). A snapshot of it is a berth.snapshot/1 document.
#pragma once

#include "model/error.h"
#include "model/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace berth::model {

// The most samples that a window of a trace may keep: that of sampling.history.
inline constexpr int kMaxHistory = 3600;

struct TraceHeader {
  std::string berth;  // version
  std::string host;
  double begun = 0;  // epoch seconds
  int history = 60;  // samples that each window keeps

  friend bool operator==(const TraceHeader&, const TraceHeader&) = default;
};

enum class TraceLine { header, snapshot, change, end };

// Tells the kind of a line by its first member, which is "schema". nullopt: none of them.
std::optional<TraceLine> trace_line_of(std::string_view text);

// A berth.trace/1 document.
std::string to_json(const TraceHeader& header);
Result<TraceHeader> parse_trace_header(std::string_view text);

// The last line of a complete trace: a berth.trace-end/1 document with the number of ticks.
std::string trace_end_json(std::uint64_t ticks);
Result<std::uint64_t> parse_trace_end(std::string_view text);

// A berth.change/1 document: the members of `now` that differ from `before`, and the samples of `now` that
// are later than `before`. Samples that both have need not be in either. Workloads of both ascend by id.
// nullopt where only a whole snapshot can tell the difference: another host, other vCPUs, or no later time.
std::optional<std::string> change_json(const Snapshot& before, const Snapshot& now);

// Makes the next snapshot of the one that `snapshot` is. Windows keep the newest `history` samples. Error
// invalid_input: then `snapshot` is in no known state.
Result<void> apply_change(std::string_view text, std::size_t history, Snapshot& snapshot);

}  // namespace berth::model
