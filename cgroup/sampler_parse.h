// SPDX-License-Identifier: Apache-2.0
// Control files as the kernel writes them (Documentation/admin-guide/cgroup-v2.rst), read without allocating.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace berth::cgroup {

// `usage_usec` of cpu.stat.
std::optional<std::uint64_t> parse_cpu_usage_usec(std::string_view cpu_stat);
// `nr_throttled` of cpu.stat, which only a group with the cpu controller has.
std::optional<std::uint64_t> parse_nr_throttled(std::string_view cpu_stat);
// `throttled_usec`, in nanoseconds; likewise.
std::optional<std::uint64_t> parse_throttled_ns(std::string_view cpu_stat);
// `inactive_file` of memory.stat: page cache not used of late, which the kernel reclaims first; bytes.
std::optional<std::uint64_t> parse_inactive_file(std::string_view memory_stat);
// memory.current, or memory.high. nullopt for "max", and for more than any host has (above model::kMaxBytes).
std::optional<std::uint64_t> parse_bytes(std::string_view text);
// avg10 of the "some" line of a pressure file, percent.
std::optional<double> parse_some_avg10(std::string_view pressure);
// "populated" of cgroup.events.
std::optional<bool> parse_populated(std::string_view events);

}  // namespace berth::cgroup
