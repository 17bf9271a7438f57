// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/bus_service_glue.h"
#include "daemon/control.h"

namespace berth::daemon {

// org.freedesktop.LogControl1(5). The setters are privileged ones, so that sd-bus itself lets root alone use
// them.
class LogControlObject {
 public:
  // Both outlive this. Throws std::system_error.
  LogControlObject(sd_bus* bus, Control& control);

 private:
  Slot interface_;
};

}  // namespace berth::daemon
