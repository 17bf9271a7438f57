// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/problem.h"

#include <string>

namespace berth::cli {

// The time of --since in epoch seconds, `now` being the present one. Takes "2h", "2h ago" and "-2h"
// (durations of berth.toml), "today", "yesterday", "2026-11-21", "2026-11-21 10:11", "2026-11-21 10:11:12",
// "10:11", "10:11:12" (local time), and "@1795255870". Problem wrong_use for other text.
Outcome<double> parse_since(const std::string& text, double now);

}  // namespace berth::cli
