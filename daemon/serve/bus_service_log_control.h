// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/serve/bus_service_glue.h"
#include "daemon/serve/control.h"

namespace berth::daemon {

// org.freedesktop.LogControl1(5). The setters are privileged, so that sd-bus itself permits them to root
// alone.
class LogControlObject {
 public:
  // Both outlive this. Throws std::system_error.
  LogControlObject(sd_bus* bus, Control& control);

 private:
  Slot interface_;
};

}  // namespace berth::daemon
