// SPDX-License-Identifier: Apache-2.0
// Files that commands read.
#pragma once

#include "cli/problem.h"
#include "config/config.h"
#include "model/snapshot.h"

#include <iosfwd>
#include <string>

namespace berth::cli {

// A whole file, or standard input for "-". Problem wrong_use names it and says why it cannot be read.
Outcome<std::string> read_input(const std::string& file);

// What messages call it.
std::string input_name(const std::string& file);

// A snapshot's text, which messages call `name`; warnings go to `err`, a line each.
Outcome<model::Snapshot> parse_snapshot(std::ostream& err, const std::string& text, const std::string& name);

// Settings of a configuration file, with its drop-ins; "-" reads standard input, "" the default place. A file
// that was named has to be there.
Outcome<config::Settings> load_settings(const std::string& file);

}  // namespace berth::cli
