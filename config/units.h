// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace berth::config {

// Parses seconds: "2s", "500ms", "1h 30min". Units as in systemd.time(7): us, ms, s (sec), min (m), h (hr), d
// (day), w (week). Several add up; a bare number is seconds. Error invalid_input for anything else; never
// negative.
model::Result<double> parse_duration_s(std::string_view text);

// Parses bytes: "2G", "512M", "1.5K", "4096". systemd's suffixes B, K, M, G, T, P, E, each 1024 times the one
// before. Error invalid_input for anything else, for fractions of a byte, and for more than 63 bits.
model::Result<std::uint64_t> parse_size_bytes(std::string_view text);

// The shortest form that parse_duration_s reads back: 604800 is "1w", 1.5 is "1500ms".
std::string duration_text(double seconds);

}  // namespace berth::config
