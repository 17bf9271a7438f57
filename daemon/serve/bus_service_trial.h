// SPDX-License-Identifier: Apache-2.0
// The methods of org.berth.Node1.Manager by which a caller leads a trial. Permission is asked for its
// beginning. After that, only its own connection may go on with it.
#pragma once

#include "daemon/serve/caller_watch.h"
#include "daemon/serve/control.h"

#include <cstdint>
#include <string>

#include <systemd/sd-bus.h>

namespace berth::daemon {

// The callers of one connection of berthd to the bus.
class TrialCallers {
 public:
  // Both outlive this.
  TrialCallers(sd_bus* bus, Control& control);

  // The caller's connection, in words that no other connection ever has: a new bus may give its names again.
  std::string key_of(const std::string& name) const;
  // The caller ends its trial by leaving the bus.
  void watch(const std::string& name) { watch_.watch(name); }

 private:
  std::uint64_t number_;  // of berthd's connection
  CallerWatch watch_;
};

// Handlers of sd-bus; `userdata` is the ManagerObject.
int begin_trial(sd_bus_message* call, void* userdata, sd_bus_error* error);
int use_trial_side(sd_bus_message* call, void* userdata, sd_bus_error* error);
int end_trial(sd_bus_message* call, void* userdata, sd_bus_error* error);

}  // namespace berth::daemon
