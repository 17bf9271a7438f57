// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace berth::daemon {

// Messages to the service manager (sd_notify(3)); without one they have no effect.
class Notify {
 public:
  void ready(const std::string& status);
  // Sent only when it differs from the last one.
  void status(const std::string& status);
  // Call it before a reload; ready() ends it.
  void reloading();
  void stopping();

 private:
  std::string last_status_;
};

}  // namespace berth::daemon
