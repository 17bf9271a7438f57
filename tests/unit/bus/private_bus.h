// SPDX-License-Identifier: Apache-2.0
// A real dbus-daemon of the test's own, with the system bus's defaults and berth's policy file.
#pragma once

#include <filesystem>
#include <string>

#include <sys/types.h>

namespace berth::test {

class PrivateBus {
 public:
  // Starts it and points DBUS_SYSTEM_BUS_ADDRESS at it. It can start a service on demand that owns
  // `activatable`. Throws std::runtime_error on failure.
  explicit PrivateBus(const std::filesystem::path& policy_file, const std::string& activatable = "");
  ~PrivateBus();
  PrivateBus(const PrivateBus&) = delete;
  PrivateBus& operator=(const PrivateBus&) = delete;

  // Ends it, and every connection with it.
  void stop();

 private:
  std::filesystem::path directory_;
  pid_t pid_ = -1;
};

// A socket in place of the system bus that takes every connection and never answers.
class SilentBus {
 public:
  // Points DBUS_SYSTEM_BUS_ADDRESS at it. Throws std::runtime_error where that fails.
  SilentBus();
  ~SilentBus();
  SilentBus(const SilentBus&) = delete;
  SilentBus& operator=(const SilentBus&) = delete;

 private:
  std::filesystem::path directory_;
  int socket_ = -1;
};

}  // namespace berth::test
