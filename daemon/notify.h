// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace berth::daemon {

// Messages to the service manager (sd_notify(3)); without one they have no effect. No call waits for it.
class Notify {
 public:
  void ready(const std::string& status);
  // Sent only when it differs from the last one.
  void status(const std::string& status);
  // Call it before a reload; ready() ends it.
  void reloading();
  void stopping();
  // For the watchdog (WatchdogSec=).
  static void alive();

 private:
  std::string last_status_;
};

}  // namespace berth::daemon
