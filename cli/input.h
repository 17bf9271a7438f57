// SPDX-License-Identifier: Apache-2.0
// Files that commands read.
#pragma once

#include "cli/problem.h"
#include "config/config.h"
#include "model/snapshot.h"

#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::cli {

// A whole file, or standard input for "-". Problem wrong_use names it and says why it cannot be read.
Outcome<std::string> read_input(const std::string& file);

// What messages call it.
std::string input_name(const std::string& file);

// A snapshot's text, which messages call `name`; warnings go to `err`, a line each.
Outcome<model::Snapshot> parse_snapshot(std::ostream& err, const std::string& text, const std::string& name);

// The JSON documents of a text that holds one after another, a trace say; one that is not finished is the
// last. Blanks around them are left out.
std::vector<std::string_view> split_documents(std::string_view text);

// Settings of a configuration file, with its drop-ins; "-" reads standard input, "" the default place. A file
// that was named has to be there.
Outcome<config::Settings> load_settings(const std::string& file);

// What policies are told: the compiled-in defaults where no file is named, whatever this host is configured
// for, so that an answer for a given snapshot is the same everywhere; then each "KEY=VALUE".
Outcome<policies::PolicySettings> policy_settings(const std::optional<std::string>& file,
                                                  const std::vector<std::string>& overrides);

}  // namespace berth::cli
