// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace berth::daemon {

// What the service manager is told (sd_notify(3)); all of it is silent where nobody listens.
class Notify {
 public:
  void ready(const std::string& status);
  // Sent only when it differs from the last one.
  void status(const std::string& status);
  // Before a reload; ready() ends it.
  void reloading();
  void stopping();

 private:
  std::string last_status_;
};

}  // namespace berth::daemon
