// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/daemon.h"
#include "model/error.h"

namespace berth::daemon {

// Blocks the signals that run_loop() handles. Call it before any thread starts, and before work that a signal
// must not interrupt halfway.
void block_signals();

// Runs the event loop until SIGTERM or SIGINT: ticks on the monotonic clock, cgroups that come and go, rising
// pressure, SIGHUP, the watchdog, the bus. Tells the service manager READY after the first tick, once the bus
// is connected or known to fail. Error where the kernel refuses an event source.
model::Result<void> run_loop(Daemon& daemon);

}  // namespace berth::daemon
