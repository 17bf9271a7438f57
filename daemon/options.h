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
  bool observe = false;  // whatever the configuration has
  bool json = false;
  bool no_unit = false;               // to check a configuration for a berthd outside its unit
  std::filesystem::path cgroup_root;  // empty: the one in /proc/self/mountinfo
  std::filesystem::path proc_root = "/proc";
  std::filesystem::path sys_root = "/sys";
  std::filesystem::path state_dir = "/var/lib/berth";
  std::filesystem::path runtime_dir = "/run/berth";
  std::filesystem::path sparkd_socket = "/run/berth-sparkd.socket";
};

// An exit status of docs/contract/README.md.
enum class ExitStatus : int { done = 0, failed = 1, wrong_use = 2 };

// Reads the command line. For --help, --version or a wrong option it prints the answer, an error as one line
// on standard error, and returns the exit status.
std::variant<Options, ExitStatus> parse_options(int argc, const char* const* argv);

}  // namespace berth::daemon
