// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "integrations/command_line.h"
#include "integrations/slurm/decide.h"

#include <string>
#include <variant>

namespace berth::slurm {

using integrations::ExitStatus;

// berth-slurm's command line.
struct Options {
  std::string node;  // "" if it is not given: then $SLURMD_NODENAME names it
  std::string state_file = "/run/berth/state.json";
  std::string scontrol = "/usr/bin/scontrol";
  double max_age_s = 120;
  bool dry_run = false;
  Settings settings;
};

// Reads the command line. For --help, --version or a wrong option it prints the answer, an error as one line
// on standard error, and returns the exit status.
std::variant<Options, ExitStatus> parse_options(int argc, char* const* argv);

}  // namespace berth::slurm
