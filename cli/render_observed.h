// SPDX-License-Identifier: Apache-2.0
// Writes what ticks teach: the lines berth.observation/1, the document berth.observed/1, and the same as
// text.
#pragma once

#include "cli/command.h"
#include "model/learning.h"
#include "replay/observed.h"

#include <optional>
#include <string>
#include <vector>

namespace berth::cli {

// A line each, with its end.
std::string observation_lines(const std::vector<model::Observation>& seen);

// Gives an account of the lines in `file` on standard output, as a document with --json. Where `file` is "-",
// standard output has the lines, and the account goes to standard error as text. `cut`: why a trace ends
// early.
void tell_observed(Session& session, const replay::Observed& observed, const std::string& file,
                   const std::optional<std::string>& cut);

}  // namespace berth::cli
