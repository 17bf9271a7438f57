// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <variant>

namespace berth::daemon {

enum class Command { run, check_config, once, restore };

// berthd's command line.
struct Options {
  Command command = Command::run;
  std::filesystem::path config_file;
  bool observe = false;  // whatever the configuration says
  bool json = false;
  std::filesystem::path cgroup_root;  // empty: wherever /proc/self/mountinfo has it
  std::filesystem::path proc_root = "/proc";
  std::filesystem::path sys_root = "/sys";
  std::filesystem::path state_dir = "/var/lib/berth";
  std::filesystem::path runtime_dir = "/run/berth";
};

// An exit status of docs/contract.md.
enum class ExitStatus : int { done = 0, failed = 1, wrong_use = 2 };

// Reads the command line. Where the program ends here (--help, --version, a wrong option) it has printed what
// there is to say, errors as one line on standard error, and the status is handed back.
std::variant<Options, ExitStatus> parse_options(int argc, const char* const* argv);

}  // namespace berth::daemon
