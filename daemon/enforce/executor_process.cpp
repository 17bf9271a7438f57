// SPDX-License-Identifier: Apache-2.0
#include "daemon/enforce/executor_process.h"

#include "model/text.h"
#include "os/proc_files.h"

#include <charconv>
#include <csignal>
#include <cstdint>
#include <string>
#include <string_view>

namespace berth::daemon {

namespace {

// The main class of every deploy mode: CoarseGrainedExecutorBackend, YarnCoarse...,
// KubernetesExecutorBackend.
bool names_executor(std::string_view argument) {
  return argument.starts_with("org.apache.spark.") && argument.ends_with("ExecutorBackend");
}

bool is_executor(std::string_view command_line) {
  constexpr std::string_view kNul("\0", 1);
  while (!command_line.empty()) {
    if (names_executor(model::take_part(command_line, kNul))) return true;
  }
  return false;
}

// Of the mask of caught signals, in hexadecimal digits.
bool has_signal(std::string_view digits, int signal) {
  std::uint64_t mask = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), mask, 16).ec != std::errc()) return false;
  return (mask >> static_cast<unsigned>(signal - 1) & 1U) != 0;
}

}  // namespace

bool can_be_decommissioned(const std::filesystem::path& proc_root, pid_t pid) {
  const auto directory = proc_root / std::to_string(pid);
  const auto caught = os::status_field(directory, "SigCgt");
  return is_executor(os::read_start(directory / "cmdline", os::kMostCommandLine)) && caught &&
         has_signal(*caught, SIGPWR);
}

}  // namespace berth::daemon
