// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/serve/bus_service_glue.h"

#include <functional>
#include <string>

namespace berth::daemon {

// Notices when a caller leaves the bus, be it killed. Watches one at a time, and never waits for the bus.
class CallerWatch {
 public:
  // `left` gets the unique name of the caller; it is called from the event loop. `bus` outlives this.
  CallerWatch(sd_bus* bus, std::function<void(const std::string& name)> left);
  CallerWatch(const CallerWatch&) = delete;
  CallerWatch& operator=(const CallerWatch&) = delete;

  // From here on, in place of the one before. A caller that has left already is noticed too. Throws
  // std::system_error.
  void watch(const std::string& name);

 private:
  static int on_change(sd_bus_message* signal, void* userdata, sd_bus_error* error);
  static int on_answer(sd_bus_message* reply, void* userdata, sd_bus_error* error);

  sd_bus* bus_;
  std::function<void(const std::string&)> left_;
  std::string name_;
  Slot changes_;
  Slot question_;
};

}  // namespace berth::daemon
