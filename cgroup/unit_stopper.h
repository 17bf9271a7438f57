// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"

#include <functional>
#include <string>

namespace berth::cgroup {

// Ends systemd's units in systemd's own way.
class UnitStopper {
 public:
  virtual ~UnitStopper() = default;

  // Asks systemd to stop the unit, and does not wait for the end. A unit stopped on request stays stopped
  // whatever its Restart= says, and stays enabled. It stops this unit only: units that require it go on.
  // A unit can restart at any time. So the run is stopped by its InvocationID. `is_same_run` is asked after
  // that id was read.
  //
  // Error refused where other units are bound to it and would end with it, or where systemd refuses
  // (RefuseManualStop=). Error gone where there is no such unit, or the run is over; transient where no
  // answer came in time.
  virtual model::Result<void> stop_unit(const std::string& unit,
                                        const std::function<bool()>& is_same_run) = 0;
};

}  // namespace berth::cgroup
