// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"
#include "os/file_descriptor.h"

#include <string>
#include <string_view>

#include <sys/types.h>

namespace berth::cli {

// A command of the user that prints a number, run by `sh -c` once in a window, as the user of berthctl. It
// has a process group of its own, which is killed with this object. If berthctl is killed, the shell alone
// gets SIGTERM.
class MetricCommand {
 public:
  explicit MetricCommand(std::string command) : command_(std::move(command)) {}
  ~MetricCommand() { end(); }
  MetricCommand(const MetricCommand&) = delete;
  MetricCommand& operator=(const MetricCommand&) = delete;

  // Starts it, with BERTH_TRIAL_SECONDS in its environment: whole seconds, for which it may measure. Ends the
  // one before.
  void start(double seconds);
  // The number that it has printed, and nothing else. Error io where it printed something else, failed, or
  // runs on for two more seconds: then it is killed, with all that it started.
  model::Result<double> number();
  // Kills its group, if it runs. Returns the status of waitpid(2).
  int end();

 private:
  std::string command_;
  pid_t pid_ = -1;
  os::FileDescriptor output_;
  std::string problem_;  // of the start
};

// A finite number with nothing but blanks and breaks around it. Error invalid_input.
model::Result<double> parse_metric(std::string_view text);

}  // namespace berth::cli
