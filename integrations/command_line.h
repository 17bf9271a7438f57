// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <getopt.h>

namespace berth::integrations {

// An exit status of berth-kube(8) and berth-slurm(8).
enum class ExitStatus : int { done = 0, failed = 1, wrong_use = 2 };

// The words of a command line that has long options alone. Each fault is printed as one line on standard
// error.
class CommandLine {
 public:
  // `argv` has to outlive it. `options` have the values of their flags in `val`.
  CommandLine(std::string program, int argc, char* const* argv, std::vector<option> options);

  // Gets the flag, the name, and the value, "" for one without. A status ends the reading.
  using Take = std::function<std::optional<ExitStatus>(int flag, const char* name, std::string_view value)>;
  // Calls `take` for each option in order. Returns the status that ended it, or wrong_use for a word that is
  // no option, and nullopt once all are read.
  std::optional<ExitStatus> each(const Take& take) const;

  ExitStatus wrong_option(const std::string& message) const;
  ExitStatus wrong_value(const char* name, std::string_view value, const std::string& why) const;

 private:
  std::string program_;
  int argc_;
  char* const* argv_;
  std::vector<option> options_;  // and one of zeros at the end, for getopt_long(3)
};

}  // namespace berth::integrations
