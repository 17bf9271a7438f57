// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/daemon.h"
#include "model/error.h"

namespace berth::daemon {

// Blocks the signals that run_loop() takes in. To be called before any thread is started and before what must
// not be interrupted half done.
void block_signals();

// Turns the wheel until SIGTERM or SIGINT: ticks on the monotonic clock, cgroups that come and go, pressure
// that rises, SIGHUP, the watchdog, the bus. Tells the service manager READY after the first tick, once
// the bus is served or known not to be. Error where the kernel refuses an event source.
model::Result<void> run_loop(Daemon& daemon);

}  // namespace berth::daemon
