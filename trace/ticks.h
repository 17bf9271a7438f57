// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"
#include "model/snapshot.h"
#include "model/trace.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace berth::trace {

// A trace may come from anywhere. These bound the memory and the time that it can take, before any is taken.
struct Limits {
  std::size_t line_bytes = std::size_t{64} << 20;       // of a line, decompressed
  std::uint64_t text_bytes = std::uint64_t{256} << 30;  // of all lines
  std::size_t workloads = 20'000;                       // of a snapshot
  std::size_t samples = 4'000'000;                      // in all windows of a snapshot
  std::uint64_t ticks = 20'000'000;
};

// Makes the snapshots of the ticks out of the lines of a trace, one after the other.
class Ticks {
 public:
  // Windows keep the newest `history` samples.
  explicit Ticks(int history = 1, const Limits& limits = {}) : history_(history), limits_(limits) {}

  // Takes the line of the next tick, a snapshot or a change. Error invalid_input: then snapshot() has the
  // time of the tick before, and is else in no known state. No line may follow.
  model::Result<void> take(model::TraceLine kind, std::string_view line);
  // Of the newest tick. There must be one.
  const model::Snapshot& snapshot() const { return snapshot_; }
  std::uint64_t count() const { return count_; }

 private:
  model::Result<void> follow(model::TraceLine kind, std::string_view line);
  model::Result<void> check_size() const;

  int history_;
  Limits limits_;
  model::Snapshot snapshot_;
  std::uint64_t count_ = 0;
};

}  // namespace berth::trace
