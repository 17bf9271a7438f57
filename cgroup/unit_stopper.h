// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"

#include <string>

namespace berth::cgroup {

// Ends systemd's units in systemd's own way.
class UnitStopper {
 public:
  virtual ~UnitStopper() = default;

  // Asks systemd to stop the unit, and does not wait for the end. A unit stopped on request stays stopped
  // whatever its Restart= says, and stays enabled. It stops this unit only: units that require it go on.
  // Error refused where other units are bound to it and would end with it, or where systemd refuses
  // (RefuseManualStop=). Error gone where there is no such unit; transient where no answer came in time.
  virtual model::Result<void> stop_unit(const std::string& unit) = 0;
};

}  // namespace berth::cgroup
