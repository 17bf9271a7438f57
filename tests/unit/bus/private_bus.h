// SPDX-License-Identifier: Apache-2.0
// A real dbus-daemon of the test's own, with the system bus's defaults and berth's policy file.
#pragma once

#include <filesystem>
#include <string>

#include <sys/types.h>

namespace berth::test {

class PrivateBus {
 public:
  // Starts it and points DBUS_SYSTEM_BUS_ADDRESS at it. Throws std::runtime_error where that fails.
  explicit PrivateBus(const std::filesystem::path& policy_file);
  ~PrivateBus();
  PrivateBus(const PrivateBus&) = delete;
  PrivateBus& operator=(const PrivateBus&) = delete;

  // Ends it; whoever was connected is not any more.
  void stop();

 private:
  std::filesystem::path directory_;
  pid_t pid_ = -1;
};

}  // namespace berth::test
