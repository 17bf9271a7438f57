// SPDX-License-Identifier: Apache-2.0
#include "daemon/executor_process.h"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace berth::daemon {

namespace {

std::string content(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

// The main class of every deploy mode: CoarseGrainedExecutorBackend, YarnCoarse...,
// KubernetesExecutorBackend.
bool names_executor(std::string_view argument) {
  return argument.starts_with("org.apache.spark.") && argument.ends_with("ExecutorBackend");
}

bool is_executor(std::string_view command_line) {
  while (!command_line.empty()) {
    const std::size_t end = std::min(command_line.find('\0'), command_line.size());
    if (names_executor(command_line.substr(0, end))) return true;
    command_line.remove_prefix(std::min(end + 1, command_line.size()));
  }
  return false;
}

bool handles(std::string_view status, int signal) {
  constexpr std::string_view kCaught = "\nSigCgt:\t";
  const std::size_t at = status.find(kCaught);
  if (at == std::string_view::npos) return false;
  const std::string_view digits = status.substr(at + kCaught.size());
  std::uint64_t mask = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), mask, 16).ec != std::errc()) return false;
  return (mask >> static_cast<unsigned>(signal - 1) & 1U) != 0;
}

}  // namespace

bool can_be_decommissioned(const std::filesystem::path& proc_root, const cgroup::Process& process) {
  const auto directory = proc_root / std::to_string(process.pid);
  return is_executor(content(directory / "cmdline")) && handles(content(directory / "status"), SIGPWR);
}

}  // namespace berth::daemon
