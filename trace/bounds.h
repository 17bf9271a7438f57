// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace berth::trace {

// A trace may come from anywhere. These bound the memory and the time that it can take, before any is taken.
struct Limits {
  std::size_t line_bytes = std::size_t{64} << 20;       // of a line, decompressed
  std::uint64_t text_bytes = std::uint64_t{256} << 30;  // of all lines
  std::size_t workloads = 20'000;                       // of a snapshot
  std::size_t samples = 4'000'000;                      // in all windows of a snapshot
  std::uint64_t ticks = 20'000'000;
};

}  // namespace berth::trace
