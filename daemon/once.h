// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/config.h"
#include "daemon/options.h"

namespace berth::daemon {

// --once: looks at the host, prints the actions that berth would take, and changes and keeps nothing.
ExitStatus run_once(const Options& options, const config::Settings& settings);

// --restore: puts back the changes of an earlier run and prints the outcome.
ExitStatus run_restore(const Options& options);

}  // namespace berth::daemon
