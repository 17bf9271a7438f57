// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace berth::model {

// Histogram of the time that threads of a cgroup waited for a processor, one entry a dispatch. Cumulative.
// Buckets are powers of two: bucket 0 is below 1,024 ns, bucket b from 2^(9+b) up to 2^(10+b) ns. The last
// bucket has no upper end.
inline constexpr std::size_t kDelayBuckets = 24;
using DelayHistogram = std::array<std::uint64_t, kDelayBuckets>;

// Hardware counters, cumulative, scaled up where the kernel had to multiplex them.
struct HardwareCounts {
  double instructions = 0;
  double cycles = 0;
  double llc_references = 0;
  double llc_misses = 0;

  friend bool operator==(const HardwareCounts&, const HardwareCounts&) = default;
};

// Counts of a cgroup since it was first seen. Every figure only grows; two readings make a rate.
struct CgroupCounters {
  std::uint64_t run_ns = 0;        // CPU time used
  std::uint64_t run_delay_ns = 0;  // time its threads were ready and waited for a processor
  std::uint64_t dispatches = 0;    // times one of its threads got a processor
  DelayHistogram delay{};
  std::optional<HardwareCounts> hardware;  // nullopt without performance counters

  friend bool operator==(const CgroupCounters&, const CgroupCounters&) = default;
};

// Figures that the kernel itself keeps of a cgroup, descendants included; nullopt where it keeps none.
struct CgroupAccounts {
  std::optional<std::uint64_t>
      usage_ns;  // cpu.stat usage_usec, since the cgroup was made; may be some readings old
  std::optional<std::uint64_t> memory_bytes;  // memory.current
  std::optional<std::uint64_t> throttled;     // cpu.stat nr_throttled, of this cgroup's own quota
  std::optional<std::uint64_t> throttled_ns;  // cpu.stat throttled_usec

  friend bool operator==(const CgroupAccounts&, const CgroupAccounts&) = default;
};

// One cgroup of a reading. `id` is the kernel's (kernfs): the inode number of the cgroup's directory. The
// kernel never gives it out twice in one boot.
struct CgroupReading {
  std::uint64_t id = 0;
  std::uint64_t parent = 0;  // 0 for the root
  CgroupCounters subtree;    // of all threads in it and below, those that are gone included
  CgroupAccounts accounts;

  friend bool operator==(const CgroupReading&, const CgroupReading&) = default;
};

// The q-quantile (0..1) in microseconds of the waits between two readings, linear within its bucket. In the
// last bucket it is the bucket's lower end. It is nullopt where nothing was dispatched in between. It is
// nullopt too where a bucket fell: then the two are not readings of one cgroup.
std::optional<double> delay_quantile_us(const DelayHistogram& before, const DelayHistogram& now, double q);

// Cycles per instruction between two readings; nullopt where llc_mpki() is.
std::optional<double> cycles_per_instruction(const CgroupCounters& before, const CgroupCounters& now);
// LLC misses between two readings. nullopt without counters in both, and where the counter fell.
std::optional<double> llc_misses(const CgroupCounters& before, const CgroupCounters& now);

// LLC misses per thousand instructions between two readings. nullopt without counters in both, without an
// instruction in between, and where a counter fell.
std::optional<double> llc_mpki(const CgroupCounters& before, const CgroupCounters& now);

}  // namespace berth::model
