// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"

#include <string>

namespace berth::cgroup {

// Ends systemd's units in systemd's own way.
class UnitStopper {
 public:
  virtual ~UnitStopper() = default;

  // Has systemd stop the unit, and does not wait for the end. A unit that is stopped on request stays stopped
  // whatever its Restart= says, and stays enabled. Only this unit: those that require it go on. Error refused
  // where others are bound to it and would end with it, or where systemd refuses (RefuseManualStop=); gone
  // where there is no such unit; transient where no answer came in time.
  virtual model::Result<void> stop_unit(const std::string& unit) = 0;
};

}  // namespace berth::cgroup
