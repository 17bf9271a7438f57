// SPDX-License-Identifier: Apache-2.0
// Files that commands read and write.
#pragma once

#include "cli/command_line.h"
#include "cli/problem.h"
#include "config/config.h"
#include "model/snapshot.h"
#include "os/file_descriptor.h"

#include <cstddef>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth::cli {

// More than a thousand workloads with an hour of samples each. A larger file is none of berth's documents.
inline constexpr std::size_t kMostInputBytes = std::size_t{1} << 30;

// A file for reading, or standard input for "-". Problem wrong_use as of read_input().
Outcome<os::FileDescriptor> open_input(const std::string& file);

// A whole file, or standard input for "-". Problem wrong_use names it and says why it cannot be read; a file
// of more than `most_bytes` is too large.
Outcome<std::string> read_input(const std::string& file, std::size_t most_bytes = kMostInputBytes);

// The name of the input in messages.
std::string input_name(const std::string& file);

// Parses a snapshot's text; messages call it `name`. Warnings are printed on `err`, a line each.
Outcome<model::Snapshot> parse_snapshot(std::ostream& err, const std::string& text, const std::string& name);

// Splits a text that holds JSON documents one after another, such as a trace. An unfinished document is the
// last. Blanks around them are left out.
std::vector<std::string_view> split_documents(std::string_view text);

// Settings of a configuration file, with its drop-ins. "-" reads standard input, "" the default place. A
// named file must exist.
Outcome<config::Settings> load_settings(const std::string& file);

// As load_settings(), for the value of an option. Problem wrong_use where it is empty: no file has that name.
Outcome<config::Settings> load_named_settings(const std::string& file);

// --config and -o of a command that decides itself.
struct PolicyArguments {
  std::optional<std::string> config;
  std::vector<std::string> overrides;
};
void declare_policy_options(const Options& options, PolicyArguments& arguments);

// The settings of the policies. Without a file they are the compiled-in defaults, whatever the configuration
// of this host. So the answer for a given snapshot is the same everywhere. Each "KEY=VALUE" then overrides a
// setting. Warnings go to `err`.
Outcome<policies::PolicySettings> policy_settings(std::ostream& err, const PolicyArguments& arguments);

// A file that a command writes piece by piece, or standard output.
class Output {
 public:
  // Creates the file; "-" is standard output. Problem wrong_use: it exists, or cannot be made. `command` is
  // named in the message, as the one that replaces no file.
  static Outcome<Output> open(const std::string& file, const char* command);
  // Writes all of the bytes. Error io names the file.
  model::Result<void> write(std::string_view bytes) const;

 private:
  Output(os::FileDescriptor fd, std::string name) : fd_(std::move(fd)), name_(std::move(name)) {}

  os::FileDescriptor fd_;
  std::string name_;
};

}  // namespace berth::cli
